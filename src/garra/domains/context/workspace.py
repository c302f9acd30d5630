"""The workspace's own files: made once, read before each turn, never overwritten.

A marker in the state folder remembers that the workspace was alive. When it is gone soon after (an unmounted disk, a
slip), nothing is made anew in its place: an assistant without its memory must not pretend to be the old one.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from garra.core.budget import Document
from garra.core.errors import ToolFailed, Unavailable, UserError
from garra.core.value import frozen
from garra.io.files import atomic
from garra.sdk.ports import Clock, Files

ORDER = ("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "MEMORY.md")
HEARTBEAT = "HEARTBEAT.md"
BOOTSTRAP = "BOOTSTRAP.md"
FORMS = ("IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md")
"""Files that say nothing as long as they are as they were made."""
LIMIT = 2 << 20
ALIVE_MS = 24 * 3_600_000
REFRESH_MS = 10 * 60_000


class WorkspaceVanished(UserError):
    """The workspace was there within the last day and is gone; it is not made anew."""

    code = "UNAVAILABLE"


def templates() -> Mapping[str, str]:
    """What a new workspace is filled with, by file name. Reads files."""
    folder = resources.files(__package__) / "templates"
    return {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".md")}


@frozen
class _Kept:
    identity: tuple[int, int, int, int]
    document: Document


class Workspace:
    """One agent's folder. `files` is that folder's door; `marker` a file of the state folder; `seed` false for people
    who bring their own files. Its methods may be called from several threads.
    """

    def __init__(self, files: Files, marker: Path, clock: Clock, *, seed: bool = True) -> None:
        self._files, self._marker, self._clock, self._seed = files, marker, clock, seed
        self._root = Path(files.root)
        self._templates: Mapping[str, str] = {}
        self._kept: dict[str, _Kept] = {}
        self._names: tuple[int, Mapping[str, str]] = (0, {})
        self._mark: dict[str, Any] | None = None
        self._lock = threading.Lock()

    async def load(self) -> tuple[Document, ...]:
        """Make what is missing on the first call, then read: the files in their order. Raises WorkspaceVanished."""
        return await asyncio.to_thread(self.read)

    async def heartbeat(self) -> str:
        """What HEARTBEAT.md asks for; empty when there is nothing to do."""
        return await asyncio.to_thread(self._heartbeat)

    def read(self) -> tuple[Document, ...]:
        """`load`, blocking."""
        with self._lock:
            try:
                self._ensure()
                names = self._present()
            except (OSError, ToolFailed) as fault:
                why = (fault.strerror or fault) if isinstance(fault, OSError) else fault.message
                line = f"the workspace {self._root} cannot be used: {why}; see agents.defaults.workspace"
                raise Unavailable(line) from fault
            return tuple(self._document(name, names) for name in ORDER if self._wanted(name, names))

    def _heartbeat(self) -> str:
        with self._lock:
            text = self._document(HEARTBEAT, self._present()).text or ""
        kept = [line for line in _uncommented(text).splitlines() if line.strip() and not line.startswith("#")]
        return _uncommented(text).strip() if kept else ""

    def _wanted(self, name: str, names: Mapping[str, str]) -> bool:
        """Whether the file belongs into the prompt: the first conversation's only until it was had."""
        return name != BOOTSTRAP or (name.casefold() in names and not self._settled(names))

    def _settled(self, names: Mapping[str, str]) -> bool:
        """The first conversation was had: it left something in the agent's or the person's form."""
        forms = (self._document(name, names) for name in ("IDENTITY.md", "USER.md"))
        return any(form.text is not None and not form.blank for form in forms)

    def _present(self) -> Mapping[str, str]:
        """The folder's plain names by their folded form; read again when the folder changed."""
        changed = self._root.stat().st_mtime_ns
        if self._names[0] != changed:
            exact = {*ORDER, HEARTBEAT}
            known = {name.casefold() for name in exact}
            found: dict[str, str] = {}
            names = (path.name for path in self._root.iterdir())
            for name in sorted(names, key=lambda name: (name not in exact, name)):
                if name.casefold() in known:
                    found.setdefault(name.casefold(), name)
            self._names = (changed, found)
        return self._names[1]

    def _document(self, name: str, names: Mapping[str, str]) -> Document:
        actual = names.get(name.casefold(), name)
        path = self._root / actual
        try:
            facts = path.lstat()
        except OSError:
            return Document(name, str(path))
        identity = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
        kept = self._kept.get(name)
        if kept is None or kept.identity != identity:
            kept = self._kept[name] = _Kept(identity, self._fresh(name, actual))
        return kept.document

    def _fresh(self, name: str, actual: str) -> Document:
        path = str(self._root / actual)
        try:
            data = self._files.read(actual, LIMIT)
        except ToolFailed as refused:
            return Document(name, path, note=f"not read: {refused.message}")
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        return Document(name, path, text, blank=name in FORMS and text == self._templates.get(name))

    def _ensure(self) -> None:
        """Make the folder and its files where they never were; note that it is alive."""
        if not self._templates:
            self._templates = templates()
        mark = self._read_mark()
        new = not self._root.is_dir()
        if new and mark.get("path") == str(self._root):
            self._refuse(mark)
        elif new and mark:
            mark = {}
        if self._seed and not mark.get("seeded"):
            fresh = new or not any(self._root.iterdir())
            self._fill(ORDER if fresh else tuple(name for name in ORDER if name != BOOTSTRAP))
            mark["seeded"] = True
        elif new:
            atomic.folder(self._root)
        self._touch(mark)

    def _refuse(self, mark: dict[str, Any]) -> None:
        """Raises when the workspace was alive within a day; else forgets it, so that it is made anew."""
        ago = self._clock.now_ms() - int(mark.get("seenAt", 0))
        if ago < ALIVE_MS:
            raise WorkspaceVanished(
                f"the workspace {self._root} is gone, though it was there {max(1, ago // 60_000)} minutes ago; "
                f"bring it back (is a disk not mounted?), or delete {self._marker} to begin a new one",
                details={"path": str(self._root), "seenAt": mark.get("seenAt")},
            )
        mark.clear()

    def _fill(self, names: Iterable[str]) -> None:
        """Write the templates of files that do not exist, in any case of letters."""
        atomic.folder(self._root)
        there = {path.name.casefold() for path in self._root.iterdir()}
        for name in (*names, HEARTBEAT):
            if name.casefold() not in there:
                self._files.write(name, self._templates[name].encode())
        atomic.folder(self._root / "memory")

    def _read_mark(self) -> dict[str, Any]:
        if self._mark is None:
            try:
                found = json.loads(atomic.read(self._marker))
            except (FileNotFoundError, ValueError, Unavailable):
                found = {}
            self._mark = found if isinstance(found, dict) else {}
        return self._mark

    def _touch(self, mark: dict[str, Any]) -> None:
        """Note that it is alive, ten minutes apart at most."""
        now = self._clock.now_ms()
        if mark.get("path") == str(self._root) and now - int(mark.get("seenAt", 0)) < REFRESH_MS:
            return
        self._mark = {**mark, "path": str(self._root), "seenAt": now}
        atomic.write(self._marker, json.dumps(self._mark).encode())


def _uncommented(text: str) -> str:
    """Without `<!-- … -->`."""
    kept = ""
    while "<!--" in text:
        head, _, text = text.partition("<!--")
        kept += head
        text = text.partition("-->")[2]
    return kept + text
