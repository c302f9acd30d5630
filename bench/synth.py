"""Grow the stored transcript of session "big": python -m bench.synth KIND STATE COUNT [KEY]

The session exists already (one turn was made in it) and the gateway is stopped.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ASKED = "Question number {}: what did we decide about the build of the small blue house by the river last week?"
ANSWERED = "Answer number {}: we decided to keep the roof, to move the door to the east side and to ask for an offer."
KEY = "agent:main:big"


def text(number: int) -> str:
    return (ANSWERED if number % 2 else ASKED).format(number)


def message(number: int, at_ms: int) -> dict[str, Any]:
    """A message as OpenClaw's transcripts hold it."""
    if number % 2 == 0:
        return {"role": "user", "content": text(number), "timestamp": at_ms}
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    usage = {"input": 20, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 40, "cost": cost}
    origin = {"api": "openai-completions", "provider": "fake", "model": "fake", "usage": usage, "stopReason": "stop"}
    return {"role": "assistant", "content": [{"type": "text", "text": text(number)}], **origin, "timestamp": at_ms}


def chain(leaf: str | None, count: int) -> list[dict[str, Any]]:
    """`count` transcript entries, each the child of the one before, after `leaf`."""
    iso, now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()), int(time.time() * 1000)
    entries = []
    for number in range(count):
        entry = {"type": "message", "id": str(uuid.uuid4()), "parentId": leaf, "timestamp": iso}
        entries.append({**entry, "message": message(number, now + number)})
        leaf = entry["id"]
    return entries


def garra(state: Path, count: int, key: str) -> None:
    folder = state / "home/.garra/agents/main/sessions"
    ident = json.loads((folder / "sessions.json").read_text())[key]["sessionId"]
    path = folder / f"{ident}.jsonl"
    leaf = json.loads(path.read_text().splitlines()[-1])["id"]
    with path.open("a") as lines:
        lines.writelines(json.dumps(entry) + "\n" for entry in chain(leaf, count))


def nanobot(state: Path, count: int, _: str) -> None:
    key = f"websocket:{uuid.uuid5(uuid.NAMESPACE_URL, 'big')}"
    every = (state / "home/.nanobot/sessions").rglob("*.jsonl")
    path = next(path for path in every if json.loads(path.open().readline()).get("key") == key)
    with path.open("a") as lines:
        for number in range(count):
            role = "assistant" if number % 2 else "user"
            line = {"role": role, "content": text(number), "timestamp": "2026-11-30T13:00:00.000000"}
            lines.write(json.dumps(line) + "\n")


def openclaw(state: Path, count: int, key: str) -> None:
    db = sqlite3.connect(state / "home/.openclaw/agents/main/agent/openclaw-agent.sqlite")
    db.execute("PRAGMA busy_timeout = 10000")
    db.create_function("octet_length", 1, _octets, deterministic=True)
    one = "SELECT current_session_id FROM session_nodes WHERE session_key = ?"
    (ident,) = db.execute(one, (key,)).fetchone()
    (last,) = db.execute("SELECT max(seq) FROM transcript_events WHERE session_id = ?", (ident,)).fetchone()
    index = "SELECT leaf_event_id, active_event_count, active_message_count FROM session_transcript_index_state"
    leaf, events, messages = db.execute(f"{index} WHERE session_id = ?", (ident,)).fetchone()
    now = int(time.time() * 1000)
    for number, entry in enumerate(chain(leaf, count)):
        seq, at_ms = last + 1 + number, now + number
        known = (ident, entry["id"], seq, "message", entry["parentId"], at_ms)
        db.execute("INSERT INTO transcript_events(session_id, seq, event_json, created_at) VALUES (?, ?, ?, ?)",
                   (ident, seq, json.dumps(entry), at_ms))  # fmt: skip
        db.execute("INSERT INTO transcript_event_identities(session_id, event_id, seq, event_type, parent_id, "
                   "created_at) VALUES (?, ?, ?, ?, ?, ?)", known)  # fmt: skip
        db.execute("INSERT INTO session_transcript_active_events VALUES (?, ?, ?, ?, ?)",
                   (ident, events + number, seq, messages + number, 1))  # fmt: skip
        leaf = entry["id"]
    state_of = "UPDATE session_transcript_index_state SET indexed_seq = ?, leaf_event_id = ?, active_event_count = ?, "
    done = (last + count, leaf, events + count, messages + count, ident)
    db.execute(f"{state_of} active_message_count = ? WHERE session_id = ?", done)
    db.commit()


def _octets(value: str | bytes | None) -> int | None:
    """SQLite's own function of this name, which older versions lack."""
    return len(value.encode() if isinstance(value, str) else value) if value is not None else None


KINDS: Mapping[str, Callable[[Path, int, str], None]] = {"garra": garra, "nanobot": nanobot, "openclaw": openclaw}


if __name__ == "__main__":
    KINDS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]), *(sys.argv[4:] or [KEY]))
