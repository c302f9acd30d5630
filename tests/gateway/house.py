"""A whole gateway on a real port for a test: its own database, a token, and a few methods to call."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect

from garra.core.devices import signed_texts
from garra.core.frames import AuthInfo, ClientInfo, Connect, DeviceInfo
from garra.core.secret import Secret
from garra.domains.access.devices import Devices
from garra.gateway.broadcast import EMITTED
from garra.gateway.dispatch import Dispatcher
from garra.gateway.door import Door
from garra.gateway.hello import Greeting, House, Now
from garra.gateway.method import ADMIN, READ, WRITE, Caller, Method, Registry, Reply
from garra.gateway.methods import node, presence
from garra.gateway.methods.device import DeviceMethods
from garra.gateway.serve import Server, bind
from garra.gateway.server import Gateway
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks

TOKEN = "a-token-for-tests-0123456789"
ALL = ("operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.pairing")


class Hands:
    """A clock whose hands a test moves; sleeping on it waits for that."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._moved = asyncio.Event()

    def now_ms(self) -> int:
        return 1_800_000_000_000 + round(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            await self._moved.wait()

    def move(self, seconds: float) -> None:
        self.now += seconds
        self._moved.set()
        self._moved = asyncio.Event()


class Say(msgspec.Struct, forbid_unknown_fields=True):
    """Parameters of the methods that tests call."""

    text: str
    times: int = 1


def echo(host: Any, caller: Caller, params: Say) -> dict[str, Any]:
    return {"text": params.text}


async def twice(host: Any, caller: Caller, params: Say) -> Reply:
    caller.respond_early({"status": "accepted"})
    await asyncio.sleep(0)
    return Reply({"status": "ok"})


def methods(host: dict[str, asyncio.Event]) -> tuple[Method, ...]:
    async def wait(_: Any, caller: Caller, params: Say) -> dict[str, Any]:
        await host[params.text].wait()
        return {"text": params.text}

    def broken(_: Any, caller: Caller, params: Any) -> None:
        raise ZeroDivisionError("a secret detail")

    return (
        Method("echo", READ, Say, echo),
        Method("twice", WRITE, Say, twice),
        Method("wait", READ, Say, wait),
        Method("broken", READ, None, broken),
        Method("config.set", ADMIN, None, echo),
        Method("late", READ, None, lambda host, caller, params: {"late": True}, startup=True),
        Method("node.only", READ, None, lambda host, caller, params: {}, role="node"),
        Method("hidden", READ, None, lambda host, caller, params: {}, advertised=False),
    )


@dataclass
class Running:
    """A gateway that serves on `port`."""

    gateway: Gateway
    port: int
    clock: Hands
    devices: Devices
    events: dict[str, asyncio.Event] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/"

    def door(self, **changes: Any) -> None:
        self.gateway.change(replace(self.gateway.door, **changes))


@asynccontextmanager
async def running(
    folder: Path, door: Door | None = None, *, opened: bool = True, extra: tuple[Method, ...] = ()
) -> AsyncIterator[Running]:
    clock = Hands()
    db = Database(folder / "state.db")
    devices = Devices(Shelf(db, "device"), Shelf(db, "pairing"), clock)
    await devices.load()
    async with Tasks() as tasks:
        gateway = Gateway(door or Door(token=Secret(TOKEN)), devices, clock, tasks, version="1.0.0")
        house = Running(gateway, 0, clock, devices)
        own = (DeviceMethods(gateway).rows(), presence.rows(gateway), node.rows(gateway))
        registry = Registry.of(methods(house.events), *own, extra)
        greeting = Greeting(House("1.0.0", "boot", registry.advertised, EMITTED), lambda: now(gateway))
        if opened:
            gateway.open(Dispatcher(registry, None, tasks, lambda: gateway.ready), greeting)
        server = Server(gateway, app())
        sockets = bind(("127.0.0.1",), 0)
        await server.start(sockets)
        house.port = server.port
        try:
            yield house
        finally:
            await gateway.close()
            await server.close()
    await db.close()


def now(gateway: Gateway) -> Now:
    versions = gateway.hub.versions
    return Now(
        gateway.rows(),
        gateway.health.read(),
        {"presence": versions.presence, "health": versions.health},
        1,
        "hash",
        {"defaultAgentId": "main"},
        {"stateDir": "/state"},
    )


def app() -> Starlette:
    def alive(request: Request) -> PlainTextResponse:
        return PlainTextResponse("alive")

    return Starlette(routes=[Route("/healthz", alive)])


@dataclass
class Key:
    """A device's key; the seed is fixed so that vectors can be."""

    seed: bytes = b"\x01" * 32

    def __post_init__(self) -> None:
        self.private = Ed25519PrivateKey.from_private_bytes(self.seed)
        raw = self.private.public_key().public_bytes_raw()
        self.public, self.id = b64(raw), hashlib.sha256(raw).hexdigest()

    def proof(self, params: dict[str, Any], nonce: str, at: int, version: int = 3) -> dict[str, Any]:
        blank = DeviceInfo(self.id, self.public, "x", at, nonce)
        claim = Connect(
            4,
            4,
            msgspec.convert(params["client"], ClientInfo),
            params["role"],
            tuple(params["scopes"]),
            auth=msgspec.convert(params.get("auth", {}), AuthInfo),
            device=blank,
        )
        text = signed_texts(claim)[0 if version == 3 else 1]
        row: dict[str, Any] = msgspec.to_builtins(
            msgspec.structs.replace(blank, signature=b64(self.private.sign(text)))
        )
        return row


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


class Refused(Exception):
    """An error response."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.error = error
        self.detail = (error.get("details") or {}).get("code")


class Guest:
    """A raw client that keeps all it hears."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.heard: list[dict[str, Any]] = []
        self._kept: list[dict[str, Any]] = []
        self.hello: dict[str, Any] = {}

    async def next(self, wanted: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The next frame that is `wanted`; the others are kept for who wants them."""
        for kept in self._kept:
            if wanted(kept):
                self._kept.remove(kept)
                return kept
        async with asyncio.timeout(20):
            while True:
                frame: dict[str, Any] = json.loads(await self.socket.recv())
                self.heard.append(frame)
                if wanted(frame):
                    return frame
                self._kept.append(frame)

    async def event(self, name: str) -> dict[str, Any]:
        return await self.next(lambda frame: frame.get("event") == name)

    async def ask(self, method: str, params: Any = None, **more: Any) -> str:
        frame = {"type": "req", "id": str(uuid.uuid4()), "method": method, **more}
        await self.socket.send(json.dumps(frame if params is None else {**frame, "params": params}))
        return str(frame["id"])

    async def answer(self, request_id: Any) -> dict[str, Any]:
        return await self.next(lambda frame: frame["type"] == "res" and frame["id"] == request_id)

    async def call(self, method: str, params: Any = None, **more: Any) -> Any:
        frame = await self.answer(await self.ask(method, params, **more))
        if not frame["ok"]:
            raise Refused(frame["error"])
        return frame.get("payload")

    async def closed(self) -> tuple[int | None, str | None]:
        async with asyncio.timeout(20):
            await self.socket.wait_closed()
        return self.socket.close_code, self.socket.close_reason


def params(
    client: tuple[str, str] = ("gateway-client", "backend"),
    scopes: tuple[str, ...] = ALL,
    auth: dict[str, Any] | None = None,
    role: str = "operator",
    **more: Any,
) -> dict[str, Any]:
    return {
        "minProtocol": 4,
        "maxProtocol": 4,
        "role": role,
        "scopes": list(scopes),
        "client": {"id": client[0], "mode": client[1], "version": "1.0.0", "platform": "Linux"},
        "auth": {"token": TOKEN} if auth is None else auth,
        **more,
    }


@asynccontextmanager
async def knocking(house: Running, path: str = "", **options: Any) -> AsyncIterator[tuple[Guest, dict[str, Any]]]:
    """A socket past the upgrade, and its challenge."""
    settings: dict[str, Any] = {"ping_interval": None, "max_size": None, "compression": "deflate", **options}
    async with connect(house.url + path, **settings) as socket:
        guest = Guest(socket)
        yield guest, (await guest.event("connect.challenge"))["payload"]


@asynccontextmanager
async def guest(
    house: Running,
    *,
    key: Key | None = None,
    version: int = 3,
    headers: dict[str, str] | None = None,
    spoil: Callable[[dict[str, Any]], Any] | None = None,
    **asked: Any,
) -> AsyncIterator[Guest]:
    """A client that was let in. Raises Refused; `spoil` changes the parameters after they were signed."""
    async with knocking(house, additional_headers=headers or {}) as (who, challenge):
        sent = params(**asked)
        if key:
            sent["device"] = key.proof(sent, challenge["nonce"], challenge["ts"], version)
        if spoil:
            spoil(sent)
        who.hello = await who.call("connect", sent)
        yield who


async def refusal(opening: Any) -> tuple[dict[str, Any], str | None]:
    """The error a client met."""
    try:
        async with opening:
            raise AssertionError("it was let in")
    except Refused as refused:
        return refused.error, refused.detail
