"""What another agent program wrote, in our form: its session rows, its transcripts, its notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from garra.core import transcript
from garra.core.messages import ToolResult, User

_decode = msgspec.json.Decoder().decode

_HEAVY: Final = frozenset(
    ("skillsSnapshot", "systemPromptReport", "contextBudgetStatus", "activeWriterRunId", "lastRunId", "agentHarnessId",
     "restartRecoveryTerminalRunIds", "delivery", "status", "endedAt", "runtimeMs", "startedAt", "totalTokensFresh",
     "compactionCheckpoints", "totalTokensVersion", "abortedLastRun", "systemSent", "contextTokensSource",
     "sessionFile")
)  # fmt: skip
"""Of an original row what is another program's own business."""


def row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An original session row as ours: the place that it answers at, no snapshots of prompts and runs."""
    kept = {name: value for name, value in entry.items() if name not in _HEAVY}
    delivery = entry.get("delivery")
    place = delivery.get("context") if isinstance(delivery, Mapping) else None
    if isinstance(place, Mapping) and "deliveryContext" not in kept:
        kept["deliveryContext"] = dict(place)
        named = {"channel": "lastChannel", "to": "lastTo", "accountId": "lastAccountId", "threadId": "lastThreadId"}
        kept |= {ours: place[theirs] for theirs, ours in named.items() if theirs in place}
    return kept


_OWN: Final = frozenset(
    ("exec", "process", "read", "write", "edit", "apply_patch", "ls", "find", "grep", "memory_search", "memory_get",
     "sessions_yield", "sessions_list", "session_status", "agents_list", "cron", "tool_search", "tool_describe")
)  # fmt: skip
"""Tools whose answers are this machine's own."""


def lines(rows: Iterable[bytes], provider: str, *, group: bool = False) -> tuple[tuple[bytes, ...], int]:
    """A foreign transcript's lines as ours, and how many were left out because they are no lines of one.

    What a tool brought from outside, and what people wrote in a group, is marked: nobody here saw where it came from.
    """
    kept: list[bytes] = []
    lost = 0
    for raw in rows:
        line = _line(raw, provider, group=group)
        if line is None:
            lost += 1
        elif kept or b'"session"' in line[:40]:
            kept.append(line)
        else:
            lost += 1
    return tuple(kept), lost


def _line(raw: bytes, provider: str, *, group: bool) -> bytes | None:
    try:
        body = _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(body, dict):
        return None
    if body.get("type") == "session":
        return transcript.encode({**body, "version": transcript.VERSION})
    if not isinstance(body.get("id"), str):
        return None
    message = body.get("message")
    mark = _mark(message, provider, group=group) if isinstance(message, Mapping) else None
    if mark is None or not isinstance(message, Mapping):
        return raw.strip()
    return transcript.encode({**body, "message": {**message, "marks": [mark]}})


def _mark(message: Mapping[str, Any], provider: str, *, group: bool) -> dict[str, str] | None:
    if "marks" in message:
        return None
    if message.get("role") == "toolResult" and message.get("toolName") not in _OWN:
        return {"source": "tool", "where": f"{message.get('toolName', 'unknown')} ({provider})"}
    if group and message.get("role") == "user":
        return {"source": "group", "where": f"people ({provider})"}
    return None


def titles(lines: Sequence[bytes]) -> dict[str, str]:
    """What a session's row shows of a transcript: its first words of a person, and its last words."""
    said = [entry.message for entry in transcript.load(b"\n".join(lines)).entries if entry.message is not None]
    first = next((each.text for each in said if isinstance(each, User) and each.text.strip()), "")
    last = next((each.text for each in reversed(said) if not isinstance(each, ToolResult) and each.text.strip()), "")
    found = {"derivedTitle": " ".join(first.split())[:80], "lastMessagePreview": " ".join(last.split())[:200]}
    return {name: text for name, text in found.items() if text}


def told(session_id: str, cwd: str, messages: Sequence[Mapping[str, Any]], now_ms: int) -> tuple[bytes, ...]:
    """A transcript of plain words: `messages` are {role: user | assistant, text, ts?} with ts in milliseconds."""
    made = [transcript.encode(transcript.header(session_id, cwd, now_ms))]
    parent: str | None = None
    for count, message in enumerate(messages, 1):
        ts = int(message.get("ts", now_ms))
        words = [{"type": "text", "text": str(message.get("text", ""))}]
        body = {"message": {"role": message["role"], "content": words, "timestamp": ts}}
        entry = transcript.entry("message", body, id_=f"{session_id[:40]}-{count}", parent=parent, now_ms=ts)
        made.append(entry.raw)
        parent = entry.id
    return tuple(made)


def joined(old: str, new: str, where: str) -> str:
    """`new` behind what a file says already, under a line that tells where it came from; twice is once."""
    head = f"<!-- imported from {where} -->"
    if head in old:
        return old
    return f"{old.rstrip()}\n\n{head}\n{new.strip()}\n".lstrip()
