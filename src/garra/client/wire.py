"""The lasting client: connects, proves who it is, calls, hears events, and comes back when the link breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from garra.client import identity as identities
from garra.client.quick import AGAIN_S, CALL_S, CONNECT_S, PROTOCOL, Refused, fresh, identity, starting
from garra.client.socket import Unreachable, fault, nobody
from garra.client.target import Target
from garra.core.errors import GarraError
from garra.core.value import frozen
from garra.sdk.ports import Clock, Spawn, Task

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
SILENT_CLOSE = 4000
FRAME_LIMIT = 64 << 20


@frozen
class Event:
    """One event of the gateway. `seq` counts what was broadcast to this connection; aimed events have none."""

    name: str
    payload: Mapping[str, Any]
    seq: int | None = None


@frozen
class Link:
    """How the connection stands. `reason` is one line for a person; `wait_s` is when the next try comes."""

    state: Literal["connected", "lost", "refused"]
    reason: str = ""
    wait_s: float = 0.0
    hello: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Self:
    """What this client says about itself. `folder` holds its device key; None connects without one."""

    name: str
    mode: str
    scopes: tuple[str, ...]
    caps: tuple[str, ...] = ()
    folder: Path | None = None


Listener = Callable[[Event | Link], None]


@dataclass(slots=True)
class _Waiting:
    future: asyncio.Future[Any]
    last: bool


class Wire:
    """A connection that is kept. `locate` is asked before each try, so a gateway that moved is found again; it may
    read files and runs in a thread. Listeners are plain functions and hear everything in the order it came."""

    def __init__(self, locate: Callable[[], Target], me: Self, *, spawn: Spawn, clock: Clock) -> None:
        self._locate, self._me, self._spawn, self._clock = locate, me, spawn, clock
        self._listeners: list[Listener] = []
        self._waiting: dict[str, _Waiting] = {}
        self._socket: ClientConnection | None = None
        self._task: Task | None = None
        self._count = 0
        self._opened = asyncio.Event()
        self.url = ""

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear every event and every change of the link; call what comes back to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def start(self) -> Mapping[str, Any]:
        """Connect and give hello; from then on the connection is kept. A gateway that is still starting is waited for.

        Raises Unreachable or Refused the first time.
        """
        socket, hello = await self._first(self._clock.monotonic() + CONNECT_S)
        self._socket = socket
        self._task = self._spawn(self._keep(socket, hello), "gateway connection")
        return hello

    async def _first(self, end: float) -> tuple[ClientConnection, Mapping[str, Any]]:
        while True:
            try:
                return await self._open()
            except Refused as refused:
                if not starting(refused) or self._clock.monotonic() > end:
                    raise
            await self._clock.sleep(AGAIN_S)

    async def close(self) -> None:
        """Hang up for good."""
        if self._task is not None:
            self._task.cancel()
        if self._socket is not None:
            await self._socket.close()
        self._drop("closed")

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        timeout_s: float | None = CALL_S,
        *,
        last: bool = False,
    ) -> Any:
        """Call a method and give its payload. `last`: the method answers twice, and the second answer is wanted.

        Raises Refused for an error, Unreachable when the link is down or no answer comes in time.
        """
        if self._socket is None:
            raise fault("closed", "not connected to the gateway")
        return await self._ask(self._socket, method, params or {}, timeout_s, last=last)

    async def _ask(
        self,
        socket: ClientConnection,
        method: str,
        params: Mapping[str, Any],
        timeout_s: float | None,
        *,
        last: bool = False,
    ) -> Any:
        self._count += 1
        number = f"{self._count}:{fresh()}"
        waiting = _Waiting(asyncio.get_running_loop().create_future(), last)
        self._waiting[number] = waiting
        frame = {"type": "req", "id": number, "method": method, "params": params}
        try:
            async with asyncio.timeout(timeout_s):
                await socket.send(msgspec.json.encode(frame), text=True)
                return await waiting.future
        except TimeoutError as error:
            raise fault("timeout", f"no answer to {method} from the gateway at {self.url}") from error
        except ConnectionClosed as error:
            raise _closed(self.url, error) from error
        finally:
            self._waiting.pop(number, None)

    async def _open(self) -> tuple[ClientConnection, Mapping[str, Any]]:
        target = await asyncio.to_thread(self._locate)
        self.url = target.url
        try:
            async with asyncio.timeout(CONNECT_S):
                socket = await connect(
                    target.url, compression=None, proxy=None, max_size=FRAME_LIMIT, ping_interval=None
                )
        except TimeoutError as error:
            raise fault("timeout", f"no answer from the gateway at {target.url}") from error
        except (OSError, WebSocketException) as error:
            raise nobody(target.url, _why(error)) from error
        try:
            async with asyncio.timeout(CONNECT_S):
                return socket, await self._greet(socket, target)
        except TimeoutError as error:
            await socket.close()
            raise fault("timeout", f"no answer from the gateway at {target.url}") from error
        except ConnectionClosed as error:
            raise _closed(target.url, error) from error
        except GarraError:
            await socket.close()
            raise

    async def _greet(self, socket: ClientConnection, target: Target) -> Mapping[str, Any]:
        challenge = msgspec.json.decode(await socket.recv())
        params = await asyncio.to_thread(self._connect, target, challenge.get("payload") or {})
        await socket.send(
            msgspec.json.encode({"type": "req", "id": "connect", "method": "connect", "params": params}), text=True
        )
        while True:
            answer = msgspec.json.decode(await socket.recv())
            if answer.get("type") == "res" and answer.get("id") == "connect":
                break
        if not answer.get("ok"):
            raise Refused(answer.get("error") or {}, answer.get("payload"))
        hello: dict[str, Any] = answer.get("payload") or {}
        given = (hello.get("auth") or {}).get("deviceToken")
        if given and self._me.folder is not None:
            await asyncio.to_thread(identities.keep_token, self._me.folder, target.url, str(given))
        return hello

    def _connect(self, target: Target, challenge: Mapping[str, Any]) -> dict[str, Any]:
        me = self._me
        params: dict[str, Any] = {
            "minProtocol": PROTOCOL,
            "maxProtocol": PROTOCOL,
            "client": {**identity(me.mode, me.name), "displayName": me.name},
            "caps": list(me.caps),
            "role": "operator",
            "scopes": list(me.scopes),
        }
        auth = target.auth
        if not auth and me.folder is not None:
            stored = identities.token(me.folder, target.url)
            auth = {"deviceToken": stored} if stored else {}
        if auth:
            params["auth"] = auth
        if me.folder is not None and challenge.get("nonce"):
            params["device"] = identities.load(me.folder).device(params, challenge)
        return params

    async def _keep(self, socket: ClientConnection, hello: Mapping[str, Any]) -> None:
        while True:
            self._socket = socket
            self._tell(Link("connected", hello=hello))
            reason = await self._read(socket, _silence_s(hello))
            self._drop(reason)
            socket, hello = await self._again(reason)

    async def _again(self, reason: str) -> tuple[ClientConnection, Mapping[str, Any]]:
        wait_s = FIRST_WAIT_S
        while True:
            self._tell(Link("lost", reason, wait_s))
            await self._clock.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)
            try:
                return await self._open()
            except Refused as error:
                self._tell(Link("refused", error.message, wait_s))
                reason = error.message
            except GarraError as error:
                reason = error.message

    async def _read(self, socket: ClientConnection, silence_s: float) -> str:
        """Take in frames until there are no more, and say why there are no more."""
        try:
            while True:
                async with asyncio.timeout(silence_s):
                    data = await socket.recv()
                self._take(data)
        except TimeoutError:
            await socket.close(SILENT_CLOSE, "no traffic")
            return f"nothing heard for {silence_s:.0f} seconds"
        except ConnectionClosed as error:
            return _why(error)

    def _take(self, data: str | bytes) -> None:
        try:
            frame = msgspec.json.decode(data)
        except msgspec.DecodeError:
            return
        match frame.get("type"):
            case "event":
                self._tell(Event(frame.get("event", ""), frame.get("payload") or {}, frame.get("seq")))
            case "res":
                self._answer(frame)

    def _answer(self, frame: Mapping[str, Any]) -> None:
        waiting = self._waiting.get(str(frame.get("id")))
        if waiting is None or waiting.future.done():
            return
        payload = frame.get("payload")
        if not frame.get("ok"):
            waiting.future.set_exception(Refused(frame.get("error") or {}, payload))
        elif not (waiting.last and isinstance(payload, dict) and payload.get("status") == "accepted"):
            waiting.future.set_result(payload)

    def _drop(self, reason: str) -> None:
        self._socket = None
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(fault("closed", f"the link to the gateway broke: {reason}"))

    def _tell(self, news: Event | Link) -> None:
        for listener in list(self._listeners):
            listener(news)


def _silence_s(hello: Mapping[str, Any]) -> float:
    policy = hello.get("policy") or {}
    return 2.0 * float(policy.get("tickIntervalMs", 30_000)) / 1000.0


def _why(error: BaseException) -> str:
    if isinstance(error, ConnectionClosed):
        close = error.rcvd or error.sent
        if close is None:
            return "the connection broke"
        return f"{close.reason or 'closed'} ({close.code})"
    return str(getattr(error, "strerror", None) or error)


def _closed(url: str, error: ConnectionClosed) -> Unreachable:
    close = error.rcvd
    code, reason = (close.code, close.reason) if close else (1006, "")
    return fault("closed", f"the gateway at {url} closed the connection: {_why(error)}", code=code, reason=reason)
