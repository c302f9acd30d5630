"""A Bot API server with no Telegram: real HTTP on loopback, chats as a person would see them, faults on demand.

async with TelegramServer() as server:      # point apiRoot at `server.url`, botToken at `server.token`
    server.say(1001, "hello")               # a person writes
    server.fail("sendMessage", Fault(500))  # the next one fails
    server.shown(1001)                      # what the bot says in that chat
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from garra.core.value import frozen
from garra.testing.web import Request, answered, serving

SENDS = frozenset(
    {"sendMessage", "sendPhoto", "sendDocument", "sendVideo", "sendAudio", "sendVoice", "sendSticker", "sendMediaGroup"}
)


@frozen
class Fault:
    """What goes wrong with one call. `status` with `words`, or `stall` (no answer), `cut_before`, `cut_after`."""

    status: int = 0
    words: str = ""
    kind: str = "status"
    retry_after: int | None = None
    migrate_to: int | None = None
    times: int = 1


@frozen
class Asked:
    """One call that came in; `files` by field: name and bytes."""

    method: str
    params: Mapping[str, Any]
    files: Mapping[str, tuple[str, bytes]] = field(default_factory=dict)


@dataclass
class TelegramServer:
    """`async with TelegramServer() as server:` gives a running one."""

    token: str = "700000:test"
    username: str = "garra_bot"
    bot: int = 700000
    url: str = ""
    calls: list[Asked] = field(default_factory=list)
    queue: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    hook: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    messages: dict[tuple[Any, int], dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ids, self._updates = count(1), count(5001)
        self._faults: list[tuple[str, Fault, list[int]]] = []
        self._news = asyncio.Event()
        self._polls = 0

    async def __aenter__(self) -> TelegramServer:
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

    def fail(self, method: str, fault: Fault) -> None:
        """Let the next `fault.times` calls of `method` go wrong."""
        self._faults.append((method, fault, [fault.times]))

    def mend(self) -> None:
        self._faults.clear()

    def push(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """An update is there to be fetched."""
        update = {"update_id": next(self._updates), **body}
        self.queue.append(update)
        self._news.set()
        return update

    def say(self, user: int, text: str, **more: Any) -> dict[str, Any]:
        """A person writes to the bot; `more` are further keys of the message."""
        return self.push({"message": {**self.message(user, text), **more}})

    def message(self, user: int, text: str) -> dict[str, Any]:
        return {
            "message_id": next(self._ids),
            "date": 1_760_000_000,
            "from": {"id": user, "is_bot": False, "first_name": f"User{user}"},
            "chat": {"id": user, "type": "private", "first_name": f"User{user}"},
            "text": text,
        }

    def shown(self, chat: Any) -> list[str]:
        """What stands in a chat from the bot, in order."""
        return [str(message["text"]) for (where, _), message in self.messages.items() if where == chat]

    def asked(self, method: str) -> list[Asked]:
        return [call for call in self.calls if call.method == method]

    # ---- what it answers

    async def _serve(self, request: Request) -> bytes | None:
        if request.path.startswith(f"/file/bot{self.token}/"):
            data = self.files.get(request.path.rsplit("/", 1)[1])
            return answered(404, b"") if data is None else answered(200, data, "application/octet-stream")
        head, _, method = request.path.removeprefix("/bot").rpartition("/")
        call = Asked(method, *_params(request))
        self.calls.append(call)
        if head != self.token:
            return _no(401, "Unauthorized")
        fault = self._fault(method)
        if fault is not None and fault.kind != "cut_after":
            return await _failed(fault)
        answer = await self._polled(call.params) if method == "getUpdates" else self._answer(call)
        return None if fault is not None else answer

    def _fault(self, method: str) -> Fault | None:
        for wanted, fault, left in self._faults:
            if wanted in (method, "*") and left[0] > 0:
                left[0] -= 1
                return fault
        return None

    async def _polled(self, params: Mapping[str, Any]) -> bytes:
        if self.hook:
            return _no(409, "Conflict: can't use getUpdates method while webhook is active")
        self._polls += 1
        mine, offset = self._polls, int(params.get("offset", 0))
        self._news.set()
        if offset > 0:
            self.queue = [update for update in self.queue if update["update_id"] >= offset]
        loop = asyncio.get_running_loop()
        end = loop.time() + float(params.get("timeout", 0))
        while True:
            if mine != self._polls:
                return _no(409, "Conflict: terminated by other getUpdates request")
            if self.queue or loop.time() >= end:
                return _yes(self.queue[:100])
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), max(0.01, end - loop.time()))
            except TimeoutError:
                continue

    def _answer(self, call: Asked) -> bytes:
        if call.method in SENDS:
            return self._sent(call)
        plain: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
            "getMe": self._me,
            "getFile": self._file,
            "editMessageText": self._edited,
            "deleteMessage": self._deleted,
            "getWebhookInfo": lambda _: _yes({"url": self.hook, "pending_update_count": len(self.queue)}),
            "setWebhook": lambda params: self._set_hook(str(params["url"])),
            "deleteWebhook": lambda _: self._set_hook(""),
        }
        known = plain.get(call.method)
        return known(call.params) if known else _yes(True)

    def _me(self, _: Mapping[str, Any]) -> bytes:
        return _yes({"id": self.bot, "is_bot": True, "first_name": "Garra", "username": self.username, **self.facts})

    def _set_hook(self, url: str) -> bytes:
        self.hook = url
        return _yes(True)

    def _file(self, params: Mapping[str, Any]) -> bytes:
        name = str(params["file_id"])
        if name not in self.files:
            return _no(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        return _yes({"file_id": name, "file_size": len(self.files[name]), "file_path": f"documents/{name}"})

    def _sent(self, call: Asked) -> bytes:
        params, number = call.params, next(self._ids)
        text = str(params.get("text") or params.get("caption") or "")
        if call.method == "sendMessage" and (bad := _checked(text)):
            return bad
        chat = params["chat_id"]
        message = {"message_id": number, "chat": {"id": chat}, "text": text, "via": call.method}
        self.messages[chat, number] = message
        return _yes([message] if call.method == "sendMediaGroup" else message)

    def _edited(self, params: Mapping[str, Any]) -> bytes:
        message = self.messages.get((params["chat_id"], int(params["message_id"])))
        if message is None:
            return _no(400, "Bad Request: message to edit not found")
        if message["text"] == params["text"]:
            return _no(400, "Bad Request: message is not modified: specified new message content is the same")
        message["text"] = params["text"]
        return _yes(message)

    def _deleted(self, params: Mapping[str, Any]) -> bytes:
        gone = self.messages.pop((params["chat_id"], int(params["message_id"])), None)
        return _yes(True) if gone else _no(400, "Bad Request: message to delete not found")


def _checked(text: str) -> bytes | None:
    if not text.strip():
        return _no(400, "Bad Request: message text is empty")
    if len(text.encode("utf-16-le")) // 2 > 4096:
        return _no(400, "Bad Request: message is too long")
    return None


async def _failed(fault: Fault) -> bytes | None:
    if fault.kind == "stall":
        await asyncio.Event().wait()
    if fault.kind != "status":
        return None
    more = {"retry_after": fault.retry_after, "migrate_to_chat_id": fault.migrate_to}
    return _no(fault.status, fault.words, {key: value for key, value in more.items() if value is not None})


def _yes(result: Any) -> bytes:
    return answered(200, json.dumps({"ok": True, "result": result}).encode())


def _no(code: int, words: str, more: Mapping[str, Any] | None = None) -> bytes:
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": words}
    if more:
        body["parameters"] = dict(more)
    return answered(code, json.dumps(body).encode())


def _params(request: Request) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    kind = request.headers.get("content-type", "")
    if not kind.startswith("multipart/"):
        return (json.loads(request.body) if request.body else {}), {}
    mark = kind.partition("boundary=")[2].encode()
    params: dict[str, Any] = {}
    files: dict[str, tuple[str, bytes]] = {}
    for part in request.body.split(b"--" + mark)[1:-1]:
        head, _, data = part.removeprefix(b"\r\n").removesuffix(b"\r\n").partition(b"\r\n\r\n")
        names = dict(piece.split('="', 1) for piece in head.decode().replace("\r\n", "; ").split("; ") if '="' in piece)
        name, file = names["name"].strip('"'), names.get("filename", "").strip('"')
        if file:
            files[name] = (file, data)
        else:
            text = data.decode()
            params[name] = json.loads(text) if text[:1] in "{[-0123456789tf" and _is_json(text) else text
    return params, files


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
