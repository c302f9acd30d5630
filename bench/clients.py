"""Who speaks with a gateway: one class a protocol, chosen by the key `transport` of peers.toml."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

import aiohttp
import websockets

Settings = Mapping[str, Any]
Frame = dict[str, Any]
Waiting = dict[str, "asyncio.Future[Frame]"]

RETRY_S = 120.0
"""How long a gateway that says "starting" is asked again."""


class Asker(Protocol):
    """One connection. `ask` makes one cheap request and raises when the other side says no."""

    async def open(self) -> None: ...

    async def ask(self, what: str) -> None: ...

    @property
    def alive(self) -> bool: ...

    async def close(self) -> None: ...


class Client(Asker, Protocol):
    """A connection one can talk on."""

    async def turn(self, session: str, text: str, limit_s: float = 300) -> str:
        """Send, wait for the end of the turn, give the reply. Raises RuntimeError when the turn failed."""
        ...


async def connect(url: str) -> websockets.ClientConnection:
    return await websockets.connect(url, max_size=64 << 20, compression=None, open_timeout=60, ping_interval=None)


class OpenClawSocket:
    """An operator on the OpenClaw gateway protocol, version 4: token, loopback, no device."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._answers: Waiting = {}
        self._runs: Waiting = {}
        self._early: dict[str, Frame] = {}

    async def open(self) -> None:
        began = time.monotonic()
        while True:
            try:
                return await self._enter()
            except RuntimeError as refusal:
                await self.close()
                if "retry" not in str(refusal) or time.monotonic() - began > RETRY_S:
                    raise
            await asyncio.sleep(0.02)

    async def _enter(self) -> None:
        self._socket = await connect(self._settings["ws_url"])
        while json.loads(await asyncio.wait_for(self._socket.recv(), 60)).get("event") != "connect.challenge":
            pass
        self._reader = asyncio.create_task(self._read())
        me = {"id": "gateway-client", "version": "1.0.0", "platform": "linux", "mode": "backend"}
        scopes = ["operator.admin", "operator.read", "operator.write"]
        auth = {"token": self._settings["token"]}
        hello = {"minProtocol": 4, "maxProtocol": 4, "role": "operator", "client": me, "scopes": scopes, "auth": auth}
        await self.call("connect", {**hello, "caps": [], "commands": [], "permissions": {}, "locale": "en-US"})

    async def _read(self) -> None:
        try:
            async for raw in self._socket:
                frame = json.loads(raw)
                if frame.get("type") == "res":
                    _settle(self._answers.get(frame["id"]), frame)
                elif frame.get("event") == "chat":
                    self._chat(frame["payload"])
        except websockets.ConnectionClosed:
            pass
        gone = ConnectionError(f"closed {self._socket.close_code} {self._socket.close_reason}")
        for future in (*self._answers.values(), *self._runs.values()):
            if not future.done():
                future.set_exception(gone)

    def _chat(self, payload: Frame) -> None:
        if payload.get("state") in ("final", "error", "aborted"):
            run = payload.get("runId", "")
            if run in self._runs:
                _settle(self._runs[run], payload)
            else:
                self._early[run] = payload

    async def call(self, method: str, params: Mapping[str, Any], limit_s: float = 120) -> Any:
        """One request. Raises RuntimeError with the error of the answer."""
        ident = uuid.uuid4().hex
        future = self._answers[ident] = asyncio.get_running_loop().create_future()
        try:
            await self._socket.send(json.dumps({"type": "req", "id": ident, "method": method, "params": params}))
            frame = await asyncio.wait_for(future, limit_s)
        finally:
            del self._answers[ident]
        if not frame["ok"]:
            raise RuntimeError(f"{method}: {frame.get('error')}")
        return frame.get("payload")

    async def ask(self, what: str) -> None:
        await self.call(what, {})

    async def turn(self, session: str, text: str, limit_s: float = 300) -> str:
        key = uuid.uuid4().hex
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._runs[key] = future
        run = key
        try:
            params = {"sessionKey": f"agent:main:{session}", "message": text, "idempotencyKey": key}
            run = (await self.call("chat.send", params, limit_s)).get("runId", key)
            self._runs[run] = future
            if run in self._early:
                _settle(future, self._early.pop(run))
            payload = await asyncio.wait_for(future, limit_s)
        finally:
            self._runs.pop(key, None)
            self._runs.pop(run, None)
        if payload["state"] != "final":
            raise RuntimeError(str(payload)[:300])
        content = (payload.get("message") or {}).get("content")
        return "".join(b.get("text", "") for b in content) if isinstance(content, list) else str(content)

    @property
    def alive(self) -> bool:
        return self._socket.state.name == "OPEN"

    async def close(self) -> None:
        await self._socket.close()
        self._reader.cancel()


