"""A backup read, checked and put in the state's place. What it says of itself is not believed before it is checked:
no name leads out of the folder it is unpacked to, and nothing is written through a link.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from garra.config.paths import Paths
from garra.core.errors import Conflict, UserError
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.exchange import exchange
from garra.io.files import atomic
from garra.io.store import copies

MANIFEST: Final = "manifest.json"
VERSION: Final = 1
SIZE: Final = 64 << 20
"""Bytes of a manifest at most."""
ROOTS: Final = ("state", "config", "outside")
GOES_ON: Final = ("logs", "models", "backups")
"""Folders of the state that are not packed: those that are there stay."""
SPARE: Final = 16 << 20
"""Bytes that are left free."""


class Row(msgspec.Struct, frozen=True):
    """One file, folder or link; `mode` are its rights alone."""

    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    kind: Literal["file", "database", "folder", "link"]
    mode: Annotated[int, Meta(ge=0, le=0o777)] = 0o600
    size: Annotated[int, Meta(ge=0)] = 0
    sha256: str = ""
    target: str = ""


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """What a backup says of itself. `outside` tells where its folders `outside/0`, `outside/1` … stood."""

    kind: Literal["garra-backup"]
    schema_version: int
    created_at: int
    version: str
    database_schema: int
    secrets: bool
    only_config: bool
    entries: tuple[Row, ...]
    outside: tuple[str, ...] = ()


def manifest(path: Path) -> Manifest:
    """Blocks. Raises UserError for a file that is no backup."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name == MANIFEST and member.isfile() and member.size <= SIZE:
                    stream = archive.extractfile(member)
                    found = msgspec.json.decode(stream.read() if stream else b"", type=Manifest)
                    if found.schema_version == VERSION:
                        return found
    except (OSError, EOFError, tarfile.TarError, ValueError, RecursionError) as fault:
        raise UserError(f"{path} is no backup of Garra: {_line(fault)}") from fault
    raise UserError(f"{path} is no backup of Garra: it has no manifest of a kind this version knows")


def _line(fault: BaseException) -> str:
    return " ".join(str(fault).split())[:200]


def verify(path: Path) -> Manifest:
    """Check every byte against the manifest, and every database. Blocks. Raises UserError at the first that differs."""
    with tempfile.TemporaryDirectory(prefix="garra-verify-") as scratch:
        return unpack(path, Path(scratch) / "all")


def unpack(path: Path, target: Path) -> Manifest:
    """Put all of a backup below `target`, checked, with its rights; gives the manifest. Blocks. Raises UserError."""
    told = manifest(path)
    rows = {row.path: row for row in told.entries}
    if wrong := fault(told.entries):
        raise UserError(f"{path}: {wrong}")
    atomic.folder(target)
    _fits(path, told, target)
    seen = set()
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name != MANIFEST:
                    _member(archive, member, rows, target)
                    seen.add(member.name)
    except (EOFError, tarfile.TarError, ValueError) as wrong_data:
        raise UserError(f"{path} is damaged: {_line(wrong_data)}") from wrong_data
    except OSError as wrong_disk:
        raise UserError(f"{path} could not be unpacked: {_line(wrong_disk)}; nothing was changed") from wrong_disk
    if missing := [where for where, row in rows.items() if row.kind in ("file", "database") and where not in seen]:
        raise UserError(f"{path} is damaged: {missing[0]} is missing")
    _rest(rows, target)
    return told


def fault(entries: tuple[Row, ...]) -> str:
    """What is wrong with the names of a manifest; empty for nothing."""
    kinds: dict[str, str] = {}
    for row in entries:
        parts = row.path.split("/")
        if parts[0] not in ROOTS or len(parts) < 2 or {"", ".", ".."} & {*parts} or not row.path.isprintable():
            return f"{row.path[:200]!r} is no name that a backup may hold"
        if row.path in kinds:
            return f"{row.path[:200]!r} stands in it twice"
        kinds[row.path] = row.kind
    for where in kinds:
        above = where.rpartition("/")[0]
        while above:
            if kinds.get(above, "folder") != "folder":
                return f"{where[:200]!r} stands below what is no folder"
            above = above.rpartition("/")[0]
    return ""


def _fits(path: Path, told: Manifest, target: Path) -> None:
    needed, free = sum(row.size for row in told.entries), shutil.disk_usage(target).free
    if needed + SPARE > free:
        raise UserError(f"{path} needs {needed >> 20} MiB and {target.parent} has {free >> 20} MiB left")


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo, rows: Mapping[str, Row], target: Path) -> None:
    row = rows.get(member.name)
    stream = archive.extractfile(member) if member.isfile() else None
    if row is None or stream is None or row.kind not in ("file", "database"):
        raise UserError(f"{member.name[:200]!r} stands in the archive and not in its manifest")
    if member.size != row.size:
        raise UserError(f"{member.name} is not what was packed: its size differs")
    place = target / member.name
    atomic.folder(place.parent)
    found = hashlib.sha256()
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, atomic.FILE_MODE), "wb") as out:
        while data := stream.read(1 << 20):
            found.update(data)
            out.write(data)
    if found.hexdigest() != row.sha256:
        raise UserError(f"{member.name} is not what was packed: its hash differs")
    if row.kind == "database":
        copies.sound(place)
    place.chmod(row.mode)


