"""A transcript: a header line, then a tree of entries by id and parent. Lines are only ever added.

    {"type":"session","version":4,"id":…,"timestamp":…,"cwd":…}
    {"type":"message","id":…,"parentId":…,"timestamp":…,"message":{…}}
    {"type":"model_change" | "thinking_level_change" | "custom" | "label" | …, "id":…, "parentId":…, …}
    {"type":"compaction",…,"summary":…,"firstKeptEntryId":…}    what came before is told to a model by its summary,
                                                                 which has the marks of all it sums up
    … "alsoKeptEntryIds":[…], "clipped":[[lastEntryId,chars],…] what else is kept, and how long results of tools may be
    {"type":"reset",…,"firstKeptEntryId":…}                  what came before is told no more
    {"type":"custom","customType":"garra:clipped","data":{"clipped":…}}   the same without a summary
    {"type":"leaf",…,"targetId":…}                               from here on the conversation goes on behind the target

The active branch is the way from the last entry (or the target of a last `leaf`) up to the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from garra.core import taint
from garra.core.clip import clip
from garra.core.compaction import NOTE, chars
from garra.core.messages import (
    Assistant,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    User,
    message_from,
    message_json,
)
from garra.core.value import frozen

VERSION = 4

CLIPPED = b"garra:clipped"
"""The custom entry that clips what stands before it."""

_decode = msgspec.json.Decoder().decode


class Entry(msgspec.Struct, frozen=True):
    """One line. `raw` is its stored JSON without the line break, `target` that of a `leaf`."""

    id: str
    parent: str | None
    type: str
    raw: bytes
    target: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The stored JSON object, read anew."""
        body: dict[str, Any] = _decode(self.raw)
        return body

    @property
    def message(self) -> Message | None:
        """What was said, where this entry is a message that can be read."""
        if self.type != "message":
            return None
        try:
            return message_from(self.body["message"])
        except (KeyError, ValueError, TypeError, AttributeError):
            return None


class _Head(msgspec.Struct):
    type: str
    id: str
    parentId: str | None = None  # noqa: N815 - the stored name
    targetId: str | None = None  # noqa: N815 - the stored name


_head = msgspec.json.Decoder(_Head).decode


@frozen
class Loaded:
    """A file as read. `skipped` counts lines that are no entries, `whole` the bytes up to the last good line break."""

    header: Mapping[str, Any]
    entries: tuple[Entry, ...]
    skipped: int = 0


