"""The port: addresses bound before anything else starts, HTTP and WebSocket on each, and a start that can be read back.

uvicorn's connection protocols on sockets of ours. Its own server loop is not used: it wakes ten times a second and
takes the signals, and both are decided elsewhere.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from garra.core.errors import UserError
from garra.core.value import frozen, record
from garra.gateway.door import Door
from garra.gateway.front import Front
from garra.gateway.origin import Barred, approach
from garra.gateway.room import Limits, Room, spared
from garra.gateway.server import Gateway
from garra.gateway.socket import Socket
from garra.io import descriptors
from garra.sdk.ports import Clock

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

STEPS: Final = (
    "lock",
    "config",
    "auth",
    "bind",
    "secrets",
    "server",
    "stores",
    "plugins",
    "tools",
    "methods",
    "channels",
    "ready",
)
"""What a start consists of, in this order."""

BACKLOG: Final = 2_048


@frozen
class Timed:
    """One step of a start."""

    name: str
    ms: float


@record
class Trace:
    """The steps of a start and how long each took. `names` are what may be told, in order."""

    clock: Clock
    steps: list[Timed] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step. Raises ValueError for a step that is out of order or unknown."""
        done = [timed.name for timed in self.steps]
        if name not in STEPS or any(STEPS.index(other) >= STEPS.index(name) for other in done):
            raise ValueError(f"step {name} cannot follow {done[-1] if done else 'nothing'}")
        began = self.clock.monotonic()
        yield
        self.steps.append(Timed(name, (self.clock.monotonic() - began) * 1000))

    @property
    def total_ms(self) -> float:
        return sum(timed.ms for timed in self.steps)

    def __str__(self) -> str:
        return " · ".join(f"{timed.name} {timed.ms:.0f} ms" for timed in self.steps)


class Guard:
    """ASGI in front of the HTTP application: foreign Host, Origin and forwarded headers end here.

    What passes carries its `Approach` in the scope as `garra.approach`.
    """

    def __init__(self, app: ASGIApp, door: Callable[[], Door]) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        client = scope.get("client")
        found = approach(client[0] if client else "", headers, self._door().grounds)
        if isinstance(found, Barred):
            await refuse(send, found.status, found.text)
        elif found.foreign:
            await refuse(send, 403, "Origin is not allowed (gateway.controlUi.allowedOrigins)")
        else:
            scope["garra.approach"] = found
            await self._app(scope, receive, send)


async def refuse(send: Send, status: int, text: str) -> None:
    """A plain-text answer."""
    body = f"{text}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def bind(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """Listening sockets on every host, all or none. Port 0 takes a free one, the same for all.

    Raises UserError with one line when an address cannot be had.
    """
    bound: list[socket.socket] = []
    for host in hosts:
        try:
            found = _bound(host, bound[0].getsockname()[1] if bound else port, optional=bool(bound))
        except OSError as fault:
            for other in bound:
                other.close()
            raise UserError(_why(fault, host, port)) from fault
        if found:
            bound.append(found)
    return bound


def _bound(host: str, port: int, *, optional: bool) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        if optional:
            return None
        raise
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as fault:
        sock.close()
        if optional and fault.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return None
        raise
    return sock


def _why(fault: OSError, host: str, port: int) -> str:
    match fault.errno:
        case errno.EADDRINUSE:
            return (
                f"port {port} on {host} is in use: stop what listens there (another gateway? see `garra gateway "
                "status`), or choose another port with --port or gateway.port"
            )
        case errno.EADDRNOTAVAIL:
            return f"{host} is no address of this machine: set gateway.bind or gateway.customBindHost to one that is"
        case errno.EACCES:
            return f"port {port} may not be opened by this user: choose one above 1023 with --port or gateway.port"
        case _:
            return f"cannot listen on {host}:{port}: {fault.strerror or fault}"


class Server:
    """What listens. `start` serves on sockets that are bound already; `close` stops listening and ends HTTP."""

    def __init__(self, gateway: Gateway, app: ASGIApp, limits: Limits | None = None) -> None:
        # The library would tell of every connection that comes and goes.
        logging.getLogger("websockets.server").setLevel(logging.WARNING)
        self._state = ServerState()
        given = limits or Limits(connections=spared(descriptors.allowed()))
        self.room = Room(given, self._state.connections)
        guard = Guard(app, lambda: gateway.door)
        self._config = Config(
            cast(Any, guard),
            http=cast(Any, Front),
            ws=cast(Any, self._socket),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
        )
        self._gateway = gateway
        self._listening: list[asyncio.Server] = []
        self.port = 0

    def _socket(self, **_: Any) -> Socket:
        return Socket(self._gateway, self._state.connections, self.room)

    async def start(self, sockets: Sequence[socket.socket]) -> None:
        """Serve; gives back when connections are accepted."""
        self._config.load()
        loop = asyncio.get_running_loop()
        self.port = sockets[0].getsockname()[1]
        for sock in sockets:
            self._listening.append(await loop.create_server(self._front, sock=sock, backlog=BACKLOG))

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self._state.connections)

    def _front(self) -> Front:
        return Front(self._config, self._state, self.room)

    async def close(self, grace_s: float = 5.0) -> None:
        """Stop listening, let running HTTP answers end within `grace_s`, then cut them."""
        for server in self._listening:
            server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        tasks = set(self._state.tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
        self.room.close()
        self._listening.clear()
