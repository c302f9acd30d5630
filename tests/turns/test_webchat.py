"""WebChat over real stores and runs: what is stored when, how it ends, and what a restart makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import NotFound, UserError
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import Assistant, Image, User
from garra.domains.delivery.book import Book
from garra.domains.delivery.inbox import InboxRow
from garra.io.clock import SystemClock
from garra.runs.run import Run, Turn
from garra.sdk.channel import Sender
from garra.testing.model import Says, says
from garra.turns.webchat import LOST, Ports, WebChat
from tests.turns.house import House, house

CLOCK = SystemClock()
KEY = SessionKey("agent:main:main")
OWNER = Sender("operator")


def turn(run_id: str = "run-1", text: str = "hello", **more: Any) -> Turn:
    return Turn(RunId(run_id), KEY, AgentId("main"), text, **more)


def webchat(made: House, runs: Any = None) -> WebChat:
    return WebChat(Ports(Book(made.db, CLOCK), runs or made.runs, made.sessions, CLOCK, made.spawn, made.warned.append))


async def rows(made: House) -> list[InboxRow]:
    """What is open, as a start finds it."""
    return await made.inbox.pending()


class Deaf:
    """Runs that take a turn and never begin: the process dies first."""

    def __init__(self, made: House) -> None:
        self._made = made

    async def submit(self, wanted: Turn) -> Run:
        session = await self._made.sessions.ensure(wanted.session_key, agent_id="main", cwd="/")
        return Run(wanted, session.session_id, 0)

    def active(self, session_key: str) -> Run | None:
        return None

    def subscribe(self, listener: Any) -> Any:
        return lambda: None


class Full:
    """Runs that take none."""

    async def submit(self, wanted: Turn) -> Run:
        raise UserError("too many wait already")

    def active(self, session_key: str) -> Run | None:
        return None

    def subscribe(self, listener: Any) -> Any:
        return lambda: None


class Said:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    async def __call__(self, key: str, text: str) -> None:
        self.lines.append((key, text))


async def left(made: House, *turns: Turn) -> Sequence[InboxRow]:
    """What a process that died left behind."""
    before = webchat(made, Deaf(made))
    for each in turns:
        await before.submit(each, OWNER)
    return await rows(made)


async def test_it_is_stored_before_it_runs_and_done_when_it_is_answered(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        run = await webchat(made).submit(turn(meta={"__openclaw": {"senderIsOwner": True}}), OWNER)
        (row,) = await rows(made)
        assert (row.state, row.run_id, row.session_key) == ("adopted", "run-1", KEY)
        await run.wait()
        await made.idle()
        found = await made.inbox.get(row.id)
        assert (found.state, found.why) == ("done", "answered")
        stations = [each.station for each in await made.timeline.timeline(row.id)]
        assert stations[:2] == ["received", "adopted"]
        assert stations[-2:] == ["answered", "done"]


async def test_a_refused_run_leaves_nothing_open(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        with pytest.raises(UserError, match="too many"):
            await webchat(made, Full()).submit(turn(), OWNER)
        assert await rows(made) == []


async def test_the_pump_leaves_it_alone(tmp_path: Path) -> None:
    async with house(tmp_path, started=False) as made:
        (row,) = await left(made, turn())
        await made.pump.start()
        assert (await made.inbox.get(row.id)).state == "adopted"
        assert made.turns == []


async def test_one_that_never_began_begins_after_a_restart_as_it_was_asked(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        asked = turn(thinking="high", meta={"__openclaw": {"senderIsOwner": True}}, extra_system="be brief")
        found = await left(made, asked)
        await webchat(made).resume(found, Said())
        await made.idle()
        assert (await made.inbox.get(found[0].id)).why == "answered"
        messages = (await made.sessions.transcript(KEY)).messages()
        assert [type(each) for each in messages] == [User, Assistant]
        assert messages[0].meta["__openclaw"] == {"senderIsOwner": True}


async def test_an_answer_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        found = await left(made, turn())
        run = await made.runs.submit(turn())
        await run.wait()
        await webchat(made).resume(found, Said())
        assert (await made.inbox.get(found[0].id)).why == "answered"
        assert len(made.model.requests) == 1


async def test_two_of_one_session_are_gone_on_with_in_their_order(tmp_path: Path) -> None:
    async with house(tmp_path, script=(says("one"), says("two"))) as made:
        found = await left(made, turn("run-1", "first"), turn("run-2", "second"))
        await webchat(made).resume(found, Said())
        await made.idle()
        texts = [each.text for each in (await made.sessions.transcript(KEY)).messages() if isinstance(each, User)]
        assert texts == ["first", "second"]
        assert {(await made.inbox.get(row.id)).state for row in found} == {"done"}


async def test_what_comes_while_one_is_gone_on_with_has_an_answer_of_its_own(tmp_path: Path) -> None:
    async with house(tmp_path, script=(says("one"), says("two"))) as made:
        (row,) = await left(made, turn("run-1", "first"))
        chat = webchat(made)
        await chat.resume([row], Said())
        run = await made.runs.submit(turn("run-1", "first"))
        assert run.ended is None
        second = await chat.submit(turn("run-2", "second"), OWNER)
        assert (await run.wait()).reply == "one"
        assert (await second.wait()).reply == "two"
        assert second.led_by is None
        third = await chat.submit(turn("run-3", "third"), OWNER)
        assert third.turn.queue is None


async def test_pictures_that_were_not_stored_are_asked_for_again(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        found = await left(made, turn(images=(Image("image/png", "AAAA"),)))
        say = Said()
        await webchat(made).resume(found, say)
        assert say.lines == [(KEY, LOST)]
        assert (await made.inbox.get(found[0].id)).why == "failed: its pictures were not stored"
        assert made.model.requests == []


async def test_what_cannot_be_gone_on_with_says_why(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        found = await left(made, turn())
        await webchat(made, Full()).resume(found, Said())
        assert (await made.inbox.get(found[0].id)).why == "failed: too many wait already"
        assert "too many wait" in made.warned[0]


async def test_a_session_that_is_gone(tmp_path: Path) -> None:
    async with house(tmp_path) as made:
        found = await left(made, turn())
        await made.sessions.delete(KEY)
        with pytest.raises(NotFound):
            await made.sessions.transcript(KEY)
        await webchat(made).resume(found, Said())
        assert (await made.inbox.get(found[0].id)).why.startswith("failed: ")


async def test_stopped_by_hand_is_done_and_the_processs_end_is_not(tmp_path: Path) -> None:
    async with house(tmp_path, script=(Says(("slow",), hangs=True), Says(("slow",), hangs=True))) as made:
        chat = webchat(made)
        run = await chat.submit(turn(), OWNER)
        (row,) = await rows(made)
        await made.until(lambda: made.model.requests)
        await made.runs.abort(KEY, run.run_id, "rpc")
        await run.wait()
        await made.idle()
        assert (await made.inbox.get(row.id)).why == "stopped"
        await chat.submit(turn("run-2"), OWNER)
        await made.until(lambda: len(made.model.requests) == 2)
        await made.runs.close()
        (open_one,) = await rows(made)
        assert (open_one.run_id, open_one.state) == ("run-2", "adopted")
