"""The files of the web page: only what the build's manifest names is served, compressed as the build left it.

Files with a hash in their name may be kept for good; the page itself is never kept, so a new version is seen at once.
Nothing is read before the first request.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from garra.core.value import record
from garra.gateway import page
from garra.gateway.http_io import missing
from garra.gateway.origin import Approach

INDEX: Final = "index.html"
MANIFEST: Final = "manifest.json"
FOR_GOOD: Final = "public, max-age=31536000, immutable"
FOLDERS: Final = ("assets/", "fonts/")
"""Below these nothing but files is to be had: who asks for one that is gone is told so, not shown the page."""

NAMES: Final = frozenset({"favicon.ico", "favicon.svg", "sw.js", "manifest.webmanifest", "robots.txt"})


class File(msgspec.Struct, frozen=True):
    """One file of the build. `gzip` is the size of its compressed form, 0 where it has none."""

    type: str
    size: int
    gzip: int
    sha256: str
    immutable: bool


class Manifest(msgspec.Struct, frozen=True):
    """What the build made. `sources` is the hash of what it was made from."""

    sources: str
    first: tuple[str, ...]
    files: dict[str, File]


@record
class Assets:
    """The built page below `root`; `version` is told where there is none."""

    root: Path | None
    version: str
    _built: Manifest | None = None
    _stamp: int = 0

    async def answer(self, request: Request, rest: str, base: str) -> Response:
        """What `rest`, the path without its first slash, is below the base path `base`, which has no last slash."""
        if base:
            inside = below(rest, base)
            if inside is None:
                return RedirectResponse(f"{base}/", 302) if rest in ("", base[1:]) else missing()
            rest = inside
        built = await asyncio.to_thread(self._manifest)
        if built is None:
            return self.absent() if not named(rest) else missing()
        if rest in built.files and rest != INDEX:
            return await self._file(request, rest, built.files[rest])
        if named(rest):
            return missing()
        text = (await self._read(INDEX)).decode()
        body = text.replace('<base href="/">', f'<base href="{html.escape(base)}/">', 1)
        headers = {**page.HEADERS, "content-security-policy": policy(request)}
        return Response(body, headers=headers, media_type="text/html")

    def absent(self, status: int = 200) -> Response:
        """A word for a gateway without the page."""
        return Response(page.html(self.version), status, dict(page.HEADERS), "text/html")

    def _manifest(self) -> Manifest | None:
        """What there is now: an update may have put another build in its place. None where there is none. Blocks."""
        if self.root is None:
            return None
        try:
            stamp = (self.root / MANIFEST).stat().st_mtime_ns
            if stamp != self._stamp:
                self._built = msgspec.json.decode((self.root / MANIFEST).read_bytes(), type=Manifest)
                self._stamp = stamp
        except (OSError, msgspec.DecodeError):
            self._built = None
        return self._built

    async def _read(self, name: str) -> bytes:
        assert self.root is not None
        return await asyncio.to_thread((self.root / name).read_bytes)

    async def _file(self, request: Request, name: str, file: File) -> Response:
        tag = f'"{file.sha256[:32]}"'
        kept = {"cache-control": FOR_GOOD if file.immutable else "no-cache", "etag": tag, "vary": "accept-encoding"}
        headers = {**page.HEADERS, **kept, "content-type": file.type}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        packed = file.gzip > 0 and _takes_gzip(request.headers)
        try:
            data = await self._read(f"{name}.gz" if packed else name)
        except FileNotFoundError:  # replaced by another build while the gateway runs
            return missing()
        return Response(data, headers={**headers, **({"content-encoding": "gzip"} if packed else {})})


def below(path: str, base: str) -> str | None:
    """`path` below `base`; None for what is elsewhere."""
    head = f"{base[1:]}/"
    return path[len(head) :] if path.startswith(head) else None


def based(text: str) -> str:
    """A base path as configured: with a slash before it and none behind; empty for the root."""
    parts = [part for part in text.split("/") if part and part not in (".", "..")]
    return "".join(f"/{part}" for part in parts)


def named(rest: str) -> bool:
    return rest.startswith(FOLDERS) or rest in NAMES


def policy(request: Request) -> str:
    """What the page may load: its own files, pictures it made itself, and the gateway's own socket."""
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": f"'self'{sockets(request)}{elsewhere(request.query_params.get('gatewayUrl', ''))}",
        "manifest-src": "'self'",
        "base-uri": "'self'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "lit-html",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def sockets(request: Request) -> str:
    """The gateway's own socket by its address: not every browser counts `ws:` as `'self'`. Begins with a space."""
    found: Any = request.scope.get("garra.approach")
    host = found.host if isinstance(found, Approach) else ""
    return f" ws://{host} wss://{host}" if host else ""


def elsewhere(asked: str) -> str:
    """The socket of another gateway that the page's address names, for that page alone, which asks the person before it
    says anything to it. Begins with a space; empty for what is no such address.
    """
    found = re.fullmatch(r"(wss?://(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?)(?:/[^\s;,]*)?", asked)
    return f" {found[1]}" if found else ""


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    for part in headers.get("accept-encoding", "").split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0")
    return False
