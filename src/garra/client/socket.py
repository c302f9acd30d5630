"""A WebSocket over a plain blocking socket: what one short call needs, and nothing that takes time to load."""

from __future__ import annotations

import os
import socket
import struct
from binascii import b2a_base64
from hashlib import sha1

from garra.core.errors import Unavailable

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
LIMIT = 64 << 20
START = ". Start one with: garra gateway run"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Unreachable(Unavailable):
    """No conversation: `details` is `{kind: refused | timeout | closed | rejected, code?, reason?}`."""


def fault(kind: str, message: str, **more: object) -> Unreachable:
    return Unreachable(message, details={"kind": kind, **more})


def nobody(url: str, why: str) -> Unreachable:
    """Nobody is there; of this machine's own gateway also how to start one."""
    return fault("refused", f"no gateway answers at {url}: {why}{START if own(url) else ''}")


def own(url: str) -> bool:
    """Whether an address is this machine's."""
    return parts(url)[1] in {"127.0.0.1", "localhost", "::1"}


def reason(message: str, url: str) -> str:
    """What `nobody` said, without the words that its reader says already: the bare reason."""
    return message.removeprefix(f"no gateway answers at {url}: ").removesuffix(START)


class WebSocket:
    """One open connection. Every wait ends after `timeout_s` (None: never) with Unreachable of kind timeout."""

    def __init__(self, url: str, timeout_s: float | None) -> None:
        self.url = url
        self._buffer = bytearray()
        secure, host, port, path = parts(url)
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except TimeoutError as error:
            raise fault("timeout", f"no answer from the gateway at {url}") from error
        except OSError as error:
            raise nobody(url, error.strerror or str(error)) from error
        upgraded = False
        try:
            if secure:
                self._socket = _secured(self._socket, host)
            self._upgrade(host, port, path)
            upgraded = True
        except TimeoutError as error:
            raise fault("timeout", f"no answer from the gateway at {url}") from error
        except OSError as error:
            raise nobody(url, error.strerror or str(error)) from error
        finally:
            if not upgraded:
                self._socket.close()

    def _upgrade(self, host: str, port: int, path: str) -> None:
        key = b2a_base64(os.urandom(16), newline=False)
        shown = f"[{host}]" if ":" in host else host
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {shown}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key.decode()}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > 65_536:
                raise fault("rejected", f"{self.url} does not speak WebSocket")
            self._more()
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer = bytearray(rest)
        first = head.split(b"\r\n", 1)[0].decode("latin-1")
        wanted = b2a_base64(sha1(key + GUID, usedforsecurity=False).digest(), newline=False)
        if " 101 " not in f"{first} " or wanted not in head:
            raise fault("rejected", f"{self.url} is no gateway: it answered {first or 'nothing'}")

    def limit(self, timeout_s: float | None) -> None:
        """How long the next waits may take."""
        self._socket.settimeout(timeout_s)

    def send(self, data: bytes, kind: int = TEXT) -> None:
        size = len(data)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65_536:
            head += struct.pack("!BH", 0xFE, size)
        else:
            head += struct.pack("!BQ", 0xFF, size)
        mask = os.urandom(4)
        try:
            self._socket.sendall(head + mask + masked(data, mask))
        except OSError as error:
            raise fault("closed", f"the gateway at {self.url} went away") from error

    def receive(self) -> bytes:
        """The next whole message; answers pings on the way. Raises Unreachable when there is none any more."""
        whole = bytearray()
        while True:
            last, kind, data = self._frame()
            if kind == PING:
                self.send(data, PONG)
            elif kind == CLOSE:
                raise self._closed(data)
            elif kind != PONG:
                whole += data
                if last:
                    return bytes(whole)

    def close(self) -> None:
        """Say goodbye without waiting for an answer."""
        try:
            self.send(struct.pack("!H", 1000), CLOSE)
        except Unreachable:
            pass
        finally:
            self._socket.close()

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._take(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._take(8))
        if size > LIMIT:
            raise fault("closed", f"the gateway at {self.url} sent a message of {size} bytes")
        return bool(first & 0x80), first & 0x0F, self._take(size)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            try:
                self._more()
            except TimeoutError as error:
                raise fault("timeout", f"no answer from the gateway at {self.url}") from error
            except OSError as error:
                raise fault("closed", f"the gateway at {self.url} went away") from error
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _more(self) -> None:
        chunk = self._socket.recv(262_144)
        if not chunk:
            raise fault("closed", f"the gateway at {self.url} closed the connection")
        self._buffer += chunk

    def _closed(self, data: bytes) -> Unreachable:
        code = struct.unpack("!H", data[:2])[0] if len(data) >= 2 else 1005
        reason = data[2:].decode("utf-8", "replace")
        why = f": {reason}" if reason else ""
        return fault(
            "closed", f"the gateway at {self.url} closed the connection ({code}){why}", code=code, reason=reason
        )


def parts(url: str) -> tuple[bool, str, int, str]:
    """(secure, host, port, path) of `ws://host:port/path`. Raises Unreachable when it is no such address."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    secure = scheme == "wss"
    host, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = place, "443" if secure else "80"
    if not port.isdigit() or not host:
        raise fault("refused", f"{url} is no gateway's address")
    return secure, host.strip("[]"), int(port), slash + path or "/"


def masked(data: bytes, mask: bytes) -> bytes:
    """`data` under a WebSocket mask of four bytes; twice is nothing."""
    size = len(data)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(repeated, "little")).to_bytes(size, "little")


def _secured(plain: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415 - a gateway on this machine needs no certificates

    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)
