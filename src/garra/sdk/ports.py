"""What the host grants to plugins. Each port is one door; the host hands in the real one, tests a small one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from typing import Any, Literal, Protocol

from garra.core.approvals import Answer as Decided
from garra.core.approvals import Question
from garra.core.taint import Mark
from garra.core.value import frozen


class Clock(Protocol):
    """Time. Milliseconds since 1970 for what is stored, monotonic seconds for what is waited for."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Task(Protocol):
    """A running task that somebody owns."""

    def cancel(self) -> bool: ...

    def done(self) -> bool: ...

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None: ...

    def __await__(self) -> Any: ...


class Spawn(Protocol):
    """Starts a task that the host owns: it is named, its faults are logged, and it ends with its owner."""

    def __call__(self, work: Coroutine[Any, Any, Any], name: str) -> Task: ...


@frozen
class Answer:
    """An HTTP answer whose head has arrived; header names are lower case."""

    status: int
    headers: Mapping[str, str]


class Body(Protocol):
    """An HTTP answer that is being read. Reading raises Unavailable when the connection breaks or a limit is hit."""

    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def read(self, limit: int = 1 << 20) -> bytes: ...


@frozen
class Via:
    """How one provider or channel is reached: a proxy's address and a file of certificates to trust; None: default."""

    proxy: str | None = None
    ca_file: str | None = None


DIRECT = Via()
"""The host's own way out."""


class Http(Protocol):
    """The one outbound HTTP door: proxies, own certificates, size and time limits, no credentials over redirects."""

    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | tuple[bytes, ...] | None = None,
        timeout: float | None = 60.0,
        connect: float = 10.0,
        via: Via = DIRECT,
    ) -> AbstractAsyncContextManager[Body]:
        """One request; the answer's head has arrived when the context is entered. A large body is best given in pieces
        of some 64 KiB: they are sent one by one, and what else happens is not held up.

        `timeout` seconds bound each wait for bytes (None: the caller watches), `connect` the connection's making.
        Raises Unavailable (details `{"kind": "connect" | "timeout" | "cut" | "refused"}`) when there is no answer.
        """
        ...

    def client(self, via: Via = DIRECT) -> Any:
        """The raw async client, for a vendor's SDK that insists on one; pooled, so it is not closed by its user."""
        ...

    async def warm(self) -> None:
        """Load what the first request would have to load."""
        ...


class Stream(Protocol):
    """One open connection. Everything raises Unavailable (details `{"kind": "timeout" | "cut"}`) when it breaks."""

    async def read(self, most: int = 1 << 16, timeout: float | None = None) -> bytes:
        """The next bytes, at most `most`; empty when the other side has closed. `timeout` is seconds."""
        ...

    async def write(self, data: bytes) -> None:
        """Returns when the data is on its way; the other side may never see it."""
        ...

    async def close(self) -> None: ...


class WebSocket(Protocol):
    """One open WebSocket; it answers pings while it is read. Everything raises Unavailable when it breaks (details
    `{"kind": "timeout" | "cut"}`) or was closed (`{"kind": "closed", "code": …, "reason": …}`; 1006: without a word).
    `heard` counts the frames that came in, pings and pongs among them.
    """

    heard: int

    async def ping(self) -> None:
        """Ask for a sign of life, which is heard while somebody reads."""
        ...

    async def read(self, timeout: float | None = None) -> str | bytes:
        """The next whole message. `timeout` is seconds without a byte."""
        ...

    async def write(self, text: str) -> None:
        """One text message; it returns when it is on its way."""
        ...

    async def close(self, code: int = 1000) -> None: ...


class Dial(Protocol):
    """The one way out for platforms that speak WebSocket, or no HTTP: the same proxies, certificates, address rules."""

    async def open(self, host: str, port: int, *, tls: bool = True, connect: float = 15.0, via: Via = DIRECT) -> Stream:
        """Connect within `connect` seconds. Raises Unavailable (details as for Http)."""
        ...

    async def websocket(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        connect: float = 15.0,
        limit: int = 16 << 20,
        via: Via = DIRECT,
    ) -> WebSocket:
        """Connect to a ws:// or wss:// address; a message is at most `limit` bytes.

        Raises Unavailable (details as for Http; `status` where the server refused with one).
        """
        ...

    async def plug(
        self, host: str, port: int, spawn: Spawn, *, tls: bool = True, connect: float = 15.0, via: Via = DIRECT
    ) -> Any:
        """The same for a library that insists on a `socket.socket`: a connected local one, whose other end leads there.

        What `spawn` starts carries the bytes until either end closes; who asked closes it. Raises as `open`.
        """
        ...

    async def trust(self, via: Via = DIRECT) -> Any:
        """The `ssl.SSLContext` that certificates are checked by, for a library that agrees on TLS midway (STARTTLS).

        Raises Unavailable for a `ca_file` that cannot be read.
        """
        ...


class Worker(Protocol):
    """A child program of ours that is spoken to in lines."""

    async def send(self, line: bytes) -> None:
        """One line, without its end. Raises Unavailable when the child listens no more."""
        ...

    async def line(self) -> bytes:
        """The next line it says; empty when it has ended."""
        ...

    async def kill(self) -> None: ...


