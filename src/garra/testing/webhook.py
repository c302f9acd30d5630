"""The other side of a webhook: signs calls as Standard Webhooks says, and takes ours on a real HTTP server."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from garra.testing.web import Request, answered, serving

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def sign(secret: str, called: str, timestamp: int, body: bytes) -> str:
    """The signature, as the public libraries make it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, b"%b.%d.%b" % (called.encode(), timestamp, body), "sha256")
    return "v1," + base64.b64encode(digest).decode()


def signed(secret: str, called: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The head of a call."""
    return {
        "content-type": "application/json",
        "webhook-id": called,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secret, called, timestamp, body),
    }


def message(text: str, chat: str = "ann", **more: Any) -> bytes:
    """A body: `chat` is also who says it."""
    return json.dumps({"chat": chat, "sender": {"id": chat, "name": chat.title()}, "text": text, **more}).encode()


@dataclass
class Fail:
    """How the next call is answered instead; `status` 0 takes it and hangs up."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Peer:
    """Takes calls. `taken` are the bodies, one for each webhook-id; `calls` everything that came in."""

    secret: str = SECRET
    port: int = 0
    calls: list[Request] = field(default_factory=list)
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)
    fails: list[Fail] = field(default_factory=list)
    answer: Mapping[str, Any] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    async def __aenter__(self) -> Peer:
        self._stack = AsyncExitStack()
        self.url = await self._stack.enter_async_context(serving(self._called, self.port))
        self.port = int(self.url.rpartition(":")[2])
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def shown(self, chat: str) -> list[str]:
        """What was said in a chat."""
        return [body["text"] for body in self.taken.values() if body["chat"] == chat]

    async def _called(self, request: Request) -> bytes | None:
        if request.method == "GET":
            found = self.files.get(request.path)
            return answered(404, b"") if found is None else answered(200, found, "application/octet-stream")
        self.calls.append(request)
        fail = self.fails.pop(0) if self.fails else None
        if fail is not None and fail.status:
            lines = "".join(f"{name}: {value}\r\n" for name, value in fail.headers.items())
            return f"HTTP/1.1 {fail.status} x\r\n{lines}content-length: 0\r\n\r\n".encode()
        if not self._knows(request):
            return answered(401, b"")
        self.taken.setdefault(request.headers["webhook-id"], json.loads(request.body))
        return None if fail is not None else answered(200, json.dumps(self.answer).encode())

    def _knows(self, request: Request) -> bool:
        called, at = request.headers.get("webhook-id", ""), request.headers.get("webhook-timestamp", "")
        if not at.isdigit():
            return False
        return sign(self.secret, called, int(at), request.body) in request.headers.get("webhook-signature", "").split()
