"""One WebSocket as bytes: upgrade, whole messages in, whole messages out, and never more in memory than allowed.

The framing is the `websockets` library's sans-I/O protocol under uvicorn's server; there is no task, no queue and no
compression context per connection, so an idle one costs little. What is said in one go of the loop leaves in one write.
What is written while the other side does not read waits here: droppable events are dropped early, and who holds back
too much is cut.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import MutableSet
from typing import Any, Final, Protocol, cast

from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Upgrade
from websockets.server import ServerProtocol

from garra.core import frames
from garra.gateway.room import Room

DROP_BYTES: Final = 1 << 20
"""Above this many waiting bytes a droppable event is not kept: its successor repeats what it said."""

EVENT_BYTES: Final = 8 << 20
"""Above this many waiting bytes another event cuts the connection; responses may fill `frames.BUFFERED_BYTES`."""

JOIN_BYTES: Final = 16 << 10
"""Up to this size messages are copied into one write; the parts of a larger one are written side by side, and stay
shared."""

GRACE_S: Final = 5.0

FENCE_S: Final = 5.0
"""So long a fence holds at most."""

FENCE: Final[tuple[bytes, ...]] = ()
"""Among held messages: a fence that is yet to be put up."""


class Guest(Protocol):
    """Who sits behind a socket. None of these may raise."""

    def received(self, data: bytes) -> None: ...

    def ponged(self) -> None: ...

    def slow(self) -> None: ...

    def lost(self) -> None: ...


class Porter(Protocol):
    """Who decides about an upgrade."""

    def enter(self, socket: Socket, upgrade: Upgrade) -> Guest | tuple[int, str]:
        """The guest for this socket, or the HTTP status and text of a refusal."""
        ...

    def seated(self, guest: Guest) -> None:
        """The upgrade is answered; the guest may be spoken to."""
        ...


class Framing(ServerProtocol):
    """The library's protocol, which says nothing about a message that is too large."""

    def fail(self, code: int, reason: str = "") -> None:
        super().fail(code, "" if code == 1009 else reason)


class Fading:
    """A connection that was not let in and reads its refusal; where the port is full it makes room early."""

    __slots__ = ("_socket", "address", "held", "since")
    unfinished: Final = False

    def __init__(self, socket: Socket, since: float) -> None:
        self._socket, self.address, self.since, self.held = socket, socket.address, since, 0

    def due(self, now: float) -> bool:
        return now - self.since >= GRACE_S

    def turn_out(self, status: int) -> None:
        self.abort()

    def abort(self) -> None:
        self._socket.abort()