def stamp(now_ms: int) -> str:
    """Milliseconds since 1970 as the stored text, such as `2026-11-30T13:17:16.255Z`."""
    return datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def unstamp(text: str) -> int:
    """The inverse of `stamp`. Raises ValueError."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def header(session_id: str, cwd: str, now_ms: int, **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": VERSION, "id": session_id, "timestamp": stamp(now_ms), "cwd": cwd, **more}


def encode(body: Mapping[str, Any]) -> bytes:
    """One line's JSON. Raises TypeError or ValueError for what cannot be stored, before anything is written.

    Half characters (lone surrogates), which some programs print, are stored as the replacement character.
    """
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(body))


def _whole(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case Mapping():
            return {_whole(key): _whole(each) for key, each in value.items()}
        case list() | tuple():
            return [_whole(each) for each in value]
        case _:
            return value


def entry(
    kind: str, body: Mapping[str, Any], *, id_: str, parent: str | None, now_ms: int, target: str | None = None
) -> Entry:
    """A new entry behind `parent`."""
    head = {"type": kind, "id": id_, "parentId": parent, "timestamp": stamp(now_ms)}
    return Entry(id_, parent, kind, encode({**head, **body}), target)


def message_entry(message: Message, *, id_: str, parent: str | None, now_ms: int) -> Entry:
    return entry("message", {"message": message_json(message)}, id_=id_, parent=parent, now_ms=now_ms)


def leaf_entry(target: str | None, *, id_: str, now_ms: int) -> Entry:
    """From here on the conversation goes on behind `target`; `None` is the very beginning."""
    return entry("leaf", {"targetId": target}, id_=id_, parent=target, now_ms=now_ms, target=target)


def load(data: bytes) -> Loaded:
    """Read a file's text. A line that cannot be read is skipped; what hung on it hangs on the line before."""
    lines = data.split(b"\n")
    first: Mapping[str, Any] = {}
    if lines and lines[0].strip():
        try:
            first = _decode(lines[0])
        except msgspec.DecodeError:
            first = {}
    if not isinstance(first, dict) or first.get("type") != "session":
        first = {}
    else:
        del lines[0]
    entries: list[Entry] = []
    known: set[str] = set()
    skipped = 0
    for raw in lines:
        if not raw:
            continue
        try:
            head = _head(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            skipped += 1
            continue
        if head.id in known:
            skipped += 1
            continue
        parent = head.parentId
        if parent is not None and parent not in known:
            parent = tip(entries)
        known.add(head.id)
        entries.append(Entry(head.id, parent, head.type, raw, head.targetId if head.type == "leaf" else None))
    return Loaded(first, tuple(entries), skipped)


def after(last: Entry) -> str | None:
    """Behind which entry the conversation goes on when `last` is the newest line."""
    return last.target if last.type == "leaf" else last.id


def tip(entries: Sequence[Entry]) -> str | None:
    """Behind which entry the next one goes."""
    return after(entries[-1]) if entries else None


def branch(index: Mapping[str, Entry], leaf: str | None) -> tuple[Entry, ...]:
    """The entries from the root to `leaf`."""
    way: list[Entry] = []
    at = leaf
    while at is not None and (found := index.get(at)) is not None:
        way.append(found)
        at = found.parent
    way.reverse()
    return tuple(way)


def visible(entries: Iterable[Entry]) -> tuple[Message, ...]:
    """What a model is shown of a branch: messages, and a summary in place of what was compacted away."""
    return tuple(message for _, message in shown(entries).rows)


@frozen
class Shown:
    """What a model is shown, each message with the id of its entry. `since` is when it was last made smaller, in
    milliseconds since 1970 (0: never); `summed` whether the first is a summary.
    """

    rows: tuple[tuple[str, Message], ...]
    since: int = 0
    summed: bool = False


def shown(entries: Iterable[Entry]) -> Shown:
    """What a model is shown of a branch."""
    rows: list[tuple[str, Message]] = []
    since, summed = 0, False
    for each in entries:
        if each.type == "compaction":
            body = each.body
            rows, since, summed = _compacted(each.id, body, rows), _when(body), True
        elif each.type == "reset":
            body = each.body
            rows, since, summed = rows[_first(rows, body) :], _when(body), False
        elif shrinks(each):
            body = each.body
            rows, since = _clipped(rows, (body.get("data") or {}).get("clipped")), _when(body)
        elif (said := told(each)) is not None:
            rows.append((each.id, said))
    return Shown(tuple(rows), since, summed)


def shrinks(each: Entry) -> bool:
    """Whether an entry makes smaller what a model is shown of those before it."""
    if each.type in ("compaction", "reset"):
        return True
    return each.type == "custom" and CLIPPED in each.raw and each.body.get("customType") == CLIPPED.decode()


def told(each: Entry) -> Message | None:
    """What one entry, not a compaction, says to a model."""
    if each.type == "message":
        return each.message
    if each.type not in ("custom_message", "branch_summary"):
        return None
    body = each.body
    text = body.get("summary") if each.type == "branch_summary" else body.get("content")
    return User((Text(text),), _when(body), _marks(body)) if isinstance(text, str) and text else None


def unanswered(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls at the end of a history that have no result: the program ended before they did."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolResult):
            answered.add(message.call_id)
        elif isinstance(message, Assistant):
            return tuple(call for call in message.calls if call.id not in answered)
    return ()


def _compacted(id_: str, body: Mapping[str, Any], rows: list[tuple[str, Message]]) -> list[tuple[str, Message]]:
    at, also = _first(rows, body), body.get("alsoKeptEntryIds")
    found = [mark for _, message in rows[:at] for mark in taint.of(message.meta)]
    marks = taint.stored((*taint.of(body), *found))
    summary = User((Text(str(body.get("summary", ""))),), _when(body), marks)
    kept = [row for row in rows[:at] if row[0] in also] if isinstance(also, list) and also else []
    return [(id_, summary), *_clipped([*kept, *rows[at:]], body.get("clipped"))]


def _first(rows: Sequence[tuple[str, Message]], body: Mapping[str, Any]) -> int:
    """Where that begins which an entry keeps."""
    first = body.get("firstKeptEntryId")
    return next((index for index, (known, _) in enumerate(rows) if known == first), len(rows))


def _clipped(rows: list[tuple[str, Message]], spans: Any) -> list[tuple[str, Message]]:
    """`rows` with shorter results of tools: up to and with the entry that each of `spans` names."""
    places = {id_: at for at, (id_, _) in enumerate(rows)}
    start, out = 0, list(rows)
    for span in spans if isinstance(spans, list) else ():
        match span:
            case [str(last), int(most)] if last in places:
                end = places[last] + 1
                out[start:end] = [(id_, _shorter(message, most)) for id_, message in out[start:end]]
                start = max(start, end)
            case _:
                continue
    return out


def _shorter(message: Message, most: int) -> Message:
    if not isinstance(message, ToolResult) or chars(message) <= most + NOTE:
        return message
    pictures = sum(isinstance(part, Image) for part in message.content)
    gone = f"\n[{pictures} pictures left out here]" if pictures else ""
    return replace(message, content=(Text(clip(message.text, most)[0] + gone),))


def _marks(body: Mapping[str, Any]) -> dict[str, Any]:
    return {taint.META: body[taint.META]} if taint.META in body else {}


def _when(body: Mapping[str, Any]) -> int:
    try:
        return unstamp(str(body.get("timestamp", "")))
    except ValueError:
        return 0
