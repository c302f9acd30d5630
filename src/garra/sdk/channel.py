"""What a chat channel implements: transport only. Receive, send, and the platform's own facts.

Who may write, which session answers, queues, chunks, formats, limits, retries and duplicates belong to the host. A
channel turns its platform's events into `Inbound` and the host's `Outbound` into its platform's calls; its `codec` does
so purely.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeVar

from garra.core.errors import GarraError
from garra.core.value import frozen
from garra.sdk.ports import Clock, Dial, Files, Http, Spawn

ChatKind = Literal["direct", "group", "channel"]
EventKind = Literal["message", "edit", "reaction", "button", "membership", "other"]
MediaKind = Literal["image", "audio", "voice", "video", "file", "sticker"]
Unit = Literal["utf16", "chars", "bytes"]


@frozen
class Address:
    """Where something was said, and where its answer goes. It travels with the message and is never rebuilt.

    `channel` is the plugin's id, `account` the account's, `chat` the platform's immutable id of the chat. `thread` is a
    topic or thread of it, `parent` the chat it belongs to where the platform makes threads chats of their own.
    `guild` and `team` are the platform's larger houses, `roles` those of the sender in them.
    """

    channel: str
    account: str
    chat: str
    kind: ChatKind
    thread: str = ""
    parent: str = ""
    guild: str = ""
    team: str = ""
    roles: tuple[str, ...] = ()


@frozen
class Sender:
    """Who said it. `id` is the platform's immutable id; without one nobody is let in. The rest is for display."""

    id: str
    name: str = ""
    handle: str = ""
    is_bot: bool = False


@frozen
class Media:
    """Something attached. `ref` is what the channel fetches it by; `size` in bytes, None where not told; a recording
    plays for `seconds`.
    """

    kind: MediaKind
    ref: str
    name: str = ""
    mime: str = ""
    size: int | None = None
    seconds: int | None = None


@frozen
class Inbound:
    """One event of the platform.

    `id` is the platform's message or event id, unique in its chat. `mentioned`: the bot was addressed (name, reply or
    command). `own`: the bot said it itself. `data` is a button's value. `reply_to` the id of the message answered, with
    its words where known. `raw` is the platform's event, for the record.
    """

    id: str
    event: EventKind
    address: Address
    sender: Sender
    text: str = ""
    timestamp: int = 0
    mentioned: bool = False
    own: bool = False
    data: str = ""
    reply_to: str = ""
    reply_text: str = ""
    media: tuple[Media, ...] = ()
    raw: Any = None


@frozen
class Ignored:
    """An event the channel has no use for (`reason` such as `ingest-null`); it is recorded, and nothing follows."""

    id: str
    address: Address | None
    reason: str = "ingest-null"
    raw: Any = None


Receive = Callable[[Inbound | Ignored], Awaitable[None]]
"""Await it before the platform is told or a cursor moves: when it returns, the event is on disk. Twice is fine."""

T = TypeVar("T")


async def receive_all(receive: Callable[[T], Awaitable[object]], events: Sequence[T]) -> tuple[int, Exception | None]:
    """Receive what came in one piece, in its order, as fast as one event: the disk is written once for all.

    How many of them, from the front, are on disk, and what kept the next from being. The platform may be told of so
    many and no more; those behind a fault may be stored or not, so let them come again.
    """
    if len(events) == 1:
        return await _received(receive, events[0])
    ends = await asyncio.gather(*(receive(event) for event in events), return_exceptions=True)
    for count, end in enumerate(ends):
        if isinstance(end, Exception):
            return count, end
        if isinstance(end, BaseException):
            raise end
    return len(events), None


async def _received(receive: Callable[[T], Awaitable[object]], event: T) -> tuple[int, Exception | None]:
    """One alone, without a task of its own."""
    try:
        await receive(event)
    except GarraError as fault:
        return 0, fault
    return 1, None


@frozen
class Button:
    """One choice under a message; `data` comes back as `Inbound.data`, at most 64 bytes."""

    label: str
    data: str


@frozen
class File:
    """A file to send: `path` below the media root, made by the host."""

    kind: MediaKind
    path: str
    name: str
    mime: str
    size: int


@frozen
class Outbound:
    """One message to send, within the channel's limits and in one of its formats.

    `key` is the same for each try of one message: the platform's idempotency key, where it takes one.
    """

    key: str
    address: Address
    text: str
    format: str = "plain"
    reply_to: str = ""
    buttons: tuple[tuple[Button, ...], ...] = ()
    files: tuple[File, ...] = ()
    silent: bool = False


Fault = Literal["passing", "unsure", "refused", "format", "too_long", "auth", "gone", "too_large"]


class SendFailed(GarraError):
    """A send that did not end well.

    `passing`: surely not delivered, try again (after `retry_after_s` if given). `unsure`: it may have been delivered.
    `refused`: the platform will never take it. `format`: its markup was refused, try the next format. `too_long`: it is
    over the limit. `auth`: the credential is no good. `gone`: the chat is not there or the bot is not in it.
    `too_large`: a file over the limit.
    """

    code = "SEND_FAILED"

    def __init__(self, fault: Fault, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, retryable=fault == "passing")
        self.fault = fault
        self.retry_after_s = retry_after_s


