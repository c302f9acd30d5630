"""A small gateway for tests: real sockets, the handshake as the wire reference has it, and answers handed in."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from garra.client.identity import signed_text

TOKEN = "shared-token"
NONCE = "0b1d-nonce"
Answer = Callable[["Caller", dict[str, Any]], Awaitable[Any]]


class Refuse(Exception):
    """Answer with this error."""

    def __init__(self, code: str, message: str, payload: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}
        self.payload = payload


@dataclass
class Caller:
    """One connection of a client."""

    socket: ServerConnection
    request: str = ""

    async def early(self, payload: Any) -> None:
        await self.socket.send(json.dumps({"type": "res", "id": self.request, "ok": True, "payload": payload}))

    async def event(self, name: str, payload: Any, seq: int | None = None) -> None:
        await self.socket.send(json.dumps({"type": "event", "event": name, "payload": payload, "seq": seq}))


@dataclass
class Gateway:
    """What it answers, and what it saw."""

    methods: dict[str, Answer]
    tick_ms: int = 30_000
    connects: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    server: Server | None = None
    port: int = 0
    starting: int = 0
    """So many connections are turned away because it is still starting."""

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def start(self, port: int = 0) -> None:
        self.server = await serve(self.serve, "127.0.0.1", port, compression=None, max_size=64 << 20)
        self.port = next(iter(self.server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        assert self.server is not None
        self.server.close(code=1012, reason="service restart")
        await self.server.wait_closed()

    async def serve(self, socket: ServerConnection) -> None:
        caller = Caller(socket)
        try:
            await caller.event("connect.challenge", {"nonce": NONCE, "ts": 1_796_044_619_137})
            if await self._greet(caller):
                self.callers.append(caller)
                async with asyncio.TaskGroup() as group:
                    async for data in socket:
                        group.create_task(self._answer(caller, json.loads(data)))
        except* ConnectionClosed:
            pass

    async def _greet(self, caller: Caller) -> bool:
        frame = json.loads(await caller.socket.recv())
        assert frame["method"] == "connect"
        params = frame["params"]
        self.connects.append(params)
        caller.request = frame["id"]
        device = params.get("device")
        if self.starting:
            self.starting -= 1
            details = {"reason": "startup-sidecars", "retryAfterMs": 1_000}
            error = {"code": "UNAVAILABLE", "message": "not ready yet", "details": details, "retryable": True}
            await caller.socket.send(json.dumps({"type": "res", "id": frame["id"], "ok": False, "error": error}))
            await caller.socket.close(1013, "not ready yet")
            return False
        if params.get("auth", {}).get("token") != TOKEN or (device and not verified(params)):
            error = {"code": "INVALID_REQUEST", "message": "unauthorized: gateway token mismatch"}
            await caller.socket.send(json.dumps({"type": "res", "id": frame["id"], "ok": False, "error": error}))
            await caller.socket.close(1008, "unauthorized")
            return False
        hello = {
            "type": "hello-ok",
            "protocol": 4,
            "server": {"version": "0.1.0"},
            "policy": {"tickIntervalMs": self.tick_ms},
            "auth": {"scopes": params["scopes"], **({"deviceToken": "device-token"} if device else {})},
        }
        await caller.early(hello)
        return True

    async def _answer(self, caller: Caller, frame: dict[str, Any]) -> None:
        name, params = frame["method"], frame.get("params") or {}
        self.calls.append((name, params))
        mine = Caller(caller.socket, frame["id"])
        reply: dict[str, Any] = {"type": "res", "id": frame["id"]}
        try:
            if name not in self.methods:
                raise Refuse("INVALID_REQUEST", f"unknown method: {name}")
            reply |= {"ok": True, "payload": await self.methods[name](mine, params)}
        except Refuse as no:
            reply |= {"ok": False, "error": no.error, "payload": no.payload}
        await caller.socket.send(json.dumps(reply))


def verified(params: dict[str, Any]) -> bool:
    """Whether the device's signature is right; raises InvalidSignature when it is not."""
    device = params["device"]
    raw = urlsafe_b64decode(device["publicKey"] + "==")
    text = signed_text(device["id"], params, {"ts": device["signedAt"], "nonce": NONCE})
    Ed25519PublicKey.from_public_bytes(raw).verify(urlsafe_b64decode(device["signature"] + "=="), text.encode())
    return bool(sha256(raw).hexdigest() == device["id"]) and device["nonce"] == NONCE


@asynccontextmanager
async def running(methods: dict[str, Answer] | None = None, tick_ms: int = 30_000) -> AsyncIterator[Gateway]:
    """A gateway on a free port, for the length of a `with`."""
    gateway = Gateway(methods or {}, tick_ms)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.stop()
