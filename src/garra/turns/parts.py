"""What the turn kernel is given, each as small as it uses it. The real parts fit; a test's too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from garra.config.sections import Config
from garra.core.access import People
from garra.core.errors import UserError
from garra.core.events import RunEvent
from garra.core.ids import RunId, SessionKey
from garra.core.messages import Image, Message
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft
from garra.domains.delivery.inbox import InboxRow
from garra.domains.exec.approvals import Approvals
from garra.domains.questions.register import Questions
from garra.domains.sessions.session import Session
from garra.domains.spending.ledger import Ledger
from garra.runs.run import Run, Turn
from garra.runs.subagents import Subagents
from garra.sdk.channel import Address, Inbound
from garra.sdk.model import Model
from garra.sdk.ports import Clock, Spawn
from garra.turns import allstop

ReplyMode = Literal["", "off", "first", "all"]
"""Whether an answer is shown as a reply to the message it answers: as configured, never, its first part, each part."""


class Inbox(Protocol):
    """The durable inbox; see `domains.delivery.inbox`."""

    async def adopt(self, row_id: str, run_id: str, session_key: str) -> InboxRow: ...

    async def done(self, row_id: str, why: str) -> InboxRow: ...

    async def release(self, row_id: str, delay_s: float = 0.0) -> InboxRow: ...


class Outbox(Protocol):
    """The durable outbox; see `domains.delivery.outbox`."""

    async def put(
        self, messages: Sequence[Draft], *, inbox_id: str | None = None, also: Sequence[str] = (), why: str = "answered"
    ) -> Any:
        """Write the messages and finish the inbox rows they answer, all or nothing. Gives their rows."""
        ...

    async def retry(self, key: str) -> Any: ...


class Timeline(Protocol):
    """The story of a message; see `domains.delivery.timeline`."""

    async def note_all(self, messages: Sequence[str], station: str, detail: str = "") -> None: ...


@frozen
class Asked:
    """What a turn answers: where the answer goes, and under which message it may be shown. `mode` and `verbose` are
    what the session says of it. `label`: the answer begins with this name, and nothing of it is shown before.
    """

    address: Address
    reply_to: str = ""
    mode: ReplyMode = ""
    verbose: str = ""
    label: str = ""


class Watched(Protocol):
    """A run that is shown in its chat while it goes on."""

    async def end(self, texts: Sequence[str]) -> Sequence[Draft]:
        """The run is over, `texts` is its answer (empty: it is silent). Gives what has yet to be sent; never raises."""
        ...

    def finish(self, *, answered: bool) -> None:
        """The answer is in the outbox, or there is none."""
        ...


class Voice(Protocol):
    """How words become messages of a chat: formats, pieces, anchors, and what is seen while a run goes on."""

    def watch(self, run: Run, asked: Asked) -> Watched:
        """Show at once that somebody is at work, and what comes of it. Called when the run has been accepted."""
        ...

    def lines(self, address: Address) -> bool:
        """Whether each line is a message of its own there."""
        ...

    def drafts(self, key: str, asked: Asked, text: str) -> Sequence[Draft]:
        """`text` as messages. The same `key` means the same words for the same cause: they are sent once."""
        ...


@frozen
class Gathered:
    """What was attached: pictures the model can see, and a line for each thing it cannot. `stations` are what the
    message's story tells of it: station and detail.
    """

    images: tuple[Image, ...] = ()
    lines: tuple[str, ...] = ()
    stations: tuple[tuple[str, str], ...] = ()


class Attachments(Protocol):
    """Fetches what came with a message."""

    async def gather(self, event: Inbound, *keys: str) -> Gathered:
        """`keys` are those of the sessions it goes to. What cannot be had becomes a line that says so; it raises where
        the store refuses.
        """
        ...


class Names:
    """Attachments that are only named; where nothing is fetched."""

    async def gather(self, event: Inbound, *keys: str) -> Gathered:
        return Gathered(lines=tuple(f"[attached: {each.kind} {each.name}".rstrip() + "]" for each in event.media))


class Runs(Protocol):
    """The table of runs."""

    async def submit(self, turn: Turn) -> Run: ...

    def active(self, session_key: str) -> Run | None: ...

    def every(self) -> Sequence[Run]: ...

    async def abort(self, session_key: str, run_id: str | None = None, reason: str = "rpc") -> list[RunId]: ...

    def subscribe(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]: ...


class Told(Protocol):
    """As much of a transcript as is asked of it."""

    def messages(self) -> tuple[Message, ...]: ...


class Sessions(Protocol):
    """The sessions."""

    async def get(self, key: str) -> Session | None: ...

    async def ensure(
        self,
        key: str,
        *,
        agent_id: str,
        cwd: str,
        created_via: str = "run",
        session_id: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Session: ...

    async def record(self, key: str, **fields: Any) -> Session: ...

    async def patch(self, key: str, changes: Mapping[str, Any]) -> Session: ...

    async def reset(
        self, key: str, reason: str = "reset", *, cwd: str | None = None, digest: bool = False
    ) -> Session: ...

    async def undo(self, key: str) -> Session: ...

    async def transcript(self, key: str) -> Told: ...


class ModelRow(Protocol):
    """One model that can be chosen."""

    @property
    def ref(self) -> str: ...

    @property
    def available(self) -> bool: ...


class Models(Protocol):
    """The models."""

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model: ...

    def rows(self) -> Sequence[ModelRow]: ...


class Knock(Protocol):
    """A request that a stranger made."""

    @property
    def code(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def created_at(self) -> int: ...


class Guest(Protocol):
    """Somebody who was let in."""

    @property
    def sender(self) -> str: ...

    @property
    def name(self) -> str: ...


class Pairing(Protocol):
    """Who was let in by a code, and who asks to be."""

    def allowed(self, channel: str, account: str) -> People: ...

    def waiting(self, channel: str = "", account: str = "") -> Sequence[Any]: ...

    async def knock(self, request: Mapping[str, str]) -> Knock | None: ...

    async def approve(self, channel: str, code: str, account: str = "") -> Guest: ...


async def cannot_compact(key: str, focus: str = "") -> str:
    """Where nothing sums up conversations. Raises UserError."""
    raise UserError("A conversation cannot be summed up yet. /new begins another one; what was said is kept.")


async def cannot_weigh(key: SessionKey) -> Mapping[str, Any]:
    """Raises UserError: there is nothing here that knows what a turn is made of."""
    raise UserError(f"What fills the window of {key} is not known here.")


async def cannot_dream(agent: str, words: str, owner: bool) -> str:  # noqa: FBT001 - a port
    """Where there is nothing to look through. Raises UserError."""
    raise UserError("There is no memory here that could be looked through.")


@frozen
class Ports:
    """Everything. `workspace` gives an agent's folder; `halt` ends a session's programs and sub-agents, and says how
    many of these; `compact` sums one up, told what matters most, and says what became of it; `warn` is a line for the
    owner; `approvals` are the questions that /approve answers, `cards` the chats where one of them is shown,
    `questions` those of agents; `switch` stops and pauses everything, `ledger` tells what was spent.
    """

    inbox: Inbox
    outbox: Outbox
    timeline: Timeline
    config: Callable[[], Config]
    sessions: Sessions
    runs: Runs
    models: Models
    pairing: Pairing
    voice: Voice
    clock: Clock
    spawn: Spawn
    workspace: Callable[[str], str]
    halt: Callable[[str], Awaitable[int]]
    warn: Callable[[str], None]
    attachments: Attachments = field(default_factory=Names)
    compact: Callable[[str, str], Awaitable[str]] = cannot_compact
    context: Callable[[SessionKey], Awaitable[Mapping[str, Any]]] = cannot_weigh
    dreaming: Callable[[str, str, bool], Awaitable[str]] = cannot_dream
    version: str = ""
    subagents: Subagents | None = None
    approvals: Approvals | None = None
    cards: Callable[[str], Sequence[Address]] = lambda _: ()
    questions: Questions | None = None
    switch: allstop.Switch = field(default_factory=allstop.Open)
    ledger: Ledger | None = None
