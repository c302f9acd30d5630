"""Runs a context engine within bounds: what it raises or holds up never ends a turn, and three times is enough."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from garra.core.errors import UserError
from garra.core.ids import SessionId
from garra.core.messages import Assistant, Message, ToolResult, User
from garra.sdk.context import Asked, Assembled, Chat, Compacted, ContextEngine, Pages
from garra.sdk.recent import Recent

log = logging.getLogger(__name__)
T = TypeVar("T")

STRIKES: Final = 3
"""So often in a row may one of its calls fail."""

LIMITS: Final[Mapping[str, float]] = {
    "bootstrap": 20.0,
    "ingest": 5.0,
    "assemble": 10.0,
    "compact": 180.0,
    "maintain": 20.0,
}
"""Seconds that each call may take."""

CHATS: Final = 512
"""Of so many conversations it is kept what the engine has seen."""

Make = Callable[[str, Mapping[str, Any]], ContextEngine]
"""Makes the engine of that name with these settings, in a thread. Raises UserError with a line for the owner."""


class Unsound(ValueError):
    """What an engine gave back cannot be sent."""


class Host:
    """The engines of one process. `tellers` hear the line for the owner when one is set aside."""

    def __init__(self, make: Make, limits: Mapping[str, float] = LIMITS) -> None:
        self._make, self._limits = make, limits
        self._seat: Seat | None = None
        self._lock = asyncio.Lock()
        self.tellers: list[Callable[[str], None]] = []

    async def seat(self, name: str, settings: Mapping[str, Any]) -> Seat | None:
        """The engine of that name; None where it was set aside. It gets another chance when its settings change."""
        async with self._lock:
            if self._seat is None or (self._seat.name, self._seat.settings) != (name, settings):
                self._seat = await self._opened(name, settings)
        return None if self._seat.aside else self._seat

    async def _opened(self, name: str, settings: Mapping[str, Any]) -> Seat:
        try:
            engine: ContextEngine | None = await asyncio.to_thread(self._make, name, settings)
            why = ""
        except UserError as error:
            engine, why = None, error.message
        seat = Seat(name, settings, engine, limits=self._limits, tell=self._tell)
        if engine is None:
            seat.put_aside(why)
        return seat

    def _tell(self, line: str) -> None:
        log.warning("%s", line)
        for teller in self.tellers:
            teller(line)


class Seat:
    """One engine, called within bounds. Nothing here raises for the engine's faults."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        engine: ContextEngine | None,
        *,
        limits: Mapping[str, float],
        tell: Callable[[str], None],
    ) -> None:
        self.name, self.settings, self.aside = name, settings, ""
        self._engine, self._limits, self._tell = engine, limits, tell
        self._strikes: dict[str, int] = {}
        self._seen: Recent[SessionId, tuple[int, Message | None]] = Recent(CHATS)

    @property
    def owns_compaction(self) -> bool:
        """Whether nobody else makes histories smaller."""
        return not self.aside and bool(getattr(self._engine, "owns_compaction", False))

    def put_aside(self, why: str) -> None:
        """It is not called any more; the owner hears why."""
        self.aside = why
        self._tell(
            f"The context engine {self.name} is set aside: {why}. Conversations go on without it. Mend or update it "
            "and restart the gateway, or choose another one (plugins.slots.contextEngine)."
        )

    async def met(self, chat: Chat, messages: tuple[Message, ...]) -> None:
        """Tell it of the conversation: all of it the first time and when its past was changed, else what is new."""
        engine = self._engine
        if engine is None:
            return
        count, last = self._seen.get(chat.session_id) or (-1, None)
        grown = 0 <= count <= len(messages) and (count == 0 or _same(messages[count - 1], last))
        if not grown:
            await self._call("bootstrap", lambda: engine.bootstrap(chat, messages))
        else:
            for message in messages[count:]:
                await self._ingested(engine, chat, message)
        self._seen.put(chat.session_id, (len(messages), messages[-1] if messages else None), 1)

    async def _ingested(self, engine: ContextEngine, chat: Chat, message: Message) -> None:
        await self._call("ingest", lambda: engine.ingest(chat, message))

    async def assemble(self, chat: Chat, asked: Asked) -> Assembled:
        """What it chose; all that was said where it failed."""
        engine = self._engine

        async def work() -> Assembled:
            assert engine is not None
            return _checked(asked, await engine.assemble(chat, asked))

        return await self._call("assemble", work) or Assembled(asked.messages)

    async def compact(self, chat: Chat, asked: Asked, pages: Pages) -> Compacted | None:
        """How it went; None where it leaves that to the runtime, or failed."""
        engine = self._engine

        async def work() -> Compacted | None:
            assert engine is not None
            return await engine.compact(chat, asked, pages)

        return await self._call("compact", work)

    async def maintain(self, chat: Chat, pages: Pages) -> None:
        """It may put the stored conversation in order."""
        engine = self._engine

        async def work() -> None:
            assert engine is not None
            await engine.maintain(chat, pages)

        await self._call("maintain", work)

    async def _call(self, what: str, work: Callable[[], Awaitable[T]]) -> T | None:
        if self.aside:
            return None
        try:
            async with asyncio.timeout(self._limits[what]):
                answer = await work()
        except Exception as error:  # noqa: BLE001 - an engine's fault is not the turn's
            self._strike(what, error)
            return None
        self._strikes.pop(what, None)
        return answer

    def _strike(self, what: str, error: Exception) -> None:
        how = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(": ")
        if isinstance(error, TimeoutError):
            how = f"it took more than {self._limits[what]:g} s"
        count = self._strikes[what] = self._strikes.get(what, 0) + 1
        log.warning("context engine %s: %s failed (%d of %d): %s", self.name, what, count, STRIKES, how)
        if count >= STRIKES:
            self.put_aside(f"{what} failed {STRIKES} times in a row, last: {how}")


def _same(one: Message, other: Message | None) -> bool:
    if other is None or one is other:
        return one is other
    return type(one) is type(other) and one.timestamp == other.timestamp and one.content == other.content


def _checked(asked: Asked, got: Assembled) -> Assembled:
    """Raises Unsound: the newest turn must be there as it is, whatever else was chosen."""
    if not isinstance(got, Assembled) or not isinstance(got.messages, tuple):
        raise Unsound(f"assemble gave back {type(got).__name__}, which is no Assembled with a tuple of messages")
    if not all(isinstance(message, User | Assistant | ToolResult) for message in got.messages):
        raise Unsound("assemble gave back something that is no message")
    newest = asked.messages[_turn(asked.messages) :]
    kept = got.messages[len(got.messages) - len(newest) :]
    if len(kept) != len(newest) or any(one is not other for one, other in zip(kept, newest, strict=True)):
        raise Unsound("assemble left out or changed some of the newest turn")
    return got


def _turn(messages: tuple[Message, ...]) -> int:
    """Where the newest turn begins: the last words of a person."""
    at = len(messages)
    while at > 0 and not isinstance(messages[at - 1], User):
        at -= 1
    return max(0, at - 1)
