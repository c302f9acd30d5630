"""The installed skills: put there, looked after, replaced, taken away. What others wrote is kept, never deleted."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from garra.core import bundle
from garra.core.bundle import Changes
from garra.core.errors import Conflict, NotFound, UserError
from garra.core.value import frozen
from garra.domains.skills import pack
from garra.domains.skills.fetch import Fetched
from garra.domains.skills.records import Record, Records
from garra.io import lock
from garra.io.files import atomic

KEPT: Final = "skills-kept"
"""In the state folder: what a person had changed in a skill that was taken away or replaced."""
LOCK_S: Final = 10.0


@frozen
class Removed:
    """What went with a skill: `files` of the install, and `kept`, where those are that were changed or added since."""

    record: Record
    files: tuple[str, ...]
    kept: tuple[str, ...] = ()
    aside: str = ""


class Library:
    """`state` is the state folder; skills lie where the caller says. Everything blocks."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self.records = Records(state)

    def find(self, name: str, root: Path) -> Record | None:
        """The installed skill whose folder in `root` is called `name`, or that calls itself so."""
        mine = [one for one in self.records.every().values() if Path(one.folder).parent == root]
        named = [one for one in mine if Path(one.folder).name == name] or [one for one in mine if one.name == name]
        return named[0] if len(named) == 1 else None

    def at(self, folder: Path) -> Record | None:
        return self.records.every().get(str(folder))

    def changes(self, record: Record) -> Changes:
        """What of it has been changed since it was installed."""
        return bundle.compared(record.files, _digests(Path(record.folder)))

    def preview(self, record: Record, fetched: Fetched) -> Changes:
        """What an update would change in the files as they are on the disk."""
        return bundle.compared(_digests(Path(record.folder)), bundle.digests(fetched.files))

    def install(self, folder: Path, name: str, fetched: Fetched, now_ms: int, *, force: bool = False) -> Record:
        """Put it there. Raises Conflict where something else stands, unless `force`: then that is kept aside."""
        with self._held():
            before = self.at(folder)
            if os.path.lexists(folder) and not force:
                whose = f"it was installed from {before.origin}" if before else "Garra did not install it"
                raise Conflict(f"{folder} stands there already ({whose}): look at it, then say --force, or --as NAME")
            record = _record(folder, name, fetched, now_ms)
            self._put(record, fetched.files, before)
            return record

    def update(self, record: Record, fetched: Fetched, now_ms: int, *, force: bool = False) -> tuple[Record, str]:
        """The same skill anew, and where what was changed in it is kept. Raises Conflict for that without `force`."""
        with self._held():
            folder = Path(record.folder)
            changes = self.changes(record)
            if changes and not force:
                raise Conflict(
                    f"{record.name} was changed since it was installed ({changes.words()}): say --force to replace it; "
                    "what was changed is kept aside"
                )
            made = replace(_record(folder, record.name, fetched, now_ms), installed_at=record.installed_at)
            return made, self._put(made, fetched.files, record)

    def remove(self, record: Record) -> Removed:
        """Take away what the install wrote; what was changed or added since is moved aside."""
        with self._held():
            folder = Path(record.folder)
            now = _digests(folder)
            own = tuple(path for path, digest in record.files.items() if now.get(path) == digest)
            others = tuple(sorted(now.keys() - set(own)))
            aside = self._aside(folder, record)
            self.records.drop(record.folder)
            return Removed(record, own, others, aside)

    def _put(self, record: Record, files: Mapping[str, bytes], before: Record | None) -> str:
        """Written beside first, so that a skill is there whole or not at all; where what stood there is kept."""
        folder = Path(record.folder)
        draft = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.draft"
        with atomic.writing(folder):
            atomic.folder(folder.parent)
            if folder.parent.is_symlink():
                raise UserError(f"{folder.parent} is a link: nothing is installed through it")
            draft.mkdir(mode=atomic.FOLDER_MODE)
            try:
                for path, data in files.items():
                    atomic.folder((draft / path).parent)
                    _write(draft / path, data)
                aside = self._aside(folder, before)
                draft.rename(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        self.records.put(record)
        return aside

    def _aside(self, folder: Path, record: Record | None) -> str:
        """Take a folder away; where what is not as it was installed is kept, empty where all was."""
        if folder.is_symlink():
            folder.unlink()
            return ""
        if not folder.exists():
            return ""
        own = record.files if record else {}
        now = _digests(folder)
        other = [path for path, digest in now.items() if own.get(path) != digest]
        if not other and not _odd(folder):
            shutil.rmtree(folder)
            return ""
        kept = self._state / KEPT / f"{folder.name}-{secrets.token_hex(4)}"
        atomic.folder(kept.parent)
        shutil.move(folder, kept)
        for path in now.keys() - set(other):
            (kept / path).unlink()
        _prune(kept)
        return str(kept)

    @contextmanager
    def _held(self) -> Iterator[None]:
        with lock.acquire(self._state / "locks" / "skills.lock", {"pid": os.getpid()}, LOCK_S):
            yield


def missing(name: str) -> NotFound:
    """The error for a skill that was not installed."""
    return NotFound(f"there is no installed skill {name!r}: see `garra skills list`")


def _record(folder: Path, name: str, fetched: Fetched, now_ms: int) -> Record:
    return Record(
        name,
        str(folder),
        fetched.origin.kind,
        fetched.origin.shown,
        bundle.digests(fetched.files),
        fetched.origin.at,
        fetched.origin.ref,
        fetched.inside,
        fetched.version,
        fetched.archive,
        now_ms,
        now_ms,
    )


def _digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, links and other oddities by what they are; empty where there is none."""
    found: dict[str, str] = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above) / name
            shown = str(path.relative_to(folder))
            try:
                found[shown] = bundle.digest(pack.plain(path)) if not path.is_symlink() else f"link:{path.readlink()}"
            except (OSError, UserError) as fault:
                found[shown] = f"unreadable:{fault}"
    return found


def _odd(folder: Path) -> bool:
    """Whether a folder holds links to folders, which are no files of it."""
    return any((Path(above) / name).is_symlink() for above, folders, _ in os.walk(folder) for name in folders)


def _write(path: Path, data: bytes) -> None:
    """A script that names its interpreter can be started, as it could where it came from; nothing else can."""
    mode = atomic.FOLDER_MODE if data.startswith(b"#!") else atomic.FILE_MODE
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(handle)


def _prune(folder: Path) -> None:
    """Without the folders in it that are empty."""
    for above, _, _ in os.walk(folder, topdown=False):
        if above != str(folder) and not any(Path(above).iterdir()):
            Path(above).rmdir()
