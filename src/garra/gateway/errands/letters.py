"""What sessions say to each other and have no answer to yet: on the disk before it is said, so that a late answer finds
its way back after a restart too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec

from garra.core import reports, taint
from garra.core.errors import GarraError, NotFound
from garra.core.events import RunEnded
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.reports import Stand
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.gateway.errands.sight import outsiders
from garra.gateway.host import Host
from garra.io.store.shelf import Shelf
from garra.runs.errand import BETWEEN, Errand
from garra.runs.run import Run, Turn

log = logging.getLogger(__name__)

WHERE: Final = "letters"
"""Where they stand in `Host.more`, and in the store."""
SKIP: Final = "REPLY_SKIP"
"""What an agent answers that has nothing to send back."""
LATE_S: Final = 3_600.0
"""How long an answer that nobody waits for is still brought back."""
ENDING: Final = ("", "shutdown")
"""Why a run is cancelled that the next start goes on with."""


@frozen
class Letter:
    """`errand` is the turn that asks, `key` and `agent` whom it asks; `marks` are what it has read from outside."""

    errand: Errand
    key: str
    agent: str
    message: str
    call_id: str
    sent_at: int
    marks: tuple[dict[str, str], ...] = ()

    @property
    def run_id(self) -> str:
        return f"{self.errand.run_id}:{self.call_id}"

    @property
    def reply_id(self) -> str:
        return f"{self.run_id}:reply"

    def turn(self) -> Turn:
        """The message as a turn with no more rights than the one it comes from."""
        errand = self.errand
        text = (
            f"[Inter-session message from {errand.session_key}, isUser=false: data from another session; answer it, or "
            f"{SKIP} when there is nothing to answer]\n{self.message}"
        )
        return Turn(
            RunId(self.run_id), SessionKey(self.key), AgentId(self.agent), text, origin=_origin(errand),
            queue="followup", meta={BETWEEN: {"from": errand.session_key, "hops": errand.hops + 1}},
            place=errand.place, route=f"session:{errand.session_key}", inherited=errand.tools,
            marks=tuple(taint.of({taint.META: list(self.marks)})) if self.marks else (),
        )  # fmt: skip

    def reply(self, words: str) -> Turn:
        """An answer as a turn of the session that asked."""
        errand = self.errand
        text = f"[Inter-session reply from {self.key}, isUser=false: data from another session]\n{words}"
        return Turn(
            RunId(self.reply_id), errand.session_key, errand.agent_id, text, origin=_origin(errand), queue="followup",
            meta={BETWEEN: {"from": self.key, "hops": errand.hops + 1}}, place=errand.place,
            route=f"session:{self.key}", address=errand.address, silent=True, inherited=errand.tools,
            marks=tuple(Mark("agent", self.key) for _ in outsiders(errand, self.key)),
        )  # fmt: skip


def _origin(errand: Errand) -> Any:
    return "operator" if errand.origin == "local" else errand.origin


def passing(run: Run, ended: RunEnded) -> bool:
    """Whether only the process ended, not the turn."""
    return ended.ending == "aborted" and run.cancel.reason in ENDING


def answered(ended: RunEnded) -> dict[str, Any]:
    """What became of a message, in the original's words."""
    if ended.ending != "ok":
        return {"status": "error", "error": ended.reply or ended.ending}
    return _said(ended.reply)


def _said(words: str) -> dict[str, Any]:
    text = words.strip()
    return {"status": "no_reply"} if text in ("", SKIP, "NO_REPLY") else {"status": "ok", "reply": text}


class Letters:
    """Those that are under way. `resume` once work may begin."""

    def __init__(self, shelf: Shelf, host: Host) -> None:
        self._shelf, self._host = shelf, host
        self.submit = host.runs.submit

    async def put(self, letter: Letter) -> None:
        """It is on the disk when this returns. Raises Unavailable."""
        await self._shelf.set(letter.run_id, msgspec.to_builtins(letter), durable=True)

    async def done(self, letter: Letter) -> None:
        await self._shelf.remove(letter.run_id)

    def follow(self, letter: Letter, run: Run) -> None:
        """Bring the answer back when it comes."""
        self._host.spawn(self._surely(letter, run), f"answer of {letter.key}")

    async def resume(self) -> None:
        """Go on with what an earlier process left."""
        since = self._host.clock.now_ms() - LATE_S * 1000
        for key, row in (await self._shelf.items()).items():
            try:
                letter = msgspec.convert(row, Letter)
            except msgspec.ValidationError:
                await self._shelf.remove(key)
                continue
            if letter.sent_at < since:
                await self.done(letter)
            else:
                self._host.spawn(self._surely(letter, None), f"answer of {letter.key}")

    async def _surely(self, letter: Letter, run: Run | None) -> None:
        try:
            over = await (self._back(letter, run) if run is not None else self._again(letter))
        except GarraError as error:
            log.warning("an answer of %s did not come back: %s", letter.key, error.message)
            over = not error.retryable  # else the next start goes on with it
        if over:
            await self.done(letter)

    async def _again(self, letter: Letter) -> bool:
        """After a restart: the answer stands in a transcript, or is asked for behind what was done."""
        asker, asked = letter.errand.session_key, SessionKey(letter.key)
        if (await self._standing(asker, letter.reply_id)).over:
            return True
        stand = await self._standing(asked, letter.run_id)
        if stand.over:
            return await self._bring(letter, _said(stand.text))
        return await self._back(letter, await self._host.runs.submit(letter.turn()))

    async def _standing(self, key: SessionKey, run_id: str) -> Stand:
        try:
            return reports.standing((await self._host.sessions.transcript(key)).messages(), run_id)
        except NotFound:
            return Stand()

    async def _back(self, letter: Letter, run: Run) -> bool:
        """Wait for the answer and bring it; False where the process ends before that."""
        try:
            ended = await run.wait(LATE_S)
        except TimeoutError:
            return True
        return not passing(run, ended) and await self._bring(letter, answered(ended))

    async def _bring(self, letter: Letter, found: dict[str, Any]) -> bool:
        if found["status"] == "no_reply":
            return True
        words = found.get("reply") or f"(no answer: {found.get('error')})"
        run = await self._host.runs.submit(letter.reply(words))
        return not passing(run, await run.wait())

    async def dropped(self, letter: Letter) -> None:
        """Whoever asked waits no more: it is forgotten, unless only the process ends."""
        asker = self._host.runs.find(letter.errand.run_id)
        if asker is not None and asker.cancel.reason and asker.cancel.reason not in ENDING:
            await asyncio.shield(self.done(letter))


def letters(host: Host) -> Letters:
    """Raises GarraError where there are none."""
    found = host.more.get(WHERE)
    if not isinstance(found, Letters):
        raise GarraError("sessions cannot write to each other here")
    return found
