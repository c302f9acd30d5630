"""The HTTP side while the house is being built: it lives, it is not ready, and it says when to come again."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

LIVE: Final = ("/healthz", "/health")
READY: Final = ("/readyz", "/ready")


class Opening:
    """Stands in for the application until there is one."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.app is not None:
            await self.app(scope, receive, send)
        elif scope["path"] in LIVE:
            await _answer(send, 200, b'{"ok":true,"status":"live"}')
        elif scope["path"] in READY:
            await _answer(send, 503, b'{"ready":false,"failing":["startup"]}')
        else:
            await _answer(send, 503, b'{"error":{"message":"The gateway is starting","type":"unavailable"}}')


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", b"1"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