def _rest(rows: Mapping[str, Row], target: Path) -> None:
    """Folders, and links, which nothing stands below: they come last."""
    for where, row in rows.items():
        place = target / where
        if row.kind == "folder":
            atomic.folder(place)
        elif row.kind == "link":
            atomic.folder(place.parent)
            place.symlink_to(row.target)
    for where, row in sorted(rows.items(), reverse=True):
        if row.kind == "folder":
            (target / where).chmod(row.mode | 0o700)


class Restored(msgspec.Struct, frozen=True):
    """`kept` is what stood there before; `outside` pairs where a workspace is now and where it stood."""

    kept: str | None
    told: Manifest
    outside: tuple[tuple[str, str], ...] = ()


def restore(paths: Paths, path: Path) -> Restored:
    """Put a backup in the place of the state; what was there is kept beside it. Blocks.

    Raises Conflict while a gateway runs, UserError for a backup that is damaged, or whose database a newer version
    wrote.
    """
    with quiet(paths):
        place = _beside(paths)
        _swept(place)
        fresh = place / f".{paths.state.name.lstrip('.')}.restoring-{os.getpid()}"
        try:
            told = unpack(path, fresh)
            _known(told)
            os.sync()
            kept = _config(paths, fresh) if told.only_config else _state(paths, fresh, told)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    back = paths.state / "restored"
    moved = tuple((str(back / str(at)), was) for at, was in enumerate(told.outside) if (back / str(at)).exists())
    return Restored(str(kept) if kept else None, told, moved)


def _mounted(paths: Paths) -> bool:
    """Whether the state folder cannot be moved: it is where a volume hangs, or what it stands in is not ours."""
    return os.path.ismount(paths.state) or (paths.state.exists() and not os.access(paths.state.parent, os.W_OK))


def _beside(paths: Paths) -> Path:
    """Where it is unpacked: on the state's own file system."""
    return paths.state if _mounted(paths) else paths.state.parent


def _swept(place: Path) -> None:
    """What restores that were killed have left."""
    for left in place.glob(".*.restoring-*"):
        pid = left.name.rpartition("-")[2]
        if pid.isdigit() and not atomic.alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _known(told: Manifest) -> None:
    known = len(list((Path(copies.__file__).parent / "migrations").glob("[0-9]*.sql")))
    if told.database_schema > known:
        raise UserError(
            f"the backup was made by a newer Garra ({told.version}, schema {told.database_schema}; this one knows "
            f"{known}): update garra first; nothing was touched"
        )


def _stamp() -> str:
    return f"{datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC):%Y%m%dT%H%M%SZ}"


def _free(path: Path) -> Path:
    """`path`, or one like it that nothing stands at."""
    names = (path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 1_000)))
    return next(name for name in names if not os.path.lexists(name))


def _packed(fresh: Path) -> Path | None:
    """The configuration that was packed."""
    return next(iter(sorted((fresh / "config").glob("*"))), None) if (fresh / "config").is_dir() else None


def _config(paths: Paths, fresh: Path) -> Path | None:
    packed, kept = _packed(fresh), None
    if packed is None:
        raise UserError("the backup holds no configuration")
    if paths.config_file.exists():
        kept = _free(paths.config_file.with_name(f"{paths.config_file.name}.before-restore-{_stamp()}"))
        shutil.copy2(paths.config_file, kept)
    atomic.write(paths.config_file, packed.read_bytes())
    return kept


def _state(paths: Paths, fresh: Path, told: Manifest) -> Path | None:
    """One step where the system can: the old state or the new one stands there at any time."""
    state, packed = fresh / "state", _packed(fresh)
    atomic.folder(state)
    state.chmod(atomic.FOLDER_MODE)
    if packed is not None and paths.config_file.is_relative_to(paths.state):
        packed.rename(state / paths.config_file.relative_to(paths.state))
    elif packed is not None:
        atomic.write(paths.config_file, packed.read_bytes())
    if told.outside and (fresh / "outside").is_dir():
        (fresh / "outside").rename(state / "restored")
    if _mounted(paths):
        return _inside(paths, state)
    if not paths.state.exists():
        state.rename(paths.state)
        return None
    kept = _free(paths.state.with_name(f"{paths.state.name}.before-restore-{_stamp()}"))
    if exchange(state, paths.state):
        try:
            state.rename(kept)
        except OSError:
            exchange(state, paths.state)
            raise
    else:
        paths.state.rename(kept)
        state.rename(paths.state)
    for name in GOES_ON:
        with suppress(OSError):
            (kept / name).rename(paths.state / name)
    return kept


def _inside(paths: Paths, state: Path) -> Path:
    """Entry by entry, for a state folder that cannot be moved."""
    kept = _free(paths.state / f"before-restore-{_stamp()}")
    kept.mkdir(mode=atomic.FOLDER_MODE)
    stays = {kept.name, state.parent.name, paths.lock.name, *GOES_ON}
    for each in sorted(paths.state.iterdir()):
        if each.name not in stays and not each.name.startswith("before-restore-"):
            each.rename(kept / each.name)
    for each in sorted(state.iterdir()):
        each.rename(paths.state / each.name)
    return kept


@contextmanager
def quiet(paths: Paths) -> Iterator[None]:
    """No gateway runs on the state, nor begins, until the block ends. Raises Conflict."""
    try:
        held = lock.acquire(paths.lock, {"pid": os.getpid(), "for": "restore"})
    except Conflict as busy:
        line = f"a gateway runs on {paths.state}: stop it first (`garra gateway stop`)"
        raise Conflict(line, details=busy.details) from None
    with held:
        yield
