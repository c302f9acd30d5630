"""One HTTP connection: each head bounded in size and time, each body in time, until somebody vouches for it.

uvicorn's protocol, told apart into stages by its parser. What waits does so in the `Room` that all connections share.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from garra.gateway.room import Room
from garra.gateway.site import VOUCH

HEAD_BYTES: Final = 65_536
"""Of one request head, and of what follows a chunked body."""

PIPELINED: Final = 16
"""So many requests may wait for the answer to the one before."""

GRACE_S: Final = 2.0

WORDS: Final = {
    408: "The request took too long",
    431: f"The request head is larger than {HEAD_BYTES} bytes",
    503: "Too many unfinished requests",
}

Stage = Literal["idle", "head", "body", "busy", "untaken", "ending", "gone"]
"""Between requests; reading one; making the answer; the answer is not read; thrown out; no HTTP any more."""


class Patient:
    """The transport as an answer sees it that may come before the body is read: closing on unread bytes would reset
    the connection, and the answer would be lost with it."""

    __slots__ = ("_front",)

    def __init__(self, front: Front) -> None:
        self._front = front

    def write(self, data: bytes) -> None:
        self._front.transport.write(data)

    def is_closing(self) -> bool:
        return self._front.transport.is_closing()

    def close(self) -> None:
        self._front.part()


class Front(HttpToolsProtocol):
    """A connection of the port until it is a WebSocket."""

    def __init__(self, config: Config, server_state: ServerState, room: Room) -> None:
        super().__init__(config=config, server_state=server_state, app_state={})
        self.room = room
        self.address = ""
        self.since = self._deadline = self._moved = 0.0
        self.held = 0
        self._stage: Stage = "head"
        self._raw = self._parsed = self._fed = 0
        self._known = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self.address = self.client[0] if self.client else ""
        self._wait("head", self.room.limits.head_s)
        self.room.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave("gone")
        super().connection_lost(exc)

    def _wait(self, stage: Stage, seconds: float) -> None:
        self._stage = stage
        self.since = self._moved = self.loop.time()
        self._deadline = self.since + seconds
        self.room.enter(self)

    def _leave(self, stage: Stage) -> None:
        self._stage = stage
        self.room.leave(self)

    # What comes in.

    def data_received(self, data: bytes) -> None:
        if self._stage == "ending" or self.transport.is_closing():
            return
        if self._stage != "busy":
            self._raw += len(data)
            self.room.enter(self)
        self._fed = 0
        super().data_received(data)
        if self._stage == "body":
            self._body_came()
        elif self._stage in ("idle", "head") and self._raw > HEAD_BYTES:
            self._refuse(431)

    def _body_came(self) -> None:
        """Progress is what the body grew by; the rest is framing, of which there is no end otherwise."""
        if self._fed:
            self._moved = self.loop.time()
            self._raw = 0
        if self._raw > HEAD_BYTES:
            self._refuse(431)
            return
        cycle = self.cycle
        if cycle is not None and cycle.transport is self.transport:
            cycle.transport = cast(Any, Patient(self))
        if self._fed and not self._known and cycle is not None and not cycle.response_complete:
            self.room.hold(self, self._fed)

    def on_message_begin(self) -> None:
        if self._stage in ("idle", "busy", "untaken"):
            self._wait("head", self.room.limits.head_s)
        self._parsed = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._parsed += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._parsed += len(name) + len(value) + 4
        if self._stage == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._stage == "ending":
            return
        if self._parsed > HEAD_BYTES or len(self.pipeline) >= PIPELINED:
            self._refuse(431)
            return
        self._raw = self._parsed = 0
        self._known = False
        self._wait("body", self.room.limits.body_s)
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            cast(dict[str, Any], self.cycle.scope)[VOUCH] = self.vouch

    def on_body(self, body: bytes) -> None:
        if self._stage != "ending":
            self._fed += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self._stage == "ending":
            return
        self._raw = 0
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._settle()
        else:
            self._leave("busy")

    def handle_websocket_upgrade(self) -> None:
        self._leave("gone")
        super().handle_websocket_upgrade()

    # What goes out.

    def on_response_complete(self) -> None:
        if self._stage == "ending":
            return
        super().on_response_complete()
        if self._stage in ("busy", "untaken") and self.cycle.response_complete:
            self._settle()

    def _settle(self) -> None:
        """An answer is given; a stranger has to read it too, even where the connection closes after it."""
        if not self._known and self.transport.get_write_buffer_size():
            self._wait("untaken", self.room.limits.answer_s)
        elif not self.transport.is_closing():
            self._wait("idle", self.room.limits.head_s)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stage == "busy" and not self._known:
            self._wait("untaken", self.room.limits.answer_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stage == "untaken" and self.cycle.response_complete:
            self._settle()
        elif self._stage == "untaken":
            self._leave("busy")

    def vouch(self) -> None:
        """The secret of the request was right: it may take its time, and counts no more."""
        self._known = True
        self.room.forgive(self)
        if self._stage == "untaken":
            self._leave("busy")

    def part(self) -> None:
        """The answer is given and nothing follows; what is still sent is thrown away for a while."""
        if self._stage == "body":
            self._end(self.room.limits.linger_s)
        else:
            self.transport.close()

    # Being turned out.

    @property
    def unfinished(self) -> bool:
        return self._stage in ("head", "untaken") or (self._stage == "body" and not self._known)

    def due(self, now: float) -> bool:
        if self._stage in ("head", "body") and self.flow.read_paused and (self._known or not self.flow.write_paused):
            return False  # it is we who do not read
        if self._stage != "body":
            return now >= self._deadline
        if self._known and not self.cycle.response_complete:
            return now - self._moved >= self.room.limits.known_still_s
        return now >= self._deadline or now - self._moved >= self.room.limits.still_s

    def turn_out(self, status: int) -> None:
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.abort()  # closing would wait for a reader
        elif self._stage == "idle" or (self._stage == "head" and not self._raw):
            self._leave("gone")
            self.transport.close()
        elif self._stage in ("head", "body"):
            self._refuse(status)
        else:
            self.abort()

    def abort(self) -> None:
        self._leave("gone")
        self.transport.abort()

    def _refuse(self, status: int) -> None:
        """Answer in the place of the application, where no other answer is under way."""
        cycle = self.cycle
        running = cycle is not None and not cycle.response_complete
        if self.pipeline or (running and (self._stage != "body" or cycle.response_started)):
            self.abort()
            return
        if cycle is None or running or self._stage != "body":
            self.transport.write(_answer(status))
        if running:
            cycle.disconnected = True
            cycle.body = bytearray()
            cycle.message_event.set()
        self._end(GRACE_S)

    def _end(self, seconds: float) -> None:
        self.room.forgive(self)
        if self.transport.is_closing():
            self.abort()
            return
        self.flow.resume_reading()
        self.transport.write_eof()
        self._wait("ending", seconds)


def _answer(status: int) -> bytes:
    body = f"{WORDS[status]}\n".encode()
    head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    return STATUS_LINE[status] + head + body
