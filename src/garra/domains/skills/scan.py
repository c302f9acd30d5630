"""Finds skills: `workspace/skills`, then STATE/skills, then those in the box, then folders of the configuration.

The first of a name wins. Links to folders are followed (that is how a manager of skills installs them), but not in the
workspace: what the agent can write must not open what it cannot read. What was read is kept until a file changes, so a
turn costs a few `stat`s.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from garra.core.errors import ToolFailed
from garra.core.skills import Judged, Listed, Place, Skill, World, judge, listed, read, shadow
from garra.core.value import frozen
from garra.io.files.root import Root

FILE = "SKILL.md"
LIMIT = 256 << 10
DEPTH = 3
COUNT = 500

Identity = tuple[int, int, int, int]


@frozen
class Source:
    """One folder of skills."""

    path: Path
    place: Place

    @property
    def links(self) -> bool:
        """Whether links in it are followed."""
        return self.place != "workspace"

    def read(self, file: Path) -> bytes:
        """A file in it. Raises OSError or ToolFailed."""
        if self.links:
            with file.open("rb") as stream:
                return stream.read(LIMIT)
        above = self.path.parent
        return Root(above).read(str(file.relative_to(above)), LIMIT)


@frozen
class _Kept:
    identity: Identity
    skill: Skill


def sources(
    workspace: Path, managed: Path, bundled: Path | None = None, extra: Sequence[Path] = ()
) -> tuple[Source, ...]:
    """The places in their order."""
    found = [Source(workspace / "skills", "workspace"), Source(managed, "managed")]
    found += [Source(bundled, "bundled")] if bundled else []
    return (*found, *(Source(path, "extra") for path in extra))


class Skills:
    """The skills of one workspace."""

    def __init__(self, places: Sequence[Source]) -> None:
        self._places = tuple(places)
        self._kept: dict[str, _Kept] = {}
        self._lock = threading.Lock()

    async def load(self, world: World, off: frozenset[str] = frozenset()) -> tuple[Judged, ...]:
        """All skills, each with the reasons against it."""
        return await asyncio.to_thread(self.scan, world, off)

    def lines(self, world: World, home: str, off: frozenset[str] = frozenset()) -> tuple[Listed, ...]:
        """The lines for the prompt. Blocks."""
        return listed(self.scan(world, off), home)

    def scan(self, world: World, off: frozenset[str] = frozenset()) -> tuple[Judged, ...]:
        """`load`, blocking."""
        with self._lock:
            before, self._kept = self._kept, {}
            found = [skill for place in self._places for skill in self._place(place, before)]
        return tuple(judge(skill, world, off) for skill in shadow(found))

    def folders(self) -> tuple[str, ...]:
        """The folders of the skills that the last scan found."""
        with self._lock:
            return tuple(str(Path(path).parent) for path in self._kept)

    def at(self, folder: str) -> Skill | None:
        """The skill in one of them."""
        with self._lock:
            kept = self._kept.get(f"{folder}/{FILE}")
        return kept.skill if kept else None

    def names(self) -> frozenset[str]:
        """Those of all of them."""
        with self._lock:
            return frozenset(kept.skill.name for kept in self._kept.values())

    def _place(self, place: Source, before: dict[str, _Kept]) -> Iterator[Skill]:
        for file in _files(place, place.path, DEPTH, set()):
            if len(self._kept) >= COUNT:
                return
            skill = self._skill(file, place, before)
            if skill is not None:
                yield skill

    def _skill(self, path: Path, place: Source, before: dict[str, _Kept]) -> Skill | None:
        file, identity = str(path), _identity(path)
        if identity is None or identity[2] > LIMIT:
            return None
        kept = before.get(file)
        if kept is None or kept.identity != identity:
            try:
                text = place.read(path).decode("utf-8", "replace")
            except (OSError, ToolFailed):
                return None
            kept = _Kept(identity, read(text, file, place.place, path.parent.name))
        self._kept[file] = kept
        return kept.skill


def _identity(path: Path) -> Identity | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def _files(source: Source, folder: Path, depth: int, been: set[tuple[int, int]]) -> Iterator[Path]:
    """Each SKILL.md below `folder`; a folder that has one is not searched further, a circle of links is walked once."""
    identity = _identity(folder)
    if identity is None or identity[:2] in been or (folder.is_symlink() and not source.links):
        return
    been.add(identity[:2])
    if (folder / FILE).is_file():
        yield folder / FILE
        return
    try:
        below = sorted(folder.iterdir()) if depth else []
    except OSError:
        return
    for path in below:
        if not path.name.startswith(".") and path.name != "node_modules" and path.is_dir():
            yield from _files(source, path, depth - 1, been)
