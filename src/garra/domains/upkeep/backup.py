"""The state folder in one file: databases copied whole at one moment, every file listed with its hash. The way back is
in `restore`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from garra import __version__
from garra.config.paths import Paths
from garra.core.errors import UserError
from garra.core.value import frozen, record
from garra.domains.upkeep.restore import MANIFEST, VERSION, manifest
from garra.io.clock import SystemClock
from garra.io.files import atomic
from garra.io.store import copies

LEFT_OUT: Final = frozenset({"logs", "locks", "backups", "tmp", "models"})
"""Folders of the state that are not packed: they come again by themselves."""
_PASSING: Final = ("gateway.lock", "gateway.sock", "restart-handoff.json", "restart-wish.json")
_SECRET: Final = ("secrets.json", "gateway.env", "auth-profiles.json", "credentials", "identity")
_LOGS: Final = ("-wal", "-shm", "-journal")
_ASIDE: Final = ("before-restore-", ".restoring-")
LOGINS: Final = ("auth_profiles", "auth_health", "auth_pins")
"""Tables of the state database that hold, or belong to, what logs in at providers."""


@frozen
class Wish:
    """What is packed. Without `secrets` the stores of keys and logins stay out; the configuration is packed as it is
    written. `outside` are workspaces that do not stand in the state folder.
    """

    secrets: bool = False
    workspace: bool = True
    only_config: bool = False
    outside: tuple[Path, ...] = ()


@record
class Packed:
    """One packing. `entries` are the rows of the manifest, `skipped` what was left out and why."""

    path: Path
    entries: list[dict[str, Any]]
    skipped: list[str]
    outside: list[str]


def name(now_ms: int) -> str:
    """What a backup of this moment is called."""
    return f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%dT%H-%M-%SZ}-garra-backup.tar.gz"


def create(paths: Paths, target: Path, wish: Wish) -> Packed:
    """Pack the state to a new file of its owner's alone, also while the gateway runs. Blocks.

    Raises UserError for a target that exists or lies in what is packed.
    """
    if target.exists():
        raise UserError(f"{target} exists; a backup is never written over")
    inside = paths.state.resolve()
    if target.resolve().is_relative_to(inside) and not target.resolve().is_relative_to(inside / "backups"):
        raise UserError(f"{target} lies in what is packed: choose a place outside {paths.state}")
    for root in wish.outside:
        if target.resolve().is_relative_to(root.resolve()):
            raise UserError(f"{target} lies in what is packed: choose a place outside {root}")
    atomic.folder(target.parent)
    _swept(target.parent)
    packed = Packed(target, [], [], [])
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        with (
            os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, atomic.FILE_MODE), "wb") as stream,
            tempfile.TemporaryDirectory(prefix="garra-backup-") as scratch,
        ):
            with tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=6) as archive:
                for place, where in _found(paths, wish, packed):
                    _pack(archive, packed, (place, where), Scratch(Path(scratch), paths.db, secrets=wish.secrets))
                _manifest(archive, packed, paths, wish)
            stream.flush()
            os.fsync(stream.fileno())
        _publish(draft, target)
    except OSError as fault:
        raise UserError(f"no backup was made: {fault.filename or target}: {fault.strerror or fault}") from fault
    finally:
        draft.unlink(missing_ok=True)
    return packed


@frozen
class Scratch:
    """Where databases are copied to, which of them is the state's, and whether it keeps its secrets."""

    folder: Path
    state: Path
    secrets: bool


def _publish(draft: Path, target: Path) -> None:
    """Under its name only when it is whole. Raises OSError where there is one of that name meanwhile."""
    try:
        os.link(draft, target)
    except OSError as fault:
        if fault.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):  # a file system without links
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, atomic.FILE_MODE))
        draft.replace(target)


def _swept(folder: Path) -> None:
    """What packings that were killed have left."""
    for left in folder.glob(".*-garra-backup.tar.gz.*.draft"):
        pid = left.name.split(".")[-2]
        if pid.isdigit() and not atomic.alive(int(pid)):
            left.unlink(missing_ok=True)


def _found(paths: Paths, wish: Wish, packed: Packed) -> Iterator[tuple[Path, str]]:
    """Every file to pack, with its name in the archive."""
    if paths.config_file.is_file():
        yield paths.config_file, "config/" + paths.config_file.name
    if wish.only_config:
        return
    for place in sorted(paths.state.rglob("*")):
        parts = place.relative_to(paths.state).parts
        if parts[0] in LEFT_OUT or place == paths.config_file or parts[0].startswith(_ASIDE):
            continue
        work = parts[0].startswith("workspace")
        if (work and not wish.workspace) or (not work and _passes(place)):
            continue
        if not work and not wish.secrets and _secret(parts) and not place.is_dir():
            packed.skipped.append(f"{'/'.join(parts)}: holds secrets (--include-secrets)")
        elif _packable(place):
            yield place, "state/" + "/".join(parts)
        elif not place.is_dir():
            packed.skipped.append(f"{'/'.join(parts)}: neither a file nor a folder")
    for root in wish.outside:
        yield from _outside(root, packed)


