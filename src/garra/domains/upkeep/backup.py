"""The state folder in one file, and back: databases copied whole at one moment, every file listed with its hash."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from garra import __version__
from garra.config.paths import Paths
from garra.core.errors import Conflict, UserError
from garra.core.value import frozen, record
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.files import atomic
from garra.io.store import copies

MANIFEST: Final = "manifest.json"
VERSION: Final = 1
SIZE: Final = 64 << 20
"""Bytes of a manifest at most."""
LEFT_OUT: Final = frozenset({"logs", "locks", "backups", "tmp", "models"})
"""Folders of the state that are not packed: they come again by themselves."""
_PASSING: Final = ("gateway.lock", "gateway.sock", "restart-handoff.json", "restart-wish.json")
_SECRET: Final = ("secrets.json", "gateway.env", "auth-profiles.json", "credentials", "identity")
_LOGS: Final = ("-wal", "-shm", "-journal")


@frozen
class Wish:
    """What is packed. Without `secrets` the stores of keys stay out; the configuration is packed as it is written."""

    secrets: bool = False
    workspace: bool = True
    only_config: bool = False


@record
class Packed:
    """One packing. `entries` are the rows of the manifest, `skipped` what was left out and why."""

    path: Path
    entries: list[dict[str, Any]]
    skipped: list[str]


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
    atomic.folder(target.parent)
    packed = Packed(target, [], [])
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        with (
            os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, atomic.FILE_MODE), "wb") as stream,
            tarfile.open(fileobj=stream, mode="w:gz", format=tarfile.PAX_FORMAT, compresslevel=6) as archive,
            tempfile.TemporaryDirectory(prefix="garra-backup-") as scratch,
        ):
            for place, where in _found(paths, wish, packed):
                _pack(archive, packed, (place, where), Path(scratch))
            _manifest(archive, packed, paths, wish)
        os.link(draft, target)
    finally:
        draft.unlink(missing_ok=True)
    return packed


def _found(paths: Paths, wish: Wish, packed: Packed) -> Iterator[tuple[Path, str]]:
    """Every file to pack, with its name in the archive."""
    if paths.config_file.is_file():
        yield paths.config_file, "config/" + paths.config_file.name
    if wish.only_config:
        return
    for place in sorted(paths.state.rglob("*")):
        parts = place.relative_to(paths.state).parts
        if parts[0] in LEFT_OUT or place.name in _PASSING or place.name.endswith(_LOGS) or place == paths.config_file:
            continue
        if not wish.workspace and parts[0].startswith("workspace"):
            continue
        if place.name.endswith((".draft", ".lock")) or (place.is_file() and not wish.secrets and _secret(parts)):
            if _secret(parts):
                packed.skipped.append(f"{'/'.join(parts)}: holds secrets (--include-secrets)")
            continue
        if place.is_symlink() or place.is_file() or (place.is_dir() and not any(place.iterdir())):
            yield place, "state/" + "/".join(parts)


def _secret(parts: tuple[str, ...]) -> bool:
    return any(part in _SECRET or part.startswith("secrets.") for part in parts)


def _pack(archive: tarfile.TarFile, packed: Packed, what: tuple[Path, str], scratch: Path) -> None:
    place, where = what
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


def _file(archive: tarfile.TarFile, place: Path, where: str, scratch: Path) -> dict[str, Any]:
    mode = place.stat().st_mode & 0o777
    kind, source = "file", place
    if copies.database(place):
        kind, source = "database", scratch / "copy.db"
        copies.copy(place, source)
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
        "entries": packed.entries,
        "skipped": packed.skipped,
    }
    data = json.dumps(told, indent=1).encode()
    info = tarfile.TarInfo(MANIFEST)
    info.size, info.mode, info.mtime = len(data), atomic.FILE_MODE, now // 1000
    archive.addfile(info, io.BytesIO(data))


def manifest(path: Path) -> dict[str, Any]:
    """What a backup says of itself. Blocks. Raises UserError for a file that is no backup."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name == MANIFEST and member.isfile() and member.size <= SIZE:
                    stream = archive.extractfile(member)
                    found = json.loads(stream.read() if stream else b"")
                    if found.get("kind") == "garra-backup" and found.get("schemaVersion") == VERSION:
                        return dict(found)
    except (OSError, EOFError, tarfile.TarError, ValueError, AttributeError) as fault:
        raise UserError(f"{path} is no backup of Garra: {fault}") from fault
    raise UserError(f"{path} is no backup of Garra: it has no manifest of a kind this version knows")


def verify(path: Path) -> dict[str, Any]:
    """Check every byte against the manifest, and every database. Blocks. Raises UserError at the first that differs."""
    with tempfile.TemporaryDirectory(prefix="garra-verify-") as scratch:
        return unpack(path, Path(scratch) / "all")


