"""Another page in place of ours: the files below `gateway.controlUi.root`, as a build of the original leaves them.

Such a build names no files, so what is served is what lies below the folder, links out of it left out. Its first page
has inline scripts and styles: the scripts are admitted by their hashes, the styles as they are.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from garra.core.value import frozen
from garra.gateway import page
from garra.gateway.assets import below, sockets
from garra.gateway.http_io import missing

INDEX: Final = "index.html"
LARGEST: Final = 32 << 20
"""Bytes of a file at most."""

TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "gif": "image/gif",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "wasm": "application/wasm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff2": "font/woff2",
}
"""What is served: a file with another ending is not there."""


@frozen
class Foreign:
    """The page below `root`."""

    root: Path

    async def answer(self, request: Request, rest: str, base: str) -> Response:
        """The file `rest` below the base path `base`; the first page where that is no file's name."""
        if base:
            inside = below(rest, base)
            if inside is None:
                return RedirectResponse(f"{base}/", 302) if rest in ("", base[1:]) else missing()
            rest = inside
        found = await asyncio.to_thread(self._file, rest)
        if found is not None and rest != INDEX:
            return await self._send(request, found, kept=rest.startswith("assets/"))
        if found is None and "." in rest.rpartition("/")[2]:
            return missing()
        first = await asyncio.to_thread(self._file, INDEX)
        if first is None:
            return missing()
        text = placed((await asyncio.to_thread(first.read_bytes)).decode("utf-8", "replace"), base)
        headers = {**page.HEADERS, "content-security-policy": policy(text, sockets(request))}
        return Response(text, headers=headers, media_type="text/html")

    def _file(self, rest: str) -> Path | None:
        """A file of the page; None for what is none, or is reached by a link out of the folder. Blocks."""
        try:
            root = self.root.expanduser().resolve()
            path = (root / rest).resolve()
            inside = path.is_relative_to(root) and path.suffix[1:].lower() in TYPES
            return path if inside and path.is_file() and path.stat().st_size <= LARGEST else None
        except (OSError, ValueError):
            return None

    async def _send(self, request: Request, path: Path, *, kept: bool) -> Response:
        cache = "public, max-age=31536000, immutable" if kept else "no-cache"
        headers = {**page.HEADERS, "cache-control": cache, "content-type": TYPES[path.suffix[1:].lower()]}
        packed = path.with_name(f"{path.name}.gz")
        if "gzip" in request.headers.get("accept-encoding", "") and await asyncio.to_thread(packed.is_file):
            path, headers = packed, {**headers, "content-encoding": "gzip", "vary": "accept-encoding"}
        return Response(await asyncio.to_thread(path.read_bytes), headers=headers)


def placed(text: str, base: str) -> str:
    """The first page with its links made absolute, since it stands for every path; it is told its base path."""
    linked = re.sub(r'\b(src|href)="\./', rf'\1="{base}/', text)
    return re.sub(r"<html\b", f'<html data-openclaw-control-ui-base-path="{base}"', linked, count=1)


def policy(text: str, sockets: str) -> str:
    """What that page may load: its own files, its inline scripts by their hashes, pictures, our socket."""
    inline = re.findall(r"<script(?![^>]*\ssrc[\s=>])[^>]*>(.+?)</script>", text, re.DOTALL | re.IGNORECASE)
    hashes = "".join(f" 'sha256-{_hash(each)}'" for each in inline)
    rules = {
        "default-src": "'self'",
        "base-uri": "'none'",
        "object-src": "'none'",
        "frame-ancestors": "'none'",
        "form-action": "'none'",
        "script-src": f"'self'{hashes}",
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "media-src": "'self' data: blob:",
        "worker-src": "'self'",
        "connect-src": f"'self'{sockets} data:",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