class Socket(asyncio.Protocol):
    """One connection after its HTTP upgrade, as uvicorn's `ws` protocol."""

    __slots__ = (
        "_answered",
        "_asked",
        "_closing",
        "_crowd",
        "_fading",
        "_fence",
        "_fence_timer",
        "_guest",
        "_held",
        "_joined",
        "_paused",
        "_pieces",
        "_pong",
        "_porter",
        "_room",
        "_timer",
        "_transport",
        "_waiting",
        "_wire",
        "address",
        "port",
    )

    def __init__(self, porter: Porter, crowd: MutableSet[Any], room: Room) -> None:
        self._porter = porter
        self._room = room
        self._fading: Fading | None = None
        self._crowd = crowd
        self._wire = Framing(max_size=frames.PREAUTH_BYTES)
        self._guest: Guest | None = None
        self._held: deque[tuple[bytes, ...]] | None = None
        self._waiting = 0
        self._joined: bytearray | None = None
        self._paused = False
        self._closing = False
        self._pieces: bytearray | None = None
        self._pong = b""
        self._asked = self._answered = self._fence = 0
        self._fence_timer: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.address, self.port = "", 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address, self.port = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else ("", 0)
        self._crowd.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._crowd.discard(self)
        self._held = self._joined = None
        if self._fading:
            self._room.leave(self._fading)
        for timer in (self._timer, self._fence_timer):
            if timer:
                timer.cancel()
        if self._guest:
            self._guest.lost()

    def data_received(self, data: bytes) -> None:
        self._wire.receive_data(data)
        for event in self._wire.events_received():
            if isinstance(event, Frame):
                self._frame(event)
            elif isinstance(event, Upgrade):
                self._upgrade(event)
        self._flush()

    def _flush(self) -> None:
        self._spill()
        output = self._wire.data_to_send()
        ending = self._closing or self._wire.close_rcvd or self._wire.parser_exc
        if output and self._paused and not ending:
            self._pong = output[-1]  # only pongs come here; the last one answers for all
        elif output and not self._transport.is_closing():
            self._transport.write(b"".join(output))
        if self._wire.parser_exc is not None or self._wire.handshake_exc is not None:
            self._fade()
        elif self._wire.close_rcvd:
            self._closing = True
            self._transport.close()

    def _fade(self) -> None:
        """End after a fault of the other side. What it still sends is read and thrown away for a moment: closing on
        unread bytes would reset the connection, and the close frame would be lost with it."""
        if not self._closing and not self._transport.is_closing():
            self._closing = True
            self._transport.write_eof()
            self._fading = Fading(self, asyncio.get_running_loop().time())
            self._room.enter(self._fading)

    def _upgrade(self, upgrade: Upgrade) -> None:
        answer = self._porter.enter(self, upgrade)
        refused = isinstance(answer, tuple)
        if isinstance(answer, tuple):
            response = self._wire.reject(*answer)
        else:
            self._guest = answer
            response = self._wire.accept(upgrade)
            refused = response.status_code != 101
        self._wire.send_response(response)
        self._flush()
        if refused:
            self._fade()
        elif self._guest:
            self._porter.seated(self._guest)

    def _frame(self, frame: Frame) -> None:
        if self._guest is None or self._closing:
            return
        match frame.opcode:
            case Opcode.TEXT | Opcode.BINARY if frame.fin:
                self._guest.received(bytes(frame.data))
            case Opcode.TEXT | Opcode.BINARY:
                self._pieces = bytearray(frame.data)
            case Opcode.CONT:
                self._continued(frame, self._guest)
            case Opcode.PONG:
                self._ponged(bytes(frame.data))
                self._guest.ponged()

    def _continued(self, frame: Frame, guest: Guest) -> None:
        # One growing buffer: a list of many small pieces would cost many times what they hold.
        pieces = bytearray() if self._pieces is None else self._pieces
        pieces += frame.data
        self._pieces = None if frame.fin else pieces
        if frame.fin:
            guest.received(bytes(pieces))

    def widen(self) -> None:
        """The other side is known now: allow the full message size."""
        self._wire.max_message_size = frames.FRAME_BYTES

    @property
    def open(self) -> bool:
        return not self._closing

    @property
    def buffered(self) -> int:
        """Bytes that wait for the other side to read."""
        return self._waiting + len(self._joined or b"") + self._transport.get_write_buffer_size()

    def send(self, *parts: bytes, droppable: bool = False, limit: int = EVENT_BYTES) -> None:
        """One text message of these parts. Never blocks; nothing happens on a closing socket."""
        if self._closing:
            return
        if self._paused or self._fence:
            self._hold(parts, droppable, limit)
        else:
            self._write(parts)

    def _write(self, parts: tuple[bytes, ...]) -> None:
        size = sum(map(len, parts))
        if size > JOIN_BYTES:
            self._spill()
            self._transport.writelines((_head(size), *parts))
        else:
            self._join(_head(size), *parts)

    def _join(self, *parts: bytes) -> None:
        if self._joined is None:
            self._joined = bytearray()
            asyncio.get_running_loop().call_soon(self._spill)
        for part in parts:
            self._joined += part
        if len(self._joined) > JOIN_BYTES:
            self._spill()

    def _spill(self) -> None:
        """Write what was joined; before anything else that is written."""
        joined, self._joined = self._joined, None
        if joined and not self._transport.is_closing():
            self._transport.write(joined)

    def _hold(self, parts: tuple[bytes, ...], droppable: bool, limit: int) -> None:  # noqa: FBT001 - two facts of send
        if droppable and self._waiting > DROP_BYTES:
            return
        if self._held is None:
            self._held = deque()
        self._held.append(parts)
        self._waiting += sum(map(len, parts))
        if self.buffered > limit and self._guest:
            self._forget()
            self._guest.slow()

    def _forget(self) -> None:
        self._held = None
        self._waiting = 0

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._pong:
            self._transport.write(self._pong)
            self._pong = b""
        self._drain()

    def _drain(self) -> None:
        while self._held and not self._paused and not self._fence:
            parts = self._held.popleft()
            if parts is FENCE:
                self._put_up()
                continue
            self._waiting -= sum(map(len, parts))
            self._write(parts)

    def ping(self) -> None:
        """A ping that carries its number, so that its pong is known."""
        if not self._closing:
            self._asked += 1
            number = b"%d" % self._asked
            self._join(bytes((0x89, len(number))), number)

    def fence(self) -> None:
        """What is sent from now on waits until the other side has read what was sent before: a ping goes out, and its
        pong ends the wait, or `FENCE_S` does. Who has answered no ping yet is not waited for.

        A client may read much at once and handle all of it before the code that waits for an answer goes on; only what
        comes in a later read comes after that.
        """
        if self._closing or not self._answered:
            return
        if self._paused or self._fence:
            self._held = deque() if self._held is None else self._held
            self._held.append(FENCE)
        else:
            self._put_up()

    def _put_up(self) -> None:
        self.ping()
        self._fence = self._asked
        self._fence_timer = asyncio.get_running_loop().call_later(FENCE_S, self._take_down)

    def _take_down(self) -> None:
        self._fence = 0
        if self._fence_timer:
            self._fence_timer.cancel()
            self._fence_timer = None
        self._drain()

    def _ponged(self, data: bytes) -> None:
        if data.isdigit() and len(data) < 10:
            self._answered = min(int(data), self._asked)
        if self._fence and self._answered >= self._fence:
            self._take_down()

    def close(self, code: int, reason: str = "") -> None:
        """Say goodbye after what waits, and give the other side a moment to answer."""
        if self._closing:
            return
        for parts in self._held or ():
            if parts is not FENCE:
                self._write(parts)
        self._forget()
        self._closing = True
        try:
            self._wire.send_close(code, frames.reason(reason))
        except InvalidState:
            self.abort()
            return
        self._flush()
        self._timer = asyncio.get_running_loop().call_later(GRACE_S, self.abort)

    def abort(self) -> None:
        """Drop the connection without farewell."""
        self._closing = True
        if self._fading:
            self._room.leave(self._fading)
        self._transport.abort()

    def shutdown(self) -> None:
        """What uvicorn calls when the server ends."""
        self.close(1012, "service restart")


def _head(size: int) -> bytes:
    """The head of an unmasked, unfragmented text frame (RFC 6455, 5.2)."""
    if size < 126:
        return bytes((0x81, size))
    if size < 65_536:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")
