"""A homeserver of one bot: real HTTP on loopback, rooms of two as people would see them, faults on demand.

async with MatrixServer() as server:       # point homeserver at `server.url`, accessToken at `server.token`
    await server.say("@ann:x", "hello")    # a person writes in the room of the two
    server.fail("send", MatrixFault(500))  # the next one fails
    server.shown("@ann:x")                 # what the bot said there
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from garra.core.value import frozen
from garra.testing.web import Request, answered, serving

SERVER = "example.org"


@frozen
class MatrixFault:
    """What goes wrong with one call: `status` with `errcode` and `words`, or `cut_after` (done, and no answer)."""

    status: int = 0
    errcode: str = ""
    words: str = ""
    kind: str = "status"
    retry_after_ms: int | None = None


@frozen
class Called:
    """One call that came in: its path without the version before it, in parts."""

    method: str
    parts: tuple[str, ...]
    query: Mapping[str, str]
    body: Any


@dataclass
class Room:
    """A room: who is in it, and all that happened."""

    id: str
    members: dict[str, str]
    events: list[dict[str, Any]] = field(default_factory=list)
    encrypted: bool = False


@dataclass
class MatrixServer:
    """`async with MatrixServer() as server:` gives a running one."""

    token: str = "the-access-token"
    me: str = f"@garra:{SERVER}"
    name: str = "Garra"
    url: str = ""
    calls: list[Called] = field(default_factory=list)
    rooms: dict[str, Room] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    invited: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    shown_most: int = 1000
    password: str = "the-password"
    soft: bool = False
    direct: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ids = count(1)
        self._log: list[tuple[str, dict[str, Any]]] = []
        self._faults: dict[str, list[MatrixFault]] = {}
        self._done: dict[tuple[str, ...], str] = {}
        self._news = asyncio.Event()
        self._synced = asyncio.Event()

    async def __aenter__(self) -> MatrixServer:
        self._serving = self._run()
        self.url = await self._serving.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.__aexit__(None, None, None)

    @asynccontextmanager
    async def _run(self) -> AsyncIterator[str]:
        async with serving(self._serve) as url:
            yield url

    # ---- what a test says

    def fail(self, what: str, fault: MatrixFault) -> None:
        """Let the next call go wrong that has `what` among the parts of its path."""
        self._faults.setdefault(what, []).append(fault)

    def room(self, *people: str, named: str = "") -> Room:
        """The room of the bot and these people."""
        wanted = {self.me, *people}
        for room in self.rooms.values():
            if room.members.keys() == wanted and not named:
                return room
        made = Room(named or f"!room{next(self._ids)}:{SERVER}", {who: who[1:].partition(":")[0] for who in wanted})
        self.rooms[made.id] = made
        return made

    async def say(self, user: str, text: str, room: Room | None = None, **content: Any) -> dict[str, Any]:
        """A person writes, once the bot has begun to read: what was said before is history."""
        await self._synced.wait()
        where = room or self.room(user)
        return self.push(where.id, user, "m.room.message", {"msgtype": "m.text", "body": text, **content})

    def push(self, room: str, sender: Any, kind: Any, content: Any, **more: Any) -> dict[str, Any]:
        """An event happens."""
        number = next(self._ids)
        event = {"event_id": f"$event{number}", "type": kind, "sender": sender, "content": content, **more}
        event.setdefault("origin_server_ts", 1_760_000_000_000 + number)
        self._log.append((room, event))
        if room in self.rooms:
            self.rooms[room].events.append(event)
        self._news.set()
        return event

    def invite(self, by: str, room: str, *, direct: bool) -> None:
        content = {"membership": "invite", "is_direct": direct}
        asked = {"type": "m.room.member", "sender": by, "state_key": self.me, "content": content}
        self.invited[room] = [asked]
        self.rooms[room] = Room(room, {by: "inviter"}, [{**asked, "event_id": f"$event{next(self._ids)}"}])
        self._news.set()

    def sent(self, room: Room) -> list[dict[str, Any]]:
        """The bot's messages in a room, in order."""
        return [one for one in room.events if one["sender"] == self.me and one["type"] == "m.room.message"]

    def shown(self, user: str) -> list[str]:
        return [str(event["content"]["body"]) for event in self.sent(self.room(user))]

    def asked(self, part: str) -> list[Called]:
        return [call for call in self.calls if part in call.parts]

    # ---- what it answers

    async def _serve(self, request: Request) -> bytes | None:
        address = urlsplit(request.path)
        parts = tuple(unquote(part) for part in address.path.split("/")[4:])
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        is_json = request.headers.get("content-type", "") == "application/json"
        body = json.loads(request.body or b"{}") if is_json else request.body
        call = Called(request.method, parts, query, body)
        self.calls.append(call)
        if parts == ("login",) and isinstance(body, dict):
            return self._login(body)
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _no(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.", soft_logout=self.soft)
        fault = next((self._faults[part].pop(0) for part in parts if self._faults.get(part)), None)
        if fault is not None and fault.kind == "status":
            return _no(fault.status, fault.errcode, fault.words, fault.retry_after_ms)
        if parts[:2] == ("media", "download"):
            data = self.files.get(f"mxc://{'/'.join(parts[2:])}")
            return _no(404, "M_NOT_FOUND", "Not found") if data is None else answered(200, data, "text/plain")
        found = await self._answer(call)
        if fault is not None:
            return None
        return found if isinstance(found, bytes) else answered(200, json.dumps(found).encode())

    def _login(self, body: Mapping[str, Any]) -> bytes:
        if body["password"] != self.password:
            return _no(403, "M_FORBIDDEN", "Invalid username or password")
        self.token = f"token-{next(self._ids)}"
        found = {"user_id": self.me, "access_token": self.token, "device_id": body.get("device_id", "MADE")}
        return answered(200, json.dumps(found).encode())

    async def _answer(self, call: Called) -> dict[str, Any] | bytes:
        match call.method, *call.parts:
            case "GET", "account", "whoami":
                return {"user_id": self.me, "device_id": "DEVICE"}
            case "GET", "profile", _, "displayname":
                return {"displayname": self.name}
            case "GET", "sync":
                return await self._sync(call.query)
            case "POST", "upload":
                mxc = f"mxc://{SERVER}/file{next(self._ids)}"
                self.files[mxc] = call.body
                return {"content_uri": mxc}
            case "POST", "join", room:
                return self._join(room)
            case "GET", "joined_rooms":
                return {"joined_rooms": list(self.rooms)}
            case method, "rooms", room, *rest if room in self.rooms:
                return self._room(method, self.rooms[room], rest, call)
        return self._account(call)

    def _account(self, call: Called) -> dict[str, Any] | bytes:
        match call.method, *call.parts:
            case "GET", "directory", "room", alias:
                return {"room_id": alias.replace("#", "!")}
            case "GET", "user", _, "account_data", "m.direct" if self.direct:
                return self.direct
            case "PUT", "user", _, "account_data", "m.direct":
                self.direct = dict(call.body)
                return {}
            case "POST", "createRoom":
                return {"room_id": self.room(*call.body["invite"]).id}
        return _no(404, "M_NOT_FOUND", "there is no such thing here")

    def _room(self, method: str, room: Room, rest: list[str], call: Called) -> dict[str, Any] | bytes:
        match method, *rest:
            case "GET", "joined_members":
                return {"joined": {who: {"display_name": name} for who, name in room.members.items()}}
            case "GET", "event", event_id:
                found = next((one for one in room.events if one["event_id"] == event_id), None)
                return found or _no(404, "M_NOT_FOUND", "Event not found.")
            case "GET", "members":
                return {"chunk": []}
            case "GET", "messages":
                return self._back(room, call.query)
            case "GET", "relations", about, *_:
                return {"chunk": [one for one in room.events if one["type"] == "m.reaction" and _about(one) == about]}
            case "PUT", "send", kind, key:
                return {"event_id": self._once((room.id, kind, key), room, kind, call.body)}
            case "PUT", "redact", event_id, key:
                room.events = [one for one in room.events if one["event_id"] != event_id]
                return {
                    "event_id": self._once((room.id, event_id, key), room, "m.room.redaction", {"redacts": event_id})
                }
            case "PUT", "typing", _:
                return {}
            case "GET", "state", "m.room.encryption", _ if room.encrypted:
                return {"algorithm": "m.megolm.v1.aes-sha2"}
        return _no(404, "M_NOT_FOUND", "there is no such thing here")

    def _once(self, key: tuple[str, ...], room: Room, kind: str, content: Any) -> str:
        """A transaction id that was there before gives the event it gave then."""
        if key not in self._done:
            self._done[key] = str(self.push(room.id, self.me, kind, content)["event_id"])
        return self._done[key]

    def _join(self, room: str) -> dict[str, Any]:
        self.invited.pop(room, None)
        self.rooms[room].members[self.me] = self.name
        content = {"membership": "join"}
        before = {"prev_content": {"membership": "invite"}}
        self.push(room, self.me, "m.room.member", content, state_key=self.me, unsigned=before)
        return {"room_id": room}

    def _back(self, room: Room, query: Mapping[str, str]) -> dict[str, Any]:
        """Events before a place, newest first; the place is how many stand before it."""
        end = int(query["from"])
        start = max(end - int(query["limit"]), int(query.get("to", "s0")[1:]) and 0)
        return {"chunk": room.events[start:end][::-1], **({"end": str(start)} if start else {})}

    async def _sync(self, query: Mapping[str, str]) -> dict[str, Any]:
        since = int(query["since"][1:]) if "since" in query else len(self._log)
        wait = int(query.get("timeout", "0")) / 1000
        if wait and len(self._log) <= since and not self.invited:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, 2.0)):
                    await self._news.wait()
        self._synced.set()
        joined: dict[str, Any] = {}
        for room, event in self._log[since:]:
            joined.setdefault(room, {"timeline": {"events": []}})["timeline"]["events"].append(event)
        for room, body in joined.items():
            self._cut(self.rooms.get(room), body["timeline"])
        asked = {room: {"invite_state": {"events": events}} for room, events in self.invited.items()}
        return {"next_batch": f"s{len(self._log)}", "rooms": {"join": joined, "invite": asked}}

    def _cut(self, room: Room | None, timeline: dict[str, Any]) -> None:
        """Leave out all but the newest events, and what was before the bot came in, as servers do."""
        events = timeline["events"]
        entered = any(one.get("state_key") == self.me and "unsigned" in one for one in events)
        if room is not None and (entered or len(events) > self.shown_most):
            kept = events[-self.shown_most :]
            before = next(n for n, one in enumerate(room.events) if one is kept[0])
            timeline.update(events=kept, limited=True, prev_batch=str(before))


def _about(event: Mapping[str, Any]) -> str:
    return str((event["content"].get("m.relates_to") or {}).get("event_id"))


def _no(status: int, errcode: str, words: str, retry_after_ms: int | None = None, **more: Any) -> bytes:
    more |= {} if retry_after_ms is None else {"retry_after_ms": retry_after_ms}
    return answered(status, json.dumps({"errcode": errcode, "error": words, **more}).encode())
