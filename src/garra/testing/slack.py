"""A Slack with nobody in it: Web API and Socket Mode on loopback, envelopes repeated until confirmed, faults on demand.

async with SlackServer() as server:                     # apiRoot is `server.url`
    server.say("U1001", "hello")                        # a person writes to the bot
    server.fail("chat.postMessage", Fault("is_archived"))
    server.shown(server.dm("U1001"))                    # what the bot says there

As Slack's documentation has it: apps.connections.open, hello, envelopes with acknowledgements and repetitions,
disconnect, `ok` and `error`, 429 with Retry-After, uploads in three steps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from garra.core.value import frozen
from garra.testing.web import Request, answered, serving


@frozen
class Fault:
    """What goes wrong with one call: Slack's `word`, or `kind`: `cut_before`, `cut_after`, `stall`, `hang_after`,
    `status`."""

    word: str = ""
    kind: str = "word"
    status: int = 200
    retry_after: int | None = None
    needed: str = ""


@frozen
class Asked:
    """One call that came in."""

    method: str
    params: Mapping[str, Any]


@dataclass
class SlackServer:
    """`async with SlackServer() as server:` gives a running one. `retry_s`: after so long an envelope is sent again.

    `broken` is the reason of the disconnect that each connection is greeted with. `others` are connections of other
    programs.
    """

    bot_token: str = "xoxb-test-token"
    app_token: str = "xapp-test-token"
    bot: str = "U0BOT"
    bot_id: str = "B0BOT"
    team: str = "T1"
    retry_s: float = 3.0
    broken: str = ""
    url: str = ""
    calls: list[Asked] = field(default_factory=list)
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    waiting: dict[str, dict[str, Any]] = field(default_factory=dict)
    confirmed: list[str] = field(default_factory=list)
    sockets: list[ServerConnection] = field(default_factory=list)
    opened: int = 0
    others: int = 0

    def __post_init__(self) -> None:
        self._ids, self._numbers = count(1), count(1)
        self._faults: list[tuple[str, Fault]] = []
        self._ports = (0, 0)
        self._news = asyncio.Event()

    async def __aenter__(self) -> SlackServer:
        self._stack = AsyncExitStack()
        root = await self._stack.enter_async_context(serving(self._serve, self._ports[0]))
        server = await self._stack.enter_async_context(serve(self._meet, "127.0.0.1", self._ports[1]))
        port = next(iter(server.sockets)).getsockname()[1]
        self._ports = int(root.rpartition(":")[2]), port
        self.root, self.url, self._gate = root, f"{root}/api", f"ws://127.0.0.1:{port}/link"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    # ---- what a test says

    def ts(self) -> str:
        """The number of the next message; later than now."""
        return f"{4_000_000_000 + next(self._numbers)}.000100"

    def dm(self, user: str) -> str:
        """The direct channel with somebody."""
        return f"D{user}"

    def fail(self, method: str, fault: Fault) -> None:
        """Let the next call of `method` go wrong."""
        self._faults.append((method, fault))

    def say(self, user: str, text: str, channel: str = "", **more: Any) -> dict[str, Any]:
        """A person writes to the bot, or in a channel; `more` are further keys of the message."""
        chat = channel or self.dm(user)
        message = {"type": "message", "user": user, "text": text, "ts": self.ts(), "team": self.team, **more}
        self.messages.setdefault(chat, []).append(message)
        kind = "im" if chat[0] == "D" else "channel"
        self.happens({**message, "channel": chat, "channel_type": kind, "event_ts": message["ts"]})
        return message

    def miss(self, user: str, text: str, channel: str = "", **more: Any) -> dict[str, Any]:
        """The same, which Slack tells nobody: only the history has it."""
        message = {"type": "message", "user": user, "text": text, "ts": self.ts(), "team": self.team, **more}
        self.messages.setdefault(channel or self.dm(user), []).append(message)
        return message

    def happens(self, event: Any) -> str:
        """An event; gives the envelope's id."""
        number = next(self._ids)
        payload = {"type": "event_callback", "team_id": self.team, "event_id": f"Ev{number}", "event": event}
        return self.push("events_api", payload)

    def push(self, kind: str, payload: Any) -> str:
        """An envelope, sent again until it is confirmed."""
        number = f"env-{next(self._ids)}"
        frame = {"type": kind, "envelope_id": number, "payload": payload, "accepts_response_payload": False}
        self.waiting[number] = {**frame, "retry_attempt": 0, "retry_reason": ""}
        self._send(number)
        return number

    def shown(self, channel: str) -> list[str]:
        """What stands in a channel from the bot, in order."""
        return [str(one["text"]) for one in self.messages.get(channel, ()) if one.get("user") == self.bot]

    def asked(self, method: str) -> list[Asked]:
        return [call for call in self.calls if call.method == method]

    async def tell(self, frame: Mapping[str, Any]) -> None:
        """Say a frame on the newest connection."""
        await self.sockets[-1].send(json.dumps(frame))

    async def until(self, true: Callable[[], object], seconds: float = 10.0) -> None:
        """Wait until `true()`; it is looked at whenever something was said or heard."""
        async with asyncio.timeout(seconds):
            while not true():
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.05)

    # ---- Socket Mode

    def _send(self, number: str) -> None:
        """Send an envelope on the newest connection, and again later unless it is confirmed by then."""
        frame = self.waiting.get(number)
        if frame is None or not self.sockets:
            return
        self.sockets[-1].protocol.send_text(json.dumps(frame).encode())
        self.sockets[-1].send_data()
        self.waiting[number] = {**frame, "retry_attempt": frame["retry_attempt"] + 1, "retry_reason": "timeout"}
        asyncio.get_running_loop().call_later(self.retry_s, self._send, number)

    async def _meet(self, socket: ServerConnection) -> None:
        self.opened += 1
        if self.broken:
            await socket.send(json.dumps({"type": "disconnect", "reason": self.broken, "debug_info": {}}))
            return
        all_ = len(self.sockets) + self.others + 1
        await socket.send(json.dumps({"type": "hello", "num_connections": all_, "connection_info": {"app_id": "A1"}}))
        self.sockets.append(socket)
        self._news.set()
        for number in tuple(self.waiting):
            self._send(number)
        with suppress(ConnectionClosed):
            async for raw in socket:
                number = json.loads(raw)["envelope_id"]
                if self.waiting.pop(number, None) is not None:
                    self.confirmed.append(number)
                self._news.set()
        self.sockets.remove(socket)
        self._news.set()

    # ---- Web API

    async def _serve(self, request: Request) -> bytes | None:
        name = request.path.rsplit("/", 1)[1]
        if request.path.startswith("/upload/"):
            self.uploads[name] = request.body
            return answered(200, b"OK - 4", "text/plain")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.path.startswith("/files/"):
            login = answered(200, b"<html>", "text/html; charset=utf-8")
            data = self.uploads.get(name)
            missing = answered(404, b"")
            return login if token != self.bot_token else missing if data is None else answered(200, data, "x/y")
        call = Asked(
            name, {key: _value(text) for key, text in parse_qsl(request.body.decode(), keep_blank_values=True)}
        )
        self.calls.append(call)
        self._news.set()
        if token != (self.app_token if name == "apps.connections.open" else self.bot_token):
            return _no("invalid_auth")
        fault = next((each for each in self._faults if each[0] == name), None)
        if fault is None:
            return self._answer(call)
        self._faults.remove(fault)
        if fault[1].kind.endswith("_after"):
            self._answer(call)
        return await _failed(fault[1])

    def _answer(self, call: Asked) -> bytes:
        known: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
            "apps.connections.open": lambda _: _yes(url=f"{self._gate}?ticket=secret-ticket"),
            "auth.test": lambda _: _yes(user_id=self.bot, bot_id=self.bot_id, team_id=self.team, user="garra"),
            "chat.postMessage": self._posted,
            "chat.update": self._updated,
            "chat.delete": self._deleted,
            "conversations.open": lambda params: _yes(channel={"id": self.dm(params["users"])}),
            "conversations.history": self._history,
            "conversations.replies": self._history,
            "conversations.info": lambda params: _found("channel", self.channels.get(params["channel"])),
            "users.info": lambda params: _found("user", self.users.get(params["user"])),
            "files.info": lambda params: _found("file", self.files.get(params["file"])),
            "files.getUploadURLExternal": self._upload,
            "files.completeUploadExternal": self._completed,
        }
        method = known.get(call.method)
        return method(call.params) if method else _yes()

    def _posted(self, params: Mapping[str, Any]) -> bytes:
        text = str(params.get("text") or "")
        if not text:
            return _no("no_text")
        message = {"type": "message", "user": self.bot, "bot_id": self.bot_id, "text": text, "ts": self.ts()}
        message |= {key: params[key] for key in ("thread_ts", "metadata", "blocks") if key in params}
        chat = str(params["channel"])
        self.messages.setdefault(chat, []).append(message)
        self.happens({**message, "channel": chat, "channel_type": "im" if chat[0] == "D" else "channel"})
        return _yes(channel=chat, ts=message["ts"], message=message)

    def _find(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        return next((one for one in self.messages.get(params["channel"], ()) if one["ts"] == params["ts"]), None)

    def _updated(self, params: Mapping[str, Any]) -> bytes:
        message = self._find(params)
        if message is None:
            return _no("message_not_found")
        message |= {"text": params["text"], "edited": {"user": self.bot, "ts": self.ts()}}
        return _yes(ts=message["ts"])

    def _deleted(self, params: Mapping[str, Any]) -> bytes:
        message = self._find(params)
        if message is None:
            return _no("message_not_found")
        self.messages[params["channel"]].remove(message)
        return _yes()

    def _history(self, params: Mapping[str, Any]) -> bytes:
        every, root = self.messages.get(params["channel"], []), params.get("ts")
        oldest, limit = float(params.get("oldest", 0)), int(params.get("limit", 100))
        if root:
            found = [one for one in every if one.get("thread_ts") == root or one["ts"] == root]
            found = [one for one in found if one["ts"] == root or float(one["ts"]) > oldest]
        else:
            found = [one for one in every if one.get("thread_ts") in (None, one["ts"]) and float(one["ts"]) > oldest][
                ::-1
            ]
        at = int(params.get("cursor") or 0)
        following = str(at + limit) if len(found) > at + limit else ""
        return _yes(messages=found[at : at + limit], response_metadata={"next_cursor": following})

    def _upload(self, params: Mapping[str, Any]) -> bytes:
        number = f"F{next(self._ids)}"
        self.files[number] = {"id": number, "name": params["filename"], "channels": []}
        return _yes(upload_url=f"{self.root}/upload/{number}", file_id=number)

    def _completed(self, params: Mapping[str, Any]) -> bytes:
        listed = [self.files[one["id"]] for one in params["files"]]
        for one in listed:
            one["channels"].append(params["channel_id"])
        message = {"user": self.bot, "bot_id": self.bot_id, "text": "", "ts": self.ts(), "files": listed}
        self.messages.setdefault(params["channel_id"], []).append(message)
        return _yes(files=listed)


async def _failed(fault: Fault) -> bytes | None:
    if fault.kind in ("stall", "hang_after"):
        await asyncio.Event().wait()
    if fault.kind.startswith("cut"):
        return None
    if fault.kind == "status":
        return answered(fault.status, b"oops", "text/plain")
    body = _no(fault.word, fault.status, needed=fault.needed) if fault.needed else _no(fault.word, fault.status)
    lines = f"retry-after: {fault.retry_after}\r\n" if fault.retry_after is not None else ""
    return body.replace(b"\r\n", b"\r\n" + lines.encode(), 1)


def _yes(**found: Any) -> bytes:
    return answered(200, json.dumps({"ok": True, **found}).encode())


def _no(word: str, status: int = 200, **more: Any) -> bytes:
    return answered(status, json.dumps({"ok": False, "error": word, **more}).encode())


def _found(key: str, value: Any) -> bytes:
    return _yes(**{key: value}) if value is not None else _no(f"{key}_not_found")


def _value(text: str) -> Any:
    if text[:1] not in ("{", "[") and text not in ("true", "false"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
