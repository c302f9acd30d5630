"""Sessions found on the disk when the registry is gone: from mirrors, and from what each transcript says of itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from garra.core import keys, transcript
from garra.core.errors import UserError
from garra.core.ids import AgentId, SessionKey
from garra.domains.sessions.session import Session, entry_from

log = logging.getLogger(__name__)

BORN = "garra:session"
"""The custom entry behind the header that tells a transcript's session key."""

HEAD_BYTES = 16_384
"""How much of a transcript is read to know whose it is."""


def scan(root: Path) -> list[Session]:
    """Every session below `root`, the folder of all agents. Blocks. What cannot be read is left out and logged."""
    found: dict[str, Session] = {}
    if root.is_dir():
        for place in sorted(root.glob("*/sessions")):
            agent = place.parent.name
            try:
                keys.agent_id(agent)
            except UserError:
                continue
            mirrored = list(_mirrored(place, agent))
            for session in (*mirrored, *_headed(place, agent, {each.session_id for each in mirrored})):
                known = found.get(session.key)
                found[session.key] = session if known is None else _newer(known, session)
    return list(found.values())


def _newer(known: Session, other: Session) -> Session:
    """The same key twice: the transcript that was begun last is the current one."""
    later = (other.started_at, other.updated_at) > (known.started_at, known.updated_at)
    if other.session_id != known.session_id and later:
        return replace(known, session_id=other.session_id, started_at=other.started_at, updated_at=other.updated_at)
    return known


def _mirrored(place: Path, agent: str) -> Iterator[Session]:
    path = place / "sessions.json"
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, Any]])
    except FileNotFoundError:
        return
    except (OSError, msgspec.DecodeError) as error:
        log.warning("%s cannot be read: %s", path, error)
        return
    for key, entry in entries.items():
        try:
            session = entry_from(keys.canonical(key, agent), agent, entry)
            keys.session_id(session.session_id)
        except (KeyError, UserError) as error:
            log.warning("%s: %s is left out: %s", path, key, error)
            continue
        if (place / f"{session.session_id}.jsonl").is_file():
            yield session


def _headed(place: Path, agent: str, known: Set[str]) -> Iterator[Session]:
    """Sessions by what their transcripts say; one that says no key, and is not `known`, gets a key of its own."""
    for path in sorted(place.glob("*.jsonl")):
        try:
            with path.open("rb") as file:
                head = transcript.load(file.read(HEAD_BYTES))
            session = _session(head, path, agent)
        except (OSError, ValueError, UserError) as error:
            log.warning("%s cannot be read: %s", path, error)
            continue
        if session.session_id not in known or not session.key.startswith(_unnamed(agent)):
            yield session


def _unnamed(agent: str) -> str:
    return f"agent:{agent}:restored-"


def _session(head: transcript.Loaded, path: Path, agent: str) -> Session:
    told = next((data for entry in head.entries[:3] if (data := born(entry)) is not None), {})
    chosen = keys.session_id(path.stem)
    key = told.get("key")
    if not isinstance(key, str):
        key = f"{_unnamed(agent)}{chosen}"
    begun = transcript.unstamp(str(head.header.get("timestamp", "")))
    changed = path.stat().st_mtime_ns // 1_000_000
    return Session(SessionKey(key), chosen, AgentId(agent), begun, changed, begun, str(told.get("createdVia", "run")))


def born(entry: transcript.Entry) -> dict[str, Any] | None:
    """What an entry tells of its session, where it is the one that does."""
    if entry.type != "custom":
        return None
    body = entry.body
    data = body.get("data")
    return data if body.get("customType") == BORN and isinstance(data, dict) else None