def unpack(path: Path, target: Path) -> dict[str, Any]:
    """Put all of a backup below `target`, checked, with its modes; gives the manifest. Blocks. Raises UserError."""
    told = manifest(path)
    rows = {str(row["path"]): row for row in told["entries"]}
    for where in rows:
        parts = where.split("/")
        if parts[0] not in ("state", "config") or len(parts) < 2 or ".." in parts or "" in parts:
            raise UserError(f"{path}: {where!r} is no name that a backup may hold")
    seen = set()
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name != MANIFEST:
                    _member(archive, member, rows, target)
                    seen.add(member.name)
    except (OSError, EOFError, tarfile.TarError) as fault:
        raise UserError(f"{path} is damaged: {fault}") from fault
    if missing := [where for where, row in rows.items() if row["kind"] in ("file", "database") and where not in seen]:
        raise UserError(f"{path} is damaged: {missing[0]} is missing")
    _rest(rows, target)
    return told


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo, rows: dict[str, Any], target: Path) -> None:
    row = rows.get(member.name)
    stream = archive.extractfile(member) if member.isfile() else None
    if row is None or stream is None:
        raise UserError(f"{member.name} stands in the archive and not in its manifest")
    place = target / member.name
    atomic.folder(place.parent)
    found = hashlib.sha256()
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, atomic.FILE_MODE), "wb") as out:
        while data := stream.read(1 << 20):
            found.update(data)
            out.write(data)
    if found.hexdigest() != row["sha256"]:
        raise UserError(f"{member.name} is not what was packed: its hash differs")
    if row["kind"] == "database":
        copies.sound(place)
    place.chmod(int(row["mode"]))


def _rest(rows: dict[str, Any], target: Path) -> None:
    """Folders that are empty, and links, which nothing is written through: they come last."""
    for where, row in rows.items():
        place = target / where
        if row["kind"] == "folder":
            atomic.folder(place)
        elif row["kind"] == "link":
            atomic.folder(place.parent)
            place.symlink_to(row["target"])


def restore(paths: Paths, path: Path) -> dict[str, Any]:
    """Put a backup in the place of the state; what was there is kept beside it. Blocks.

    Gives `{kept, manifest}`. Raises Conflict while a gateway runs, UserError for a backup that is damaged, or whose
    database a newer version wrote.
    """
    with _quiet(paths):
        fresh = paths.state.with_name(f".{paths.state.name}.restoring-{os.getpid()}")
        try:
            told = unpack(path, fresh)
            _known(told)
            kept = _swap(paths, fresh, told)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return {"kept": str(kept), "manifest": told}


def _known(told: dict[str, Any]) -> None:
    known = len(list((Path(copies.__file__).parent / "migrations").glob("[0-9]*.sql")))
    if int(told["databaseSchema"]) > known:
        raise UserError(
            f"the backup was made by a newer Garra ({told['version']}, schema {told['databaseSchema']}; this one knows "
            f"{known}): update garra first; nothing was touched"
        )


def _swap(paths: Paths, fresh: Path, told: dict[str, Any]) -> Path | None:
    """Each step is one rename; between two of them at most one thing is not in its place, and it stands beside."""
    state = fresh / "state"
    only = bool(told["onlyConfig"])
    stamp = f"{datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC):%Y%m%dT%H%M%SZ}"
    kept = paths.state.with_name(f"{paths.state.name}.before-restore-{stamp}")
    beside = paths.config_file.is_relative_to(paths.state)
    packed = next(iter(sorted((fresh / "config").glob("*"))), None) if (fresh / "config").is_dir() else None
    if only:
        if packed is None:
            raise UserError("the backup holds no configuration")
        if paths.config_file.exists():
            kept = paths.config_file.with_name(f"{paths.config_file.name}.before-restore-{stamp}")
            shutil.copy2(paths.config_file, kept)
        atomic.write(paths.config_file, packed.read_bytes())
        return kept
    atomic.folder(state)
    state.chmod(atomic.FOLDER_MODE)
    if packed is not None and beside:
        packed.rename(state / paths.config_file.relative_to(paths.state))
    elif packed is not None:
        atomic.write(paths.config_file, packed.read_bytes())

    for name in ("logs", "models", "backups"):  # what is not packed goes on
        with suppress(OSError):
            (paths.state / name).rename(state / name)
    there = paths.state.exists()
    if there:
        paths.state.rename(kept)
    state.rename(paths.state)
    return kept if there else None


class _quiet:  # noqa: N801 - reads as `with _quiet(paths)`
    """No gateway runs on the state, nor begins, until the block ends."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def __enter__(self) -> None:
        try:
            self._held = lock.acquire(self._paths.lock, {"pid": os.getpid(), "for": "restore"})
        except Conflict as busy:
            raise Conflict(
                f"a gateway runs on {self._paths.state}: stop it first (`garra gateway stop`)", details=busy.details
            ) from None

    def __exit__(self, *_: object) -> None:
        self._held.release()


def listed(folder: Path) -> list[dict[str, Any]]:
    """The backups in a folder, the latest first. Blocks."""
    found = []
    for path in folder.glob("*garra-backup*.tar.gz"):
        with suppress(UserError):
            told = manifest(path)
            found.append(
                {
                    "path": str(path),
                    "createdAt": told["createdAt"],
                    "version": told["version"],
                    "size": path.stat().st_size,
                    "files": len(told["entries"]),
                    "secrets": told["secrets"],
                }
            )
    return sorted(found, key=lambda row: -int(row["createdAt"]))
