"""Transcripts as clients read them: pages of messages, under a size that a client can take."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from garra.core.value import frozen

CAP = 6_291_456
"""Bytes of one history answer at most."""

LONG = 200_000
"""Characters of one text that a page shows; the whole comes from `chat.message.get`."""


def stamp(entry: Mapping[str, Any]) -> int | None:
    """When an entry was recorded, in milliseconds since 1970."""
    at = entry.get("timestamp")
    if isinstance(at, int):
        return at
    try:
        return int(datetime.fromisoformat(str(at)).timestamp() * 1000)
    except ValueError:
        return None


def displayed(entry: Mapping[str, Any], seq: int | None) -> dict[str, Any]:
    """A stored message entry as a client reads it: the message, and under `__openclaw` where it stands."""
    message = dict(entry["message"])
    about: dict[str, Any] = dict(message.get("__openclaw") or {})
    about["id"] = entry["id"]
    if isinstance(key := message.get("idempotencyKey"), str):
        about["idempotencyKey"] = key
    if (at := stamp(entry)) is not None:
        about["recordTimestampMs"] = at
    if seq is not None:
        about["transcriptPosition"] = {"source": "transcript", "rawSeq": seq}
        about["seq"] = seq
    message["__openclaw"] = about
    return message


def shortened(message: dict[str, Any], limit: int = LONG) -> dict[str, Any]:
    """`message` with every text cut to `limit` characters; what was cut is marked, so that it can be asked for."""
    content = message.get("content")
    if isinstance(content, str):
        cut: Any = _cut(content, limit)
    elif isinstance(content, list):
        cut = [_part(part, limit) for part in content]
    else:
        return message
    if cut == content:
        return message
    about = {**message["__openclaw"], "truncated": True, "reason": "oversized"}
    return {**message, "content": cut, "__openclaw": about}


def _part(part: Any, limit: int) -> Any:
    if not isinstance(part, dict):
        return part
    for key in ("text", "thinking", "data"):
        if isinstance(part.get(key), str) and len(part[key]) > limit:
            if key == "data":
                return {"type": "text", "text": "[picture not shown here: too large]"}
            return {**part, key: _cut(part[key], limit)}
    return part


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… ({len(text) - limit} more characters)"


class Stored(Protocol):
    """One stored message entry; `body` is its JSON object, read when it is needed."""

    @property
    def body(self) -> dict[str, Any]: ...


@frozen
class Page:
    """Messages `first` to the last of `rows`, numbered from 1 within the session."""

    rows: tuple[dict[str, Any], ...]
    total: int
    offset: int

    @property
    def more(self) -> bool:
        """Whether older messages stand before these."""
        return self.offset + len(self.rows) < self.total


def page(entries: Sequence[Stored], *, limit: int, offset: int = 0, max_bytes: int = CAP, chars: int = LONG) -> Page:
    """The last `limit` messages but `offset`, oldest first; fewer when they would not fit `max_bytes`.

    One message that alone does not fit is shown as a placeholder, so that a page is never empty before the beginning.
    """
    total, room = len(entries), min(max_bytes, CAP)
    rows: list[dict[str, Any]] = []
    for at in range(total - offset - 1, max(-1, total - offset - limit - 1), -1):
        row = shortened(displayed(entries[at].body, at + 1), chars)
        size = len(msgspec.json.encode(row))
        if size > room and not rows:
            row = placeholder(row)
            size = len(msgspec.json.encode(row))
        if size > room:
            break
        room -= size
        rows.append(row)
    return Page(tuple(reversed(rows)), total, offset)


def placeholder(row: Mapping[str, Any]) -> dict[str, Any]:
    """What stands for a message that is too large for any page."""
    about = {**row["__openclaw"], "truncated": True, "reason": "oversized"}
    text = "[message too large to show here; open it alone]"
    return {
        "role": row["role"],
        "content": [{"type": "text", "text": text}],
        "timestamp": row.get("timestamp", 0),
        "__openclaw": about,
    }


class Cursor(msgspec.Struct, frozen=True, rename="camel"):
    """How far a client has read: messages up to `last_seq` of `session_id`, the last of them `last_id`."""

    session_id: str
    last_seq: int
    last_id: str = ""


def cursor_text(cursor: Cursor) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).rstrip(b"=").decode()


def cursor_from(text: str) -> Cursor | None:
    """None for what is no cursor of ours: the client then gets a whole page."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Cursor)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        return None


def activity(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tool calls of a page, by the message that made them or answered them."""
    failed = {row.get("toolCallId"): bool(row.get("isError")) for row in rows if row.get("role") == "toolResult"}
    items = [(row, [_call(call, name, failed) for call, name in _calls(row)]) for row in rows]
    return [{"messageId": row["__openclaw"]["id"], "items": calls} for row, calls in items if calls]


def _calls(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    if row.get("role") == "toolResult":
        return [(str(row.get("toolCallId")), str(row.get("toolName")))]
    content = row.get("content")
    if row.get("role") != "assistant" or not isinstance(content, list):
        return []
    return [(str(part.get("id")), str(part.get("name"))) for part in content if part.get("type") == "toolCall"]


def _call(call: str, name: str, failed: Mapping[Any, bool]) -> dict[str, Any]:
    status = "failed" if failed.get(call) else "completed" if call in failed else "running"
    return {
        "itemId": f"tool:{call}",
        "toolCallId": call,
        "name": name,
        "kind": "tool",
        "phase": "end" if call in failed else "start",
        "title": name.replace("_", " ").capitalize(),
        "status": status,
        "commandBearing": name in ("exec", "process"),
    }