class Children(Protocol):
    """Starts modules of ours in a process of their own; each ends with this process at the latest."""

    async def start(self, module: str) -> Worker:
        """Run `python -m module`. Raises Unavailable."""
        ...


class Weights(Protocol):
    """Where the files of local models are."""

    async def path(self, model: str) -> str:
        """The file of `model`, a name of the catalog or a path; fetched now if it is small and missing.

        Raises Unavailable with a line on how to get it.
        """
        ...


@frozen
class Found:
    """One entry of a folder: `size` in bytes, `modified` in milliseconds since 1970."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    modified: int


class Files(Protocol):
    """One folder and what is below it; no symbolic link is followed in any part of a path, nothing leaves it.

    Paths are relative to the folder, or absolute and below it. Every refusal is a ToolFailed that says why.
    All calls block: run them in a thread (`asyncio.to_thread`).
    """

    root: str

    def read(self, path: str, limit: int) -> bytes:
        """At most `limit` bytes; raises ToolFailed when the file is larger, missing, or no plain file."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replace the file atomically, making its folders."""
        ...

    def remove(self, path: str) -> None: ...

    def rename(self, path: str, to: str) -> None: ...

    def entries(self, path: str) -> list[Found]:
        """What stands in one folder, sorted by name."""
        ...

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        """At most `size` bytes from byte `start`, and how large the whole file is."""
        ...

    def walk(self, path: str, limit: int, skip: Collection[str] = ()) -> list[Found]:
        """Files below `path`, folder by folder, at most `limit`; links and folders named in `skip` not entered."""
        ...

    def stat(self, path: str) -> Found | None: ...


@frozen
class Launch:
    """A command to run: `command` is a shell line, run by bash in the session's sandbox.

    `workdir` is below the workspace. `env` adds to a built environment. Times are milliseconds and seconds as named;
    None is the owner's setting, `timeout_s` 0 no limit. `call_id` is the id of the call that asks for it.
    """

    command: str
    workdir: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    yield_ms: int | None = None
    background: bool = False
    timeout_s: float | None = None
    pty: bool = False
    host: Literal["auto", "sandbox", "gateway", "node"] = "auto"
    elevated: bool = False
    call_id: str = ""


@frozen
class Ran:
    """What a command did so far. `session` names it in the `process` tool once it is in the background. `reached` are
    the hosts beyond this machine that it spoke with: its output may be their words.
    """

    status: Literal["completed", "failed", "killed", "timeout", "running"]
    output: str
    exit_code: int | None = None
    signal: str | None = None
    session: str | None = None
    duration_ms: int = 0
    workdir: str = ""
    truncated: bool = False
    command: str = ""
    pid: int = 0
    started_at: int = 0
    reached: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What of its output may be somebody else's words."""
        return tuple(Mark("network", host) for host in self.reached)


@frozen
class Hit:
    """One line that matched: `line` counts from 1."""

    path: str
    line: int
    text: str


class Exec(Protocol):
    """Programs of one session, each in its own process group and sandbox."""

    async def run(self, launch: Launch, update: Callable[[str], None]) -> Ran:
        """Run it; give back when it ended or went to the background. Cancelling kills its whole group.

        Raises ToolFailed when it may not or cannot start (no sandbox, refused, bad folder).
        """
        ...

    def running(self) -> Sequence[Ran]:
        """What went to the background, newest first, the ended ones too."""
        ...

    async def poll(self, session: str, wait_ms: int = 0) -> Ran:
        """What is new since the last poll."""
        ...

    def log(self, session: str, offset: int, limit: int) -> str:
        """Lines `offset` to `offset + limit` of all its output."""
        ...

    async def send(self, session: str, data: bytes) -> Ran: ...

    async def kill(self, session: str) -> Ran: ...

    async def settles(self, what: Launch | str) -> bool:
        """Whether nobody else has to ask a person about it in a turn that has read text from outside.

        So it is where a command that is to run, or what is typed into a background one (by its name), can harm nobody:
        no network, nothing beyond the workspace, none of the files that the agent goes by; where it will not run at
        all; and where `run` itself asks.
        """
        ...

    async def match(self, pattern: str, texts: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
        """Lines of named `texts` in which the regular expression `pattern` is found, at most `limit`.

        It runs in a child that is ended when it takes too long, so no pattern can hold up the host. Raises ToolFailed
        for a bad pattern, or one that took too long.
        """
        ...


class Grants(Protocol):
    """What a tool may ask of the host beyond files and programs. Each call goes through the caller's own rights."""

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        """Call a method of the gateway's own table as this session. Raises UserError as that method does."""
        ...


class Asker(Protocol):
    """Asks a person."""

    async def ask(self, question: Question) -> Decided:
        """The answer; it waits for as long as the question lives. At once `deny`, with the reason, where nobody can be
        asked. Cancelling takes the question back. Never raises but for that.
        """
        ...


Receive = Callable[[Any], Awaitable[None]]
