"""A WebSocket out, over a connection of the same door: its proxies, certificates and address rules hold here too."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from secrets import token_bytes
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.frames import Frame, Opcode
from websockets.protocol import Event, State
from websockets.uri import WebSocketURI, parse_uri

from garra.core.errors import Unavailable
from garra.sdk.ports import Stream


class Socket:
    """`sdk.ports.WebSocket`."""

    def __init__(self, stream: Stream, protocol: ClientProtocol, host: str) -> None:
        self._stream, self._protocol, self._host = stream, protocol, host
        self._whole: deque[str | bytes] = deque()
        self._part, self._text = bytearray(), True
        self._writing = asyncio.Lock()
        self.heard = 0

    async def read(self, timeout: float | None = None) -> str | bytes:
        while not self._whole:
            for event in await self._events(timeout):
                if isinstance(event, Frame):
                    self._take(event)
        return self._whole.popleft()

    async def write(self, text: str) -> None:
        if self._protocol.state is not State.OPEN:
            raise self._over()
        self._protocol.send_text(text.encode())
        await self._flush()

    async def ping(self) -> None:
        if self._protocol.state is not State.OPEN:
            raise self._over()
        self._protocol.send_ping(token_bytes(4))
        await self._flush()

    async def close(self, code: int = 1000) -> None:
        try:
            if self._protocol.state is State.OPEN:
                self._protocol.send_close(code)
                await self._flush()
        except Unavailable:
            pass  # it is gone already, which is what was wanted
        finally:
            await self._stream.close()

    async def shake(self, headers: Mapping[str, str], timeout: float) -> None:
        """The handshake. Raises Unavailable."""
        request = self._protocol.connect()
        for name, value in headers.items():
            request.headers[name] = value
        self._protocol.send_request(request)
        await self._flush()
        while self._protocol.state is State.CONNECTING:
            events = await self._events(timeout)
            for event in events:
                if isinstance(event, Frame):
                    self._take(event)

    async def _events(self, timeout: float | None) -> list[Event]:
        if self._protocol.state is State.CLOSED or self._protocol.close_rcvd is not None:
            raise self._over()
        data = await self._stream.read(timeout=timeout)
        if data:
            self._protocol.receive_data(data)
        else:
            self._protocol.receive_eof()
        if (refused := self._protocol.handshake_exc) is not None:
            raise self._refused(refused)
        await self._flush()
        events = self._protocol.events_received()
        if not data and not events:
            raise self._over()
        self.heard += len(events)
        return events

    def _take(self, frame: Frame) -> None:
        """One frame; a message may come in several."""
        if frame.opcode in {Opcode.TEXT, Opcode.BINARY}:
            self._part, self._text = bytearray(), frame.opcode is Opcode.TEXT
        elif frame.opcode is not Opcode.CONT:
            return
        self._part += frame.data
        if frame.fin:
            self._whole.append(self._part.decode("utf-8", "replace") if self._text else bytes(self._part))

    async def _flush(self) -> None:
        data = b"".join(self._protocol.data_to_send())
        if data:
            async with self._writing:
                await self._stream.write(data)

    def _over(self) -> Unavailable:
        told = self._protocol.close_rcvd
        code = told.code if told is not None else 1006
        said = f" ({code}{' ' + told.reason if told is not None and told.reason else ''})" if told is not None else ""
        reason = told.reason if told is not None else ""
        line = f"{self._host} closed the connection{said}"
        return Unavailable(line, details={"kind": "closed", "code": code, "reason": reason})

    def _refused(self, refused: Exception) -> Unavailable:
        if isinstance(refused, InvalidStatus):
            status = refused.response.status_code
            line = f"{self._host} refuses the WebSocket with {status}"
            return Unavailable(line, details={"kind": "refused", "status": status})
        kind = "refused" if isinstance(refused, InvalidHandshake) else "cut"
        return Unavailable(f"{self._host} does not speak WebSocket", details={"kind": kind})


def address(url: str) -> tuple[WebSocketURI, str, int, bool]:
    """The parts of an address: as the protocol takes it, host, port, whether by TLS. Raises Unavailable."""
    try:
        parsed = parse_uri(url)
    except InvalidURI:
        raise Unavailable(f"{urlsplit(url).hostname or 'that'} is no ws:// or wss:// address") from None
    return parsed, parsed.host, parsed.port, parsed.secure


def made(stream: Stream, parsed: WebSocketURI, host: str, limit: int) -> Socket:
    return Socket(stream, ClientProtocol(parsed, max_size=limit), host)