class LinkLost(GarraError):
    """`run` ends because of a passing fault (network, server); the host starts it again, later each time, for ever."""

    code = "LINK_LOST"


class LinkRefused(GarraError):
    """`run` ends because the credential is no good; the host stops this account and tells the owner elsewhere."""

    code = "LINK_REFUSED"


@frozen
class Limits:
    """What the platform takes. `text` counts `unit`s of the rendered form; `formats` is the ladder, best first, `plain`
    last. Rates are messages: `per_second` over all chats of the credential, `per_chat_s` seconds between two in a chat,
    `per_group_minute` in a group. Files in bytes. `edits_per_s` 0: messages cannot be edited.
    `traces`: a message that is taken back leaves a mark, so nothing that would be is shown unless its owner wants it.
    `lines`: each line is a message of its own there, so what is said to strangers has one.
    """

    text: int
    unit: Unit = "chars"
    formats: tuple[str, ...] = ("plain",)
    per_second: float = 20.0
    per_chat_s: float = 0.0
    per_group_minute: int = 0
    file_in: int = 20 << 20
    file_out: int = 20 << 20
    edits_per_s: float = 0.0
    traces: bool = False
    lines: bool = False
    idempotent: bool = False
    beat_s: float = 30.0


@frozen
class Identity:
    """Who the bot is on the platform."""

    id: str
    name: str = ""
    handle: str = ""


class Cursor(Protocol):
    """Where the channel's reading stands, on disk. `set` returns when it is stored."""

    async def get(self) -> str | None: ...

    async def set(self, value: str) -> None: ...


class Pulse(Protocol):
    """What a link tells of its health. Only a completed inbound poll or frame is life; sends are not."""

    def alive(self) -> None:
        """An inbound poll completed, or a frame came in."""
        ...

    def connected(self, me: Identity) -> None:
        """The link is up. Told before the first event is received: an event is known again by who heard it."""
        ...

    def note(self, line: str) -> None:
        """A line for the owner, without secrets."""
        ...


@frozen
class Account:
    """One account of a channel as configured: `settings` are the channel's own keys, checked by its schema; secrets in
    them are `core.secret.Secret`.
    """

    id: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Ports:
    """What the host grants a channel. `media` is the root that a `File.path` lies below; None where none is kept.
    `dial` opens a connection to a platform that speaks no HTTP; None where the host has no such door.
    `state` is a folder of this account's own for keys and logins, readable by us alone. `public` is the HTTP door that
    reaches public addresses only, for those that somebody else names; None where the host tells none apart.
    """

    http: Http
    clock: Clock
    spawn: Spawn
    cursor: Cursor
    media: Files | None = None
    dial: Dial | None = None
    state: Files | None = None
    public: Http | None = None


class Channel(Protocol):
    """One account on a platform. It is made with (`account: Account`, `ports: Ports`); making it touches no network."""

    limits: Limits

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Receive until cancelled. Raises LinkLost or LinkRefused; anything else is a fault of ours and passing."""
        ...

    async def send(self, message: Outbound) -> str:
        """Send and give the platform's message id. Raises SendFailed."""
        ...


class Edits(Protocol):
    """A channel whose messages can be changed."""

    async def edit(self, message_id: str, message: Outbound) -> None: ...


class Deletes(Protocol):
    """A channel whose messages can be taken back."""

    async def delete(self, address: Address, message_id: str) -> None: ...


class Reacts(Protocol):
    """A channel that shows a reaction (an emoji, empty to take it away) on a message."""

    async def react(self, address: Address, message_id: str, emoji: str) -> None: ...


class Types(Protocol):
    """A channel that shows that somebody is typing, for a few seconds."""

    async def type(self, address: Address) -> None: ...


class OpensDirect(Protocol):
    """A channel that can write to a person first."""

    async def open_direct(self, user: str) -> Address: ...


class Fetches(Protocol):
    """A channel with attachments."""

    def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        """The bytes, at most `limit`. Raises SendFailed (`too_large`, `gone`, `passing`)."""
        ...


class Inspects(Protocol):
    """A channel that tells what it knows of an account without network, as JSON, without secrets."""

    def inspect(self) -> Mapping[str, Any]: ...


class Hooked(Protocol):
    """A channel that is called by its platform at a path of the gateway's HTTP side."""

    path: str

    async def called(self, method: str, headers: Mapping[str, str], body: bytes, receive: Receive) -> Answered:
        """Verify before anything is parsed, receive, then answer."""
        ...


class Screens(Protocol):
    """A channel that is called, and that tells by the head of a call whether its body is worth reading.

    A body over `body_limit` bytes is refused with 413 before it is read whole.
    """

    body_limit: int

    def screen(self, method: str, headers: Mapping[str, str]) -> Answered | None:
        """What the caller is told instead of being heard; None: read the body, then ask `called`."""
        ...


@frozen
class Answered:
    """What a webhook's caller is told."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
