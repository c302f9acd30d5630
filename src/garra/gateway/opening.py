"""The HTTP side as long as nobody wants more of it than a word whether the gateway lives and is ready.

While the house is being built everything else hears when to come again. Later the first such request loads the
application: most clients speak over WebSocket alone.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from garra.gateway.site import Site

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LIVE: Final = ("/healthz", "/health")
READY: Final = ("/readyz", "/ready")
JSON: Final = (b"content-type", b"application/json; charset=utf-8")
LATER: Final = (b"retry-after", b"1")


class Opening:
    """The ASGI application of the port. `site` is set once the house stands."""

    def __init__(self, site: Site | None = None) -> None:
        self.site = site
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        site, path = self.site, scope["path"]
        if path in LIVE or path in READY:
            await self._probe(scope, send)
        elif site is None:
            body = {"error": {"message": "The gateway is starting", "type": "unavailable"}}
            await _answer(send, 503, msgspec.json.encode(body), JSON, LATER)
        else:
            await (self._app or await self._load(site))(scope, receive, send)

    async def _load(self, site: Site) -> ASGIApp:
        http: Any = await asyncio.to_thread(importlib.import_module, "garra.gateway.http")
        self._app = self._app or http.application(site)
        return self._app

    async def _probe(self, scope: Scope, send: Send) -> None:
        site = self.site
        if scope["method"] not in ("GET", "HEAD"):
            kind = (b"content-type", b"text/plain; charset=utf-8")
            await _answer(send, 405, b"Method Not Allowed", kind, (b"allow", b"GET, HEAD"))
        elif scope["path"] in LIVE:
            await _answer(send, 200, b'{"ok":true,"status":"live"}', JSON)
        elif site is None:
            await _answer(send, 503, b'{"ready":false,"failing":["startup"]}', JSON, LATER)
        else:
            ready, uptime = site.ready(), site.host.clock.now_ms() - site.host.started_at
            body = {"ready": ready, "failing": [] if ready else ["startup"], "uptimeMs": uptime}
            await _answer(send, 200 if ready else 503, msgspec.json.encode(body), JSON)


async def _answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    told = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
