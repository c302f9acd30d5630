"""Transcripts read from the disk without opening them: previews, search, export. All of it blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from garra.core import transcript
from garra.core.errors import UserError
from garra.core.ids import SessionId
from garra.core.messages import Message, ToolResult
from garra.core.transcript import Entry
from garra.core.value import frozen
from garra.domains.sessions import page, places, render, restore
from garra.domains.sessions.session import Session, headline
from garra.io.store import lines

SEARCHED = 500
"""Sessions that a search looks into at most."""

TAIL_BYTES = 262_144
"""How much of a transcript's end is read for a preview."""

PIECE = 262_144
"""Bytes that are looked at in one go: while they are, nothing else of the program runs."""

SNIPPET = 160

FORMS = ("md", "html", "jsonl")


@frozen
class Line:
    """One message of a preview."""

    role: str
    text: str


@frozen
class Hit:
    """One message that holds what was searched for; `timestamp` is milliseconds since 1970."""

    session: Session
    entry_id: str
    role: str
    snippet: str
    timestamp: int


def tail(root: Path, session: Session, limit: int, chars: int) -> tuple[Line, ...]:
    """The last messages with words, oldest first; nothing where there is no file."""
    try:
        data = _end(places.transcript(root, session.agent_id, session.session_id))
    except FileNotFoundError:
        return ()
    loaded = transcript.load(data)
    branch = transcript.branch({entry.id: entry for entry in loaded.entries}, transcript.tip(loaded.entries))
    found: list[Line] = []
    for entry in reversed(branch):
        message = entry.message
        if message is not None and message.text.strip():
            found.append(Line(role(message), headline(message.text, chars)))
        if len(found) >= limit:
            break
    found.reverse()
    return tuple(found)


def _end(path: Path) -> bytes:
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        data = file.read()
    return data if size <= TAIL_BYTES else data[data.find(b"\n") + 1 :]


def search(root: Path, sessions: Sequence[Session], text: str, limit: int, *, ended: bool = False) -> tuple[Hit, ...]:
    """Messages that hold `text`, of the newest sessions first; `ended` looks into what was before a reset, too."""
    wanted = text.strip().casefold()
    hits: list[Hit] = []
    if not wanted:
        return ()
    for session in (*sessions, *(earlier(root, sessions) if ended else ())):
        for hit in _hits(root, session, wanted):
            hits.append(hit)
            if len(hits) >= limit:
                return tuple(hits)
    return tuple(hits)


def earlier(root: Path, sessions: Sequence[Session]) -> Iterator[Session]:
    """What `sessions` were before they began anew: each by the way that its transcript tells, newest first."""
    for session in sessions:
        known, at = {str(session.session_id)}, session.extra.get("previousSessionId")
        while isinstance(at, str) and at not in known:
            known.add(at)
            before = replace(session, session_id=SessionId(at))
            yield before
            at = _before(root, before)


def _before(root: Path, session: Session) -> str | None:
    """Which transcript came before this one, as its head says."""
    try:
        with places.transcript(root, session.agent_id, session.session_id).open("rb") as file:
            head = transcript.load(file.read(restore.HEAD_BYTES))
    except (OSError, UserError):
        return None
    told = next((data for entry in head.entries[:3] if (data := restore.born(entry)) is not None), {})
    found = told.get("previous")
    return found if isinstance(found, str) else None


def _hits(root: Path, session: Session, wanted: str) -> Iterator[Hit]:
    try:
        data = lines.read(places.transcript(root, session.agent_id, session.session_id))
    except (OSError, UserError):
        return
    if not _may_hold(data, wanted):
        return
    for entry in reversed(transcript.load(data).entries):
        message = entry.message if _may_hold(entry.raw, wanted) else None
        if message is not None and (at := message.text.casefold().find(wanted)) >= 0:
            yield Hit(session, entry.id, role(message), _snippet(message.text, at), message.timestamp)


def _may_hold(data: bytes, wanted: str) -> bool:
    """A quick look that never says no wrongly: what is stored otherwise than it is said counts as there."""
    if not (wanted.isascii() and all(each.isalnum() or each == " " for each in wanted)):
        return True
    sought = wanted.encode()
    if sought in data:
        return True
    pieces = range(0, len(data), PIECE)
    return any(sought in data[at : at + PIECE + len(sought)].lower() for at in pieces)


def _snippet(text: str, at: int) -> str:
    start = max(0, at - SNIPPET // 3)
    return ("…" if start else "") + headline(text[start:], SNIPPET)


def role(message: Message) -> str:
    return "tool" if isinstance(message, ToolResult) else type(message).__name__.lower()


def branch(root: Path, session: Session) -> tuple[Entry, ...]:
    """The active branch. Raises NotFound or Unavailable when the file cannot be read."""
    path = places.transcript(root, session.agent_id, session.session_id)
    try:
        entries = transcript.load(lines.read(path)).entries
    except OSError as error:
        raise lines.explained(error, path) from error
    return transcript.branch({entry.id: entry for entry in entries}, transcript.tip(entries))


def export(root: Path, session: Session, form: str) -> bytes:
    """Raises UserError for an unknown form, Unavailable when the file cannot be read."""
    if form not in FORMS:
        raise UserError(f"a transcript can be exported as {', '.join(FORMS)}, not as {form!r}")
    if form != "jsonl":
        text = render.markdown(session, transcript.visible(branch(root, session)))
        return (text if form == "md" else page.html(session, text)).encode("utf-8", "replace")
    path = places.transcript(root, session.agent_id, session.session_id)
    try:
        return lines.read(path)
    except OSError as error:
        raise lines.explained(error, path) from error
