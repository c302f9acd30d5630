"""Something sent, answered, changed or taken back in a chat, besides the turn's own answer."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from garra.core.errors import ToolFailed
from garra.core.value import frozen
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update

MOST: Final = 10
LARGEST: Final = 50 << 20
"""Bytes of all files of one message."""
KEPT: Final = 32
OLD: Final = {
    "message": "text",
    "target": "to",
    "replyTo": "messageId",
    "media": "files",
    "mediaUrl": "files",
    "mediaUrls": "files",
    "filePath": "files",
    "path": "files",
}
"""The names that the original knows them by."""


@frozen
class Enclosed:
    """A file that goes along."""

    place: str
    name: str
    mime: str
    data: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def line(self) -> str:
        return f"with {self.place} ({len(self.data)} bytes, sha256 {self.digest[:16]})"


class Message:
    """The tool `message`."""

    info = ToolInfo(
        "message",
        "Message",
        "Send into a chat, or reply, react, edit, delete there. Your answer is sent anyway: use it for anything else, "
        "and answer NO_REPLY when it said all. Default: this chat; `to` another, as CHANNEL:CHAT.",
        {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["send", "reply", "react", "edit", "delete"]},
                "to": {"type": "string"},
                "text": {"type": "string"},
                "messageId": {"type": "string", "description": "default for reply and react: what you answer"},
                "emoji": {"type": "string"},
                "files": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 4000},
                    "maxItems": MOST,
                    "description": "paths, or media:// names",
                },
                "threadId": {"type": "string"},
                "accountId": {"type": "string"},
                "silent": {"type": "boolean"},
            },
            "required": ["action"],
            "additionalProperties": False,
        },
        mode="sequential",
        source="channel",
        groups=("group:messaging",),
        effects=("sends",),
        declared=True,
    )

    def __init__(self) -> None:
        self._shown: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """As the original knows them."""
        mended = {OLD.get(name, name): value for name, value in arguments.items()}
        if isinstance(mended.get("files"), str):
            mended["files"] = [mended["files"]]
        return mended

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """What stays in the turn's own chat is its answer, no more. Nobody is asked for what may not be."""
        if not call.arguments.get("to"):
            return ()
        asked = {name: value for name, value in call.arguments.items() if name != "files"}
        found = await call.context.grants.ask("message.where", {**asked, "callId": call.id})
        return () if found["own"] else ("sends",)

    async def show(self, call: Call) -> str:
        asked = call.arguments
        where = f" to {asked['to']}" if asked.get("to") else " in this chat"
        which = f" (message {asked['messageId']})" if asked.get("messageId") else ""
        files = await self._files(call)
        told = "".join(f"\n{each.line()}" for each in files)
        self._keep(call, files)
        return f"{asked['action']}{where}{which}:\n{asked.get('text') or asked.get('emoji') or ''}{told}"

    async def execute(self, call: Call, _: Update) -> Result:
        files = await self._files(call)
        agreed = self._shown.pop((call.context.run_id, call.id), None)
        if agreed is not None and agreed != tuple(each.digest for each in files):
            raise ToolFailed("A file has changed since the person agreed: nothing was sent. Ask again.")
        sent = [{"name": each.name, "mime": each.mime, "data": each.data} for each in files]
        answer = await call.context.grants.ask("message", {**call.arguments, "files": sent, "callId": call.id})
        status = answer["status"]
        if status == "dead":
            raise ToolFailed(f"It could not be sent: {answer.get('reason') or 'the platform refused it'}.")
        words = {
            "ok": "Done.",
            "sent": f"Sent to {answer['chat']} (message {answer['messageId']}).",
            "pending": f"Stored for {answer['chat']}; it goes as soon as there is a connection. Do not send it again.",
        }
        line = words.get(status, f"On its way to {answer['chat']}; whether it arrived is not known. Do not repeat it.")
        return Result.of(line, answer)

    def _keep(self, call: Call, files: list[Enclosed]) -> None:
        """Remember what was shown: the yes holds for these very bytes."""
        self._shown[call.context.run_id, call.id] = tuple(each.digest for each in files)
        while len(self._shown) > KEPT:
            self._shown.popitem(last=False)

    async def _files(self, call: Call) -> list[Enclosed]:
        """Raises ToolFailed for what may not be read, and for too much."""
        left, found = LARGEST, list[Enclosed]()
        for place in call.arguments.get("files", ()):
            found.append(await _taken(call, place, left))
            left -= len(found[-1].data)
        return found


async def _taken(call: Call, place: str, limit: int) -> Enclosed:
    if place.startswith("media://"):
        held = await call.context.grants.ask("media.read", {"handle": place, "limit": limit})
        return Enclosed(place, held["name"], held["mime"], held["data"])
    if "://" in place or place.startswith("data:"):
        raise ToolFailed(f"{place[:80]}: give a file of the workspace, or a media:// name; fetch an address first")
    data = await asyncio.to_thread(call.context.files.read, place, limit)
    name = place.rstrip("/").rpartition("/")[2]
    mime, _ = await asyncio.to_thread(mimetypes.guess_type, name)  # reads the system's tables, the first time
    return Enclosed(place, name, mime or "application/octet-stream", data)
