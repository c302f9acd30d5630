"""What turns that had read a skill wrote: told to whoever looks at the skill, or takes it away. Not undone by itself.

A turn that reads a SKILL.md may write for another reason, and a program that it starts may write unseen: this is what
can be known, not all there is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FILE: Final = "skills-written.jsonl"
"""In the state folder."""
ROOM: Final = 512 << 10
"""Bytes of it; the older half goes when they are used up."""


def note(state: Path, line: Mapping[str, Any]) -> None:
    """Add a line: `ts`, `skill` (its folder), `session`, `run`, `path`. Blocks. Raises OSError."""
    file = state / FILE
    data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
    if file.exists() and file.stat().st_size + len(data) > ROOM:
        kept = file.read_bytes()[-ROOM // 2 :].partition(b"\n")[2]
        draft = file.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_bytes(kept)
        draft.replace(file)
    file.touch(mode=0o600)
    with file.open("ab") as stream:
        stream.write(data)


def of(state: Path, folder: str) -> list[dict[str, Any]]:
    """Those of one skill, oldest first. Blocks."""
    try:
        lines = (state / FILE).read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("skill") == folder:
            found.append(row)
    return found
