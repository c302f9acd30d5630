"""The reading loop. An update is confirmed to Telegram only after it was stored here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from garra.builtin.channels.telegram.api import Api, Refused
from garra.builtin.channels.telegram.faults import lost
from garra.core.value import frozen
from garra.sdk.channel import Cursor as Stored
from garra.sdk.channel import Pulse, receive_all
from garra.sdk.ports import Clock

HOLD_S = 25
"""How long Telegram may keep a poll open when nothing happens."""
SLACK_S = 15.0
"""How much later its answer may come before the poll counts as lost."""
FIRST_S = 150.0
"""How long the first poll may take, which asks for what is there and does not wait: a slow start is no stall."""
STALE_MS = 6 * 24 * 3_600_000
"""After a week without updates Telegram numbers them anew, perhaps lower: an old position would hide them."""

Take = Callable[[Mapping[str, Any]], Awaitable[None]]


@frozen
class Position:
    """The next update wanted of bot `bot`, and when that was learnt."""

    bot: int
    offset: int
    at_ms: int

    def text(self) -> str:
        return f"{self.bot}:{self.offset}:{self.at_ms}"


def position(text: str | None, bot: int, now_ms: int) -> Position:
    """The stored position, or the beginning where there is none, it is another bot's, or it is too old."""
    numbers = [int(part) for part in (text or "").split(":") if part.isdecimal()]
    if len(numbers) == 3 and numbers[0] == bot:
        return fresh(Position(*numbers), now_ms)
    return Position(bot, 0, now_ms)


def fresh(found: Position, now_ms: int) -> Position:
    return found if now_ms - found.at_ms < STALE_MS else Position(found.bot, 0, now_ms)


@dataclass(slots=True)
class Poller:
    """Reads one bot's updates; `take` returns when an update is stored."""

    api: Api
    cursor: Stored
    clock: Clock
    kinds: tuple[str, ...]
    take: Take

    async def run(self, bot: int, pulse: Pulse) -> None:
        """Until cancelled. Raises LinkLost."""
        here = position(await self.cursor.get(), bot, self.clock.now_ms())
        hold, wait = 0, FIRST_S
        while True:
            here = fresh(here, self.clock.now_ms())
            updates = await self._poll(here.offset, hold, wait, pulse)
            pulse.alive()
            hold, wait = HOLD_S, HOLD_S + SLACK_S
            if updates:
                here = await self._store(updates, here)

    async def _poll(self, offset: int, hold: int, wait: float, pulse: Pulse) -> Sequence[Mapping[str, Any]]:
        asked = {"timeout": hold, "allowed_updates": self.kinds} | ({"offset": offset} if offset else {})
        try:
            found = await self.api.call("getUpdates", asked, wait=wait)
        except Refused as refused:
            if refused.status != 409 or "webhook" not in refused.said.lower():
                raise lost(refused) from None
            await self._unhook(pulse)
            return ()
        if not isinstance(found, list) or not all(isinstance(one, dict) and _counted(one) for one in found):
            raise lost(Refused("getUpdates", "the answer is no list of numbered updates", 502))
        return found

    async def _unhook(self, pulse: Pulse) -> None:
        """Telegram gives no updates while it calls an address; what waits there comes by polling then."""
        pulse.note("A webhook was set for this bot; it is taken away, since this account polls.")
        try:
            await self.api.call("deleteWebhook", {"drop_pending_updates": False})
        except Refused as refused:
            raise lost(refused) from None

    async def _store(self, updates: Sequence[Mapping[str, Any]], here: Position) -> Position:
        """Store all, then the position. What was stored before a fault stays confirmed."""
        count, fault = await receive_all(self.take, updates)
        if count:
            last = max(int(update["update_id"]) for update in updates[:count])
            here = Position(here.bot, max(here.offset, last + 1), self.clock.now_ms())
            await self.cursor.set(here.text())
        if fault is not None:
            raise fault
        return here


def _counted(update: Mapping[str, Any]) -> bool:
    """Whether it has the number by which reading goes on behind it."""
    return type(update.get("update_id")) is int
