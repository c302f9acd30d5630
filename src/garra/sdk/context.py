"""What a context engine implements: it chooses what of a conversation its model is sent, and what is added to it.

    class Engine:
        id = "mine"
        owns_compaction = False
        async def bootstrap(self, chat, messages): ...          once, when it first sees a conversation
        async def ingest(self, chat, message): ...              each message that is stored, once, in order
        async def assemble(self, chat, asked): ...              before each call of a model
        async def compact(self, chat, asked, pages): ...        the history is too large, or /compact was said
        async def maintain(self, chat, pages): ...              after a turn that went well

A manifest of kind `context` names a callable that makes it: `make(settings, **ports)`, the plugin's own settings and
the ports of `needs`. One engine serves all conversations of a process; `plugins.slots.contextEngine` chooses it.

The host bounds it: each call has a time limit, its additions are clipped to their share of the window and are sent
behind the history, so that a provider's prompt cache holds. An engine that fails three times is set aside until the
program starts again; the turn goes on without it. What it returns is checked like any history: a call keeps its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from garra.core.ids import AgentId, SessionId, SessionKey
from garra.core.messages import Message
from garra.core.taint import Mark
from garra.core.value import frozen


@frozen
class Chat:
    """Which conversation it is. `kind` is `direct`, `group` or `explicit` (a client's own key); `place` is the chat's
    id on its platform, empty where there is none. `owner` is whose memory it may be told of: empty for the owner's own,
    `channel:account:sender` for one person's, `key:SESSION` for what was said in this conversation alone.
    """

    key: SessionKey
    session_id: SessionId
    agent_id: AgentId
    kind: str = "direct"
    place: str = ""
    owner: str = ""


@frozen
class Budget:
    """In tokens, about 4 characters each: the model's `window`; what the history may take of it (`messages`), the rest
    being the prompt, the tools and room for the answer; and what additions may take (`additions`).
    """

    window: int
    messages: int
    additions: int


@frozen
class Asked:
    """What is to be assembled: the history as it is stored, for `model` (`provider/id`), within `budget`. `said` are
    the newest words of a person. `interactive`: a person waits for the answer (no sub-agent, no job, no client's call).
    `first`: the first call of this turn, no tool was called yet.
    """

    messages: tuple[Message, ...]
    model: str
    budget: Budget
    said: str = ""
    interactive: bool = True
    first: bool = True


@frozen
class Addition:
    """Words of the engine for this call, in `name`'s section behind the history. `source`: where they were found, such
    as `memory/2026-05-02.md#L4`; they are then told as data, which nobody has to obey. `marks`: which of it came from
    outside; then a person is asked before the turn does anything beyond its own chat.
    """

    name: str
    text: str
    source: str = ""
    marks: tuple[Mark, ...] = ()


@frozen
class Assembled:
    """What is sent. The same beginning in each call of a session keeps the provider's prompt cache: drop and rewrite
    rarely. Messages that are changed are new objects; those given are never changed in place.
    """

    messages: tuple[Message, ...]
    additions: tuple[Addition, ...] = ()


@frozen
class Compacted:
    """How it went: whether the history is smaller now, and a line for the person."""

    compacted: bool
    line: str = ""


class Pages(Protocol):
    """The stored conversation. Nothing is ever overwritten: a change makes a new branch, the old one stays stored."""

    def rows(self) -> Sequence[tuple[str, Message]]:
        """What a model is shown, each message with the id of its entry."""
        ...

    async def rewrite(self, changed: Mapping[str, Message | None]) -> int:
        """Go on in a new branch from before the first entry of `changed` on, with other messages in place of those
        (None: left out); gives how many entries were stored. Raises UserError for an entry that `rows` does not have,
        or when the conversation has gone on since `rows` was asked for.
        """
        ...

    async def summarise(self, summary: str, first_kept: str) -> None:
        """`summary` stands for all before the entry `first_kept`. Raises UserError as `rewrite`."""
        ...


class ContextEngine(Protocol):
    """One engine. What it raises counts against it and never ends a turn.

    `owns_compaction`: nobody else makes a history smaller; `compact` must then do so. Else `compact` may return None,
    and the runtime does it.
    """

    id: str
    owns_compaction: bool

    async def bootstrap(self, chat: Chat, messages: tuple[Message, ...]) -> None: ...

    async def ingest(self, chat: Chat, message: Message) -> None: ...

    async def assemble(self, chat: Chat, asked: Asked) -> Assembled: ...

    async def compact(self, chat: Chat, asked: Asked, pages: Pages) -> Compacted | None: ...

    async def maintain(self, chat: Chat, pages: Pages) -> None: ...


@frozen
class Recalled:
    """One thing that memory holds: `path` and `line` say where it stands, `score` (0 to 1) how well it fits."""

    text: str
    path: str
    line: int = 1
    score: float = 0.0
    marks: tuple[Mark, ...] = ()


class Recall(Protocol):
    """The port `recall`: what an agent remembers."""

    async def search(self, query: str, *, agent_id: AgentId, owner: str, limit: int) -> tuple[Recalled, ...]:
        """What fits `query` best, best first; `owner` as in `Chat`. Raises UserError where there is no memory."""
        ...


class Make(Protocol):
    """What a manifest of kind `context` names."""

    def __call__(self, settings: Mapping[str, Any], **ports: Any) -> ContextEngine: ...


class Whole:
    """The engine in the box: everything is sent, the runtime compacts. `legacy` is its name in the original."""

    id = "legacy"
    owns_compaction = False

    async def bootstrap(self, chat: Chat, messages: tuple[Message, ...]) -> None:
        """Nothing to learn."""

    async def ingest(self, chat: Chat, message: Message) -> None:
        """Nothing to keep."""

    async def assemble(self, chat: Chat, asked: Asked) -> Assembled:
        return Assembled(asked.messages)

    async def compact(self, chat: Chat, asked: Asked, pages: Pages) -> Compacted | None:
        return None

    async def maintain(self, chat: Chat, pages: Pages) -> None:
        """Nothing to mend."""
