"""Links to files that a platform does not take: signed, for a few days, to one file of the media folder and no other.

Nothing is stored for a link. It holds the file's place and its end under a key that only this gateway has, so it can
neither be guessed nor bent; whoever has it gets that file until then, or until the file is swept away.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from garra.core.errors import NotFound
from garra.core.value import frozen
from garra.domains.delivery.media import MediaRoot
from garra.sdk.channel import File
from garra.sdk.ports import Clock

PATH: Final = "/files/"
DAYS: Final = 3
"""How long a link is good."""

_LONGEST: Final = 2_048
"""Characters of a link's last part at most."""

_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))


class Shelf(Protocol):
    """Where the key is kept."""

    async def get(self, key: str) -> Any: ...

    async def set(self, key: str, value: Any, *, durable: bool = False) -> None: ...


@frozen
class Shared:
    """A file that a link leads to."""

    path: Path
    name: str


class Shares:
    """Makes links and finds what they lead to. `origin` gives the address the gateway is known by outside, as
    configured (`gateway.publicOrigin`); without one there are no links. `load` before the first.
    """

    def __init__(self, shelf: Shelf, media: MediaRoot, clock: Clock, origin: Callable[[], str]) -> None:
        self._shelf, self._media, self._clock, self._origin = shelf, media, clock, origin
        self._key = b""

    async def load(self) -> None:
        """Read the key, or make it. Raises Unavailable."""
        kept = await self._shelf.get("key")
        if not isinstance(kept, str) or len(kept) < 64:
            kept = secrets.token_hex(32)
            await self._shelf.set("key", kept, durable=True)
        self._key = bytes.fromhex(kept)

    def link(self, file: File) -> str | None:
        """Where a file can be had for `DAYS` days; None where nobody outside could get there."""
        base = public(self._origin())
        if not base or not self._key or not file.path:
            return None
        ends = self._clock.now_ms() // 1000 + DAYS * 86_400
        told = f"{ends}:{file.path}".encode()
        return f"{base}{PATH}{_text(self._signed(told) + told)}/{quote(file.name, safe='')}"

    async def find(self, token: str) -> Shared:
        """What a link leads to. Raises NotFound, which says nothing of why."""
        path = self._read(token)
        if path is None:
            raise NotFound("no such file")
        found = await self._media.path(path)
        return Shared(found, found.name.partition("-")[2] or found.name)

    def _read(self, token: str) -> str | None:
        if len(token) > _LONGEST or not self._key:
            return None
        try:
            data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            return None
        signed, told = data[:32], data[32:]
        if not hmac.compare_digest(signed, self._signed(told)):
            return None
        ends, _, path = told.decode().partition(":")
        return path if int(ends) > self._clock.now_ms() // 1000 else None

    def _signed(self, told: bytes) -> bytes:
        return hmac.digest(self._key, b"file link\0" + told, "sha256")


def public(origin: str) -> str:
    """The origin without a slash behind it; empty for what is none: https, or http to this machine alone."""
    try:
        parts = urlsplit(origin.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        return ""
    open_ = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    return f"{parts.scheme}://{parts.netloc}" if host and open_ and bare else ""


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
