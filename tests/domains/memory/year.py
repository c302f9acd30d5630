"""What the tests of memory write: transcripts and files of an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra.core.memory_rank import Weights
from garra.domains.memory.settings import Settings
from garra.domains.memory.sources import Extra, Places

NOW = 1_760_000_000_000


def places(root: Path, *extra: Extra) -> Places:
    (root / "work" / "memory").mkdir(parents=True, exist_ok=True)
    (root / "sessions").mkdir(exist_ok=True)
    return Places("main", str(root / "work"), str(root / "sessions"), extra)


def settings(root: Path, **more: Any) -> Settings:
    given: dict[str, Any] = {"weights": Weights(), "least": 0.0} | more
    return Settings(places(root), str(root / "memory.sqlite"), **given)


def note(root: Path, name: str, text: str) -> None:
    path = root / "work" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def transcript(root: Path, name: str, key: str, said: Sequence[tuple[str, str]], **meta: Any) -> Path:
    """A transcript; `meta` goes with every word of a person."""
    head = [
        {"type": "session", "version": 4, "id": name, "timestamp": "2026-05-02T10:00:00.000Z", "cwd": "/"},
        {"type": "custom", "id": "k", "parentId": None, "customType": "garra:session", "data": {"key": key}},
    ]
    path = root / "sessions" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in head))
    add(path, said, **meta)
    return path


def add(path: Path, said: Sequence[tuple[str, str]], **meta: Any) -> None:
    with path.open("a") as file:
        for role, text in said:
            message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": NOW}
            if role == "user":
                message |= meta
            if role == "toolResult":
                message |= {"toolCallId": "c", "toolName": "web_fetch", "marks": [{"source": "web", "where": "x"}]}
            row = {"type": "message", "id": str(file.tell()), "parentId": "k", "message": message}
            file.write(json.dumps(row) + "\n")


def person(sender: str, **more: Any) -> dict[str, Any]:
    """The words of one person in a direct chat."""
    told = {"kind": "external_user", "channel": "telegram", "accountId": "default", "chatType": "direct"}
    return {"provenance": {**told, "messages": [{"senderId": sender}], **more}}
