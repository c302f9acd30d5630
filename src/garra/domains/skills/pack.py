"""The files of a skill, read out of an archive or a folder. Nothing is written, no link followed, nothing run."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from garra.core import bundle
from garra.core.bundle import Entry, Kind
from garra.core.characters import escaped
from garra.core.errors import UserError

ARCHIVE: Final = 16 << 20
"""Bytes of an archive that is read at all."""
UNPACKED: Final = 3 * bundle.WHOLE
"""Bytes that a compressed tape may come to."""
DEEPEST: Final = 12
"""Folders within folders that are looked at."""

Read = Callable[[str], bytes]


def archive(data: bytes, inside: str = "") -> dict[str, bytes]:
    """The files of the skill in a .zip, .tar or .tar.gz, by path. Blocks. Raises UserError for what is none."""
    try:
        if data.startswith(b"PK"):
            return _zip(data, inside)
        return _tape(_inflated(data) if data.startswith(b"\x1f\x8b") else data, inside)
    except (
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        EOFError,
        NotImplementedError,
        ValueError,
        OSError,
    ) as fault:
        raise UserError(f"that is no .zip and no .tar.gz, or a broken one ({escaped(str(fault))[:120]})") from None


def folder(path: Path, inside: str = "") -> dict[str, bytes]:
    """The files of the skill in a folder. Blocks. Raises UserError as `archive`."""
    found = list(_walked(path, "", 0, [bundle.ENTRIES]))
    return _files(found, inside, lambda name: plain(path / name))


def _files(entries: list[Entry], inside: str, read: Read) -> dict[str, bytes]:
    """What is really read counts, whatever the archive says of it."""
    files: dict[str, bytes] = {}
    room = bundle.WHOLE
    for path, entry in bundle.chosen(entries, inside).files.items():
        files[path] = data = read(entry.name)
        room -= len(data)
        if len(data) > bundle.FILE_BYTES or room < 0:
            raise UserError(f"{escaped(path)} is larger than the archive says, and too large")
    return files


def _zip(data: bytes, inside: str) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        infos = opened.infolist()
        if any(info.flag_bits & 1 for info in infos):
            raise UserError("the archive is encrypted: unpack it first, and install the folder")
        entries = [Entry(info.orig_filename.rstrip("/"), info.file_size, _zipped(info)) for info in infos]
        by_name = {info.orig_filename: info for info in infos}

        def read(name: str) -> bytes:
            with opened.open(by_name[name]) as stream:
                return stream.read(bundle.FILE_BYTES + 1)

        return _files(entries, inside, read)


def _zipped(info: zipfile.ZipInfo) -> Kind:
    if info.is_dir():
        return "folder"
    mode = info.external_attr >> 16
    return _kind(mode) if info.create_system == 3 and stat.S_IFMT(mode) else "file"


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _inflated(data: bytes) -> bytes:
    engine = zlib.decompressobj(31)
    whole = engine.decompress(data, UNPACKED + 1)
    if len(whole) > UNPACKED:
        raise UserError(f"the archive unpacks to more than {UNPACKED >> 20} MiB: that is no skill")
    if not engine.eof:
        raise EOFError("it ends early")
    return whole


def _tape(data: bytes, inside: str) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as opened:
        members: list[tarfile.TarInfo] = []
        for member in opened:
            members.append(member)
            if len(members) > bundle.ENTRIES:
                raise UserError(f"more than {bundle.ENTRIES:,} entries: that is no skill")
        by_name = {member.name: member for member in members}

        def read(name: str) -> bytes:
            stream = opened.extractfile(by_name[name])
            return stream.read(bundle.FILE_BYTES + 1) if stream else b""

        return _files([Entry(one.name, one.size, _taped(one)) for one in members], inside, read)


def _taped(member: tarfile.TarInfo) -> Kind:
    if member.isdir():
        return "folder"
    if member.issym() or member.islnk():
        return "link"
    return "file" if member.isreg() and not member.issparse() else "other"


def _walked(root: Path, below: str, depth: int, left: list[int]) -> Iterator[Entry]:
    with os.scandir(root / below) as found:
        for each in sorted(found, key=lambda one: one.name):
            left[0] -= 1
            if left[0] < 0:
                raise UserError(f"more than {bundle.ENTRIES:,} entries below {root}: that is no skill")
            if each.name in bundle.PASSED_OVER:
                continue
            name = f"{below}/{each.name}" if below else each.name
            facts = each.stat(follow_symlinks=False)
            kind = _kind(facts.st_mode)
            if kind != "folder":
                yield Entry(name, facts.st_size, kind)
            elif depth < DEEPEST:
                yield from _walked(root, name, depth + 1, left)


def plain(path: Path) -> bytes:
    """A file that is one still. Raises OSError, also where it has become a link."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UserError(f"{escaped(str(path))} is no file")
        return stream.read(bundle.FILE_BYTES + 1)
