"""A Discord with nobody in it: REST and gateway on loopback, sessions that can be resumed, faults on demand.

async with DiscordServer() as server:     # apiRoot is `server.url`, the token `server.token`
    server.say("1001", "hello")           # a person writes to the bot
    server.fail("messages", Fault(500))   # the next call whose path holds that goes wrong
    server.shown(server.dm("1001"))       # what the bot says there

As Discord's documentation has it: opcodes, hello, heartbeats, READY, RESUMED, invalid sessions, close codes, nonces,
rate limits. A session forgets what a heartbeat has confirmed.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from garra.core.value import frozen
from garra.testing.web import Request, answered, serving

CONTENT = 1 << 15
_BASE = (4_000_000_000_000 - 1_420_070_400_000) << 22


@frozen
class Fault:
    """What goes wrong with one call: `status` with Discord's `number` and words, or `kind`: `cut_before`, `cut_after`,
    `stall`, `hang_after`.
    """

    status: int = 0
    words: str = ""
    number: int = 0
    kind: str = "status"
    retry_after: float | None = None
    everywhere: bool = False
    errors: Mapping[str, Any] | None = None


@frozen
class Asked:
    """One call that came in; `path` is below the root, `files` are names and bytes."""

    method: str
    path: str
    body: Any = None
    files: tuple[tuple[str, bytes], ...] = ()


@dataclass
class Session:
    """What one identify began. `sent` is what may be asked for again."""

    id: str
    seq: int = 0
    sent: list[dict[str, Any]] = field(default_factory=list)
    socket: ServerConnection | None = None


@dataclass
class DiscordServer:
    """`async with DiscordServer() as server:` gives a running one. `content`: the bot may have message content.

    `deaf`: heartbeats are not answered. `broken`: the gateway closes each connection with that code. `guilds` are as
    GUILD_CREATE has them. `left` is how many sessions may still begin.
    """

    token: str = "Ym90.test.token"
    bot: str = "900000000000000001"
    every_ms: int = 40_000
    content: bool = True
    deaf: bool = False
    broken: int = 0
    left: int = 1000
    guilds: list[dict[str, Any]] = field(default_factory=list)
    members: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    calls: list[Asked] = field(default_factory=list)
    beats: list[int | None] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""
    gateway: str = ""

    def __post_init__(self) -> None:
        self._ids, self._serials = count(1), count(1)
        self._faults: list[tuple[str, Fault]] = []
        self.nonces: dict[str, dict[str, Any]] = {}
        self.sessions: dict[str, Session] = {}
        self._ports = (0, 0)
        self._news = asyncio.Event()

    async def __aenter__(self) -> DiscordServer:
        self._stack = AsyncExitStack()
        root = await self._stack.enter_async_context(serving(self._serve, self._ports[0]))
        server = await self._stack.enter_async_context(serve(self._meet, "127.0.0.1", self._ports[1]))
        port = next(iter(server.sockets)).getsockname()[1]
        self._ports = int(root.rpartition(":")[2]), port
        self.url, self.gateway = f"{root}/api/v10", f"ws://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    # ---- what a test says

    def id(self) -> str:
        return str(_BASE + (next(self._ids) << 22))

    def dm(self, user: str) -> str:
        """The direct channel with somebody."""
        return str(8_000_000_000 + int(user))

    def fail(self, path: str, fault: Fault) -> None:
        """Let the next call whose path holds `path` go wrong."""
        self._faults.append((path, fault))

    def say(self, user: str, text: str, channel: str = "", **more: Any) -> dict[str, Any]:
        """A person writes to the bot, or in a channel; `more` are further keys of the message."""
        message = self.message(user, text, channel or self.dm(user), **more)
        self.messages.setdefault(message["channel_id"], []).append(message)
        self.push("MESSAGE_CREATE", message)
        return message

    def message(self, user: str, text: str, channel: str, **more: Any) -> dict[str, Any]:
        author = {"id": user, "username": f"user{user}", "global_name": f"User {user}", "discriminator": "0"}
        return {
            "id": self.id(),
            "type": 0,
            "channel_id": channel,
            "author": author,
            "content": text,
            "timestamp": "2096-10-02T07:06:40.000000+00:00",
            "edited_timestamp": None,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            **more,
        }

    def push(self, name: str, body: Any) -> None:
        """Something happens; every session hears of it, now or when it is resumed."""
        for session in self.sessions.values():
            self._tell(session, name, body)

    def shown(self, channel: str) -> list[str]:
        """What stands in a channel from the bot, in order."""
        return [str(one["content"]) for one in self.messages.get(channel, ()) if one["author"]["id"] == self.bot]

    def asked(self, path: str, method: str = "") -> list[Asked]:
        return [call for call in self.calls if path in call.path and method in ("", call.method)]

    async def entered(self) -> None:
        """Wait until the bot has a session: Discord tells nothing from before its first one."""
        async with asyncio.timeout(10):
            while not any(session.socket for session in self.sessions.values()):
                self._news.clear()
                await self._news.wait()

    def forget(self) -> None:
        """No session can be resumed any more."""
        self.sessions.clear()

    async def close(self, code: int) -> None:
        """Close every connection."""
        for session in tuple(self.sessions.values()):
            if session.socket is not None:
                await session.socket.close(code)

    async def tell(self, op: int, body: Any = None) -> None:
        """Say something that is no event."""
        for session in tuple(self.sessions.values()):
            if session.socket is not None:
                await session.socket.send(json.dumps({"op": op, "d": body}))

    # ---- the gateway

    async def _meet(self, socket: ServerConnection) -> None:
        if self.broken:
            await socket.close(self.broken)
            return
        await socket.send(json.dumps({"op": 10, "d": {"heartbeat_interval": self.every_ms}}))
        session: Session | None = None
        with suppress(ConnectionClosed):
            async for raw in socket:
                frame = json.loads(raw)
                if frame["op"] == 1:
                    await self._beaten(socket, session, frame["d"])
                elif frame["op"] in (2, 6) and frame["d"]["token"] != self.token:
                    await socket.close(4004, "Authentication failed.")
                elif frame["op"] == 2:
                    session = await self._identified(socket, frame["d"])
                elif frame["op"] == 6:
                    session = await self._resumed(socket, frame["d"])
        if session is not None and session.socket is socket:
            session.socket = None
            if (
                socket.close_code in (1000, 1001) and socket.protocol.close_rcvd_then_sent
            ):  # who says goodbye so ends the session
                self.sessions.pop(session.id, None)

    async def _beaten(self, socket: ServerConnection, session: Session | None, seq: int | None) -> None:
        self.beats.append(seq)
        if session is not None and seq is not None:
            session.sent = [event for event in session.sent if event["s"] > seq]
        if not self.deaf:
            await socket.send(json.dumps({"op": 11}))

    async def _identified(self, socket: ServerConnection, asked: Mapping[str, Any]) -> Session | None:
        if asked["intents"] & CONTENT and not self.content:
            await socket.close(4014, "Disallowed intent(s).")
            return None
        self.begun.append("identify")
        session = Session(f"session{next(self._serials)}", socket=socket)
        self.sessions = {session.id: session}
        user = {"id": self.bot, "username": "garra", "global_name": None, "bot": True}
        listed = [{"id": guild["id"], "unavailable": True} for guild in self.guilds]
        ready = {"v": 10, "user": user, "session_id": session.id, "resume_gateway_url": self.gateway, "guilds": listed}
        self._tell(session, "READY", {**ready, "application": {"id": self.bot}})
        for guild in self.guilds:
            self._tell(session, "GUILD_CREATE", guild)
        return session

    async def _resumed(self, socket: ServerConnection, asked: Mapping[str, Any]) -> Session | None:
        session = self.sessions.get(asked["session_id"])
        self.begun.append("resume" if session else "refused")
        if session is None:
            await socket.send(json.dumps({"op": 9, "d": False}))
            return None
        session.socket = socket
        for event in [each for each in session.sent if each["s"] > asked["seq"]]:
            await socket.send(json.dumps(event))
        self._tell(session, "RESUMED", {})
        return session

    def _tell(self, session: Session, name: str, body: Any) -> None:
        self._news.set()
        session.seq += 1
        event = {"op": 0, "s": session.seq, "t": name, "d": body}
        session.sent.append(event)
        if session.socket is not None:
            session.socket.protocol.send_text(json.dumps(event).encode())
            session.socket.send_data()

    # ---- REST

    async def _serve(self, request: Request) -> bytes | None:
        if request.path.startswith("/files/"):
            data = self.files.get(request.path.rsplit("/", 1)[1])
            return answered(404, b"") if data is None else answered(200, data, "application/octet-stream")
        body, files = _read(request)
        call = Asked(request.method, request.path.removeprefix("/api/v10"), body, files)
        self.calls.append(call)
        if request.headers.get("authorization") != f"Bot {self.token}":
            return _no(401, "401: Unauthorized", 0)
        fault = next((each for each in self._faults if each[0] in call.path), None)
        if fault is None:
            return self._with_headers(self._answer(call))
        self._faults.remove(fault)
        if fault[1].kind.endswith("_after"):
            self._answer(call)
        return await _failed(fault[1])

    def _with_headers(self, answer: bytes) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return answer.replace(b"\r\n", b"\r\n" + lines.encode(), 1)

    def _answer(self, call: Asked) -> bytes:
        path, _, query = call.path.partition("?")
        parts = path.strip("/").split("/")
        match call.method, *parts:
            case "GET", "gateway", "bot":
                limit = {"total": 1000, "remaining": self.left, "reset_after": 14_400_000, "max_concurrency": 1}
                return _yes({"url": self.gateway, "shards": 1, "session_start_limit": limit})
            case "POST", "users", "@me", "channels":
                return _yes({"id": self.dm(call.body["recipient_id"]), "type": 1})
            case "GET", "channels", channel:
                found = self.channels.get(channel)
                return _yes(found) if found else _no(404, "Unknown Channel", 10003)
            case "GET", "guilds", guild, "members", user:
                member = self.members.get((guild, user))
                return _yes(member) if member else _no(404, "Unknown Member", 10007)
            case "GET", "channels", channel, "messages":
                asked = parse_qs(query)
                after, limit_ = int(asked["after"][0]), int(asked["limit"][0])
                found_ = [each for each in self.messages.get(channel, ()) if int(each["id"]) > after][:limit_]
                hidden = ("guild_id", "member", "nonce")
                return _yes([{k: v for k, v in each.items() if k not in hidden} for each in reversed(found_)])
            case "GET", "channels", channel, "messages", number:
                one = self._find(channel, number)
                return _yes(one) if one else _no(404, "Unknown Message", 10008)
            case "POST", "channels", channel, "messages":
                return self._sent(channel, call)
            case "PATCH" | "DELETE", "channels", channel, "messages", number:
                return self._changed(channel, number, call)
        return answered(204, b"")

    def _find(self, channel: str, number: str) -> dict[str, Any] | None:
        return next((each for each in self.messages.get(channel, ()) if each["id"] == number), None)

    def _sent(self, channel: str, call: Asked) -> bytes:
        body = call.body
        if (known := self.nonces.get(body["nonce"])) is not None:
            return _yes(known)
        text = body.get("content", "")
        if len(text) > 2000:
            errors = {"content": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer"}]}}
            return _no(400, "Invalid Form Body", 50035, {"errors": errors})
        if not text and not call.files:
            return _no(400, "Cannot send an empty message", 50006)
        message = self.message(self.bot, text, channel, nonce=body["nonce"])
        message["author"]["bot"] = True
        self.nonces[body["nonce"]] = message
        self.messages.setdefault(channel, []).append(message)
        self.push("MESSAGE_CREATE", message)
        return _yes(message)

    def _changed(self, channel: str, number: str, call: Asked) -> bytes:
        message = self._find(channel, number)
        if message is None:
            return _no(404, "Unknown Message", 10008)
        if call.method == "DELETE":
            self.messages[channel].remove(message)
            return answered(204, b"")
        message["content"] = call.body["content"]
        return _yes(message)


async def _failed(fault: Fault) -> bytes | None:
    if fault.kind in ("stall", "hang_after"):
        await asyncio.Event().wait()
    if fault.kind != "status":
        return None
    more: dict[str, Any] = {"errors": fault.errors} if fault.errors else {}
    if fault.retry_after is not None:
        more |= {"retry_after": fault.retry_after, "global": fault.everywhere}
    return _no(fault.status, fault.words, fault.number, more)


def _yes(found: Any) -> bytes:
    return answered(200, json.dumps(found).encode())


def _no(status: int, words: str, number: int, more: Mapping[str, Any] | None = None) -> bytes:
    return answered(status, json.dumps({"message": words, "code": number, **(more or {})}).encode())


def _read(request: Request) -> tuple[Any, tuple[tuple[str, bytes], ...]]:
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/"):
        return (json.loads(request.body) if request.body else None), ()
    mark, body, files = kind.partition("boundary=")[2].encode(), None, list[tuple[str, bytes]]()
    for part in request.body.split(b"--" + mark)[1:-1]:
        head, _, data = part.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
        named = re.search(r'filename="([^"]*)"', head.decode())
        if named:
            files.append((unquote(named[1]), data))
        else:
            body = json.loads(data)
    return body, tuple(files)