class EchoSocket:
    """The bare stack: what is sent comes back. It does on its side what OpenClawSocket does for a request."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._answers: Waiting = {}

    async def open(self) -> None:
        self._socket = await connect(self._settings["ws_url"])
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for raw in self._socket:
                frame = json.loads(raw)
                if frame.get("type") == "req":
                    _settle(self._answers.get(frame["id"]), frame)
        except websockets.ConnectionClosed:
            pass

    async def ask(self, what: str) -> None:
        ident = uuid.uuid4().hex
        future = self._answers[ident] = asyncio.get_running_loop().create_future()
        try:
            await self._socket.send(json.dumps({"type": "req", "id": ident, "method": what, "params": {}}))
            await asyncio.wait_for(future, 60)
        finally:
            del self._answers[ident]

    @property
    def alive(self) -> bool:
        return self._socket.state.name == "OPEN"

    async def close(self) -> None:
        await self._socket.close()
        self._reader.cancel()


class NanobotSocket:
    """nanobot's websocket channel: one chat a session; `turn_end` ends a turn. Its cheap request is an HTTP route."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._waiting: dict[str, tuple[str, asyncio.Future[Frame]]] = {}
        self._text: dict[str, str] = {}
        self._attached: set[str] = set()

    async def open(self) -> None:
        self._http = aiohttp.ClientSession()
        self._socket = await connect(self._settings["ws_url"])
        await asyncio.wait_for(self._socket.recv(), 60)
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for raw in self._socket:
                self._take(json.loads(raw))
        except websockets.ConnectionClosed:
            pass

    def _take(self, frame: Frame) -> None:
        event, chat = frame.get("event"), frame.get("chat_id", "")
        if event == "delta":
            self._text[chat] = self._text.get(chat, "") + (frame.get("text") or "")
        elif event == "message":
            self._text[chat] = frame.get("text") or ""
        elif chat in self._waiting and event in (self._waiting[chat][0], "error"):
            _settle(self._waiting[chat][1], frame)

    async def _exchange(self, chat: str, until: str, frame: Frame, limit_s: float) -> Frame:
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[chat] = (until, future)
        await self._socket.send(json.dumps(frame))
        return await asyncio.wait_for(future, limit_s)

    async def turn(self, session: str, text: str, limit_s: float = 300) -> str:
        chat = str(uuid.uuid5(uuid.NAMESPACE_URL, session))
        if chat not in self._attached:
            await self._exchange(chat, "attached", {"type": "attach", "chat_id": chat}, limit_s)
            self._attached.add(chat)
        self._text[chat] = ""
        frame = {"type": "message", "chat_id": chat, "content": text}
        end = await self._exchange(chat, "turn_end", frame, limit_s)
        if end.get("event") == "error":
            raise RuntimeError(str(end)[:200])
        return self._text[chat]

    async def ask(self, what: str) -> None:
        async with self._http.get(self._settings["base"] + what) as response:
            await response.read()
            response.raise_for_status()

    @property
    def alive(self) -> bool:
        return self._socket.state.name == "OPEN"

    async def close(self) -> None:
        await self._http.close()
        await self._socket.close()
        self._reader.cancel()


class PlainHttp:
    """Turns by POST: `turn_url` and `turn_body` (and `open_url`, `open_body` once a session) with {session}, {text}."""

    alive = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened: set[str] = set()

    async def open(self) -> None:
        self._http = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=600),
            connector=aiohttp.TCPConnector(limit=0),
            headers=self._settings.get("headers", {}),
        )

    async def turn(self, session: str, text: str, limit_s: float = 300) -> str:
        words = {"session": session, "text": text}
        if "open_url" in self._settings and session not in self._opened:
            await self._post("open", words, limit_s)
            self._opened.add(session)
        return _reply(await self._post("turn", words, limit_s))

    async def _post(self, what: str, words: Mapping[str, str], limit_s: float) -> str:
        url = _fill(self._settings[f"{what}_url"], words)
        body = _fill(self._settings[f"{what}_body"], words)
        async with asyncio.timeout(limit_s), self._http.post(url, json=body) as response:
            raw = await response.text()
            if response.status >= 400:
                raise RuntimeError(f"{response.status} {raw[:200]}")
            return raw

    async def ask(self, what: str) -> None:
        async with self._http.get(self._settings["base"] + what) as response:
            await response.read()
            response.raise_for_status()

    async def close(self) -> None:
        await self._http.close()


def _settle(future: asyncio.Future[Frame] | None, frame: Frame) -> None:
    if future and not future.done():
        future.set_result(frame)


def _fill(value: Any, words: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace("{" + name + "}", word)
        return value
    if isinstance(value, dict):
        return {key: _fill(item, words) for key, item in value.items()}
    return [_fill(item, words) for item in value] if isinstance(value, list) else value


def _reply(raw: str) -> str:
    if not raw.startswith("{"):
        return raw[-400:]
    message = (json.loads(raw).get("choices") or [{}])[0].get("message") or json.loads(raw).get("message") or {}
    return str(message.get("content") or raw[-200:])


KINDS: Mapping[str, type[OpenClawSocket | NanobotSocket | PlainHttp]] = {
    "openclaw-ws": OpenClawSocket,
    "nanobot-ws": NanobotSocket,
    "http": PlainHttp,
}


async def opened(settings: Settings) -> Client:
    """A connected client of the kind that `transport` names."""
    client = KINDS[settings["transport"]](settings)
    await client.open()
    return client