def _outside(root: Path, packed: Packed) -> Iterator[tuple[Path, str]]:
    """A workspace that stands elsewhere."""
    name = f"outside/{len(packed.outside)}"
    packed.outside.append(str(root))
    for place in sorted(root.rglob("*")):
        if _packable(place):
            yield place, "/".join((name, *place.relative_to(root).parts))


def _packable(place: Path) -> bool:
    return place.is_symlink() or place.is_file() or (place.is_dir() and not any(place.iterdir()))


def _passes(place: Path) -> bool:
    """Whether a file of our own is gone with its process. (In a workspace nothing is ours.)"""
    return place.name in _PASSING or place.name.endswith((*_LOGS, ".draft", ".lock"))


def _secret(parts: tuple[str, ...]) -> bool:
    return any(part in _SECRET or part.startswith("secrets.") for part in parts)


def _pack(archive: tarfile.TarFile, packed: Packed, what: tuple[Path, str], scratch: Scratch) -> None:
    place, where = what
    if not where.isprintable():
        packed.skipped.append(f"{where!r}: its name holds what no name should")
        return
    try:
        facts = place.lstat()
        row: dict[str, Any] = {"path": where, "mode": facts.st_mode & 0o777}
        if place.is_symlink():
            row |= {"kind": "link", "target": str(place.readlink())}
        elif place.is_dir():
            row |= {"kind": "folder"}
        else:
            row |= _file(archive, place, where, scratch)
    except FileNotFoundError:  # it went while we looked
        packed.skipped.append(f"{where}: gone meanwhile")
        return
    packed.entries.append(row)


def _file(archive: tarfile.TarFile, place: Path, where: str, scratch: Scratch) -> dict[str, Any]:
    mode = place.stat().st_mode & 0o777
    kind, source = "file", place
    if copies.database(place):
        kind, source = "database", scratch.folder / "copy.db"
        copies.copy(place, source)
        if place == scratch.state and not scratch.secrets:
            copies.emptied(source, LOGINS)
    size = source.stat().st_size
    info = tarfile.TarInfo(where)
    info.size, info.mode, info.mtime = size, mode, int(place.stat().st_mtime)
    with source.open("rb") as stream:
        read = _Hashed(stream, size)
        archive.addfile(info, read)
    return {"kind": kind, "size": size, "sha256": read.hash.hexdigest()}


class _Hashed(io.RawIOBase):
    """A file that is hashed while it is read, as long as it was: one that grows meanwhile is cut there, one that
    shrinks is filled up with zeros.
    """

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._left = stream, size
        self.hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._stream.read(wanted)
        data += b"\0" * (wanted - len(data))
        self._left -= len(data)
        self.hash.update(data)
        return data


def _manifest(archive: tarfile.TarFile, packed: Packed, paths: Paths, wish: Wish) -> None:
    now = SystemClock().now_ms()
    told = {
        "schemaVersion": VERSION,
        "kind": "garra-backup",
        "createdAt": now,
        "version": __version__,
        "databaseSchema": copies.schema(paths.db),
        "stateDir": str(paths.state),
        "configFile": str(paths.config_file),
        "secrets": wish.secrets,
        "onlyConfig": wish.only_config,
        "outside": packed.outside,
        "entries": packed.entries,
        "skipped": packed.skipped,
    }
    data = json.dumps(told, indent=1).encode()
    info = tarfile.TarInfo(MANIFEST)
    info.size, info.mode, info.mtime = len(data), atomic.FILE_MODE, now // 1000
    archive.addfile(info, io.BytesIO(data))


def listed(folder: Path) -> list[dict[str, Any]]:
    """The backups in a folder, the latest first. Blocks."""
    found = []
    for path in folder.glob("*garra-backup*.tar.gz"):
        with suppress(UserError):
            told = manifest(path)
            found.append(
                {
                    "path": str(path),
                    "createdAt": told.created_at,
                    "version": told.version,
                    "size": path.stat().st_size,
                    "files": len(told.entries),
                    "secrets": told.secrets,
                }
            )
    return sorted(found, key=lambda row: -int(row["createdAt"]))
