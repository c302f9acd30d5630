"""Context engines, memory and a stored conversation, for tests of engines and of whatever hosts them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from garra.core.errors import UserError
from garra.core.ids import AgentId, SessionId, SessionKey
from garra.core.messages import Message
from garra.sdk.context import Addition, Asked, Assembled, Budget, Chat, Compacted, Pages, Recalled

CHAT = Chat(SessionKey("agent:main:main"), SessionId("s1"), AgentId("main"))


def asked(*messages: Message, window: int = 100_000, said: str = "", first: bool = True) -> Asked:
    """What an engine is asked, with a common budget."""
    return Asked(messages, "fake/m", Budget(window, window // 2, window // 20), said, first=first)


@dataclass
class ToyEngine:
    """Sends the newest `keep` messages (0: all) and says how many it has heard of. It fails at what `fails` names, and
    `waits` that many seconds first. `heard` is what it was told.
    """

    id: str = "toy"
    owns_compaction: bool = False
    keep: int = 0
    waits: float = 0.0
    fails: set[str] = field(default_factory=set)
    heard: list[str] = field(default_factory=list)
    added: tuple[Addition, ...] = ()

    async def _do(self, what: str) -> None:
        self.heard.append(what)
        if self.waits:
            await asyncio.sleep(self.waits)
        if what in self.fails:
            raise RuntimeError(f"the toy's {what} is broken")

    async def bootstrap(self, chat: Chat, messages: tuple[Message, ...]) -> None:
        await self._do("bootstrap")
        self.heard += [f"knows {message.timestamp}" for message in messages]

    async def ingest(self, chat: Chat, message: Message) -> None:
        await self._do("ingest")
        self.heard.append(f"knows {message.timestamp}")

    async def assemble(self, chat: Chat, asked: Asked) -> Assembled:
        await self._do("assemble")
        known = sum(each.startswith("knows") for each in self.heard)
        told = self.added or (Addition("Toy", f"{known} messages"),)
        return Assembled(asked.messages[-self.keep :] if self.keep else asked.messages, told)

    async def compact(self, chat: Chat, asked: Asked, pages: Pages) -> Compacted | None:
        await self._do("compact")
        if not self.owns_compaction:
            return None
        rows = pages.rows()
        await pages.summarise("It was talked about.", rows[-1][0])
        return Compacted(True, "Summed up by the toy.")

    async def maintain(self, chat: Chat, pages: Pages) -> None:
        await self._do("maintain")


class FakePages:
    """`sdk.context.Pages` in memory."""

    def __init__(self, *messages: Message) -> None:
        self.messages = [(f"e{number}", message) for number, message in enumerate(messages)]
        self.summaries: list[tuple[str, str]] = []

    def rows(self) -> Sequence[tuple[str, Message]]:
        return tuple(self.messages)

    async def rewrite(self, changed: Mapping[str, Message | None]) -> int:
        known = dict(self.messages)
        if not set(changed) <= set(known):
            raise UserError("no such entry")
        fresh = [(id_, changed.get(id_, message)) for id_, message in self.messages]
        self.messages = [(id_, message) for id_, message in fresh if message is not None]
        return len(self.messages)

    async def summarise(self, summary: str, first_kept: str) -> None:
        self.summaries.append((summary, first_kept))


@dataclass
class FakeRecall:
    """`sdk.context.Recall`: `hits` for everything, or it waits, or is broken. `queries` is what it was asked."""

    hits: tuple[Recalled, ...] = ()
    waits: float = 0.0
    broken: bool = False
    queries: list[tuple[str, str, str]] = field(default_factory=list)

    async def search(self, query: str, *, agent_id: AgentId, owner: str, limit: int) -> tuple[Recalled, ...]:
        self.queries.append((query, agent_id, owner))
        await asyncio.sleep(self.waits)
        if self.broken:
            raise UserError("there is no memory here")
        return self.hits[:limit]
