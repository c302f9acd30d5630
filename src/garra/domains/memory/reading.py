"""Files of memory read by their lines: those that are indexed as memory, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from garra.core import taint
from garra.core.errors import NotFound
from garra.core.memory_chunks import markdown
from garra.core.memory_sight import Viewer, sees
from garra.core.value import frozen
from garra.domains.memory.sources import LARGEST, Places, Source, found

LINES: Final = 400
CHARS: Final = 24_000


@frozen
class Part:
    """Lines of a file. `whole` is how many it has."""

    path: str
    first: int
    text: str
    whole: int
    marks: tuple[taint.Mark, ...] = ()

    @property
    def json(self) -> dict[str, Any]:
        more = taint.stored(self.marks)
        return {"path": self.path, "from": self.first, "text": self.text, "totalLines": self.whole, **more}


async def get(places: Places, path: str, viewer: Viewer, *, first: int = 1, lines: int = LINES) -> Part:
    """Some lines of `path`, as it is cited. Raises NotFound for what is no file of memory, or not for `viewer`."""
    return await asyncio.to_thread(_read, places, path, viewer, first=first, lines=lines)


def _read(places: Places, path: str, viewer: Viewer, *, first: int, lines: int) -> Part:
    source = _meant(places, path)
    if source is None:
        raise NotFound(f"{path[:200]!r} is no file of memory: read MEMORY.md, memory/*.md, or what memory_search cites")
    with Path(source.file).open("rb") as file:
        text = file.read(LARGEST).decode("utf-8", "replace")
    pieces = markdown(text, source.path, overlap=0)
    hidden = {
        number
        for piece in pieces
        if not sees(viewer, piece.owner or "")
        for number in range(piece.start, piece.end + 1)
    }
    every = text.splitlines()
    if every and len(hidden) >= sum(1 for line in every if line.strip()):
        raise NotFound(f"{path[:200]!r} is no file of memory: read MEMORY.md, memory/*.md, or what memory_search cites")
    last = min(len(every), first + max(1, min(lines, LINES)) - 1)
    shown = "\n".join(every[at - 1] for at in range(first, last + 1) if at not in hidden)
    marks = tuple(mark for piece in pieces if piece.start <= last and piece.end >= first for mark in piece.marks)
    return Part(source.path, first, shown[:CHARS], len(every), tuple(dict.fromkeys(marks)))


def _meant(places: Places, path: str) -> Source | None:
    """The file that is cited by this name: only what is found by the index's own walk, so no name leads out."""
    named = path.strip().removeprefix("./").partition("#")[0]
    inside = Places(places.agent, places.workspace, places.sessions, places.extra, ("memory",), places.main)
    rows = {each.path: each for each in found(inside)}
    return rows.get(named) or next((each for each in rows.values() if each.file == named), None)
