"""The one media root: what came in and what goes out as files, below a folder for each channel."""

from __future__ import annotations

import asyncio
import os
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from garra.core.errors import NotFound
from garra.core.patterns import later
from garra.core.spool import Split, Unload
from garra.core.value import frozen
from garra.domains.delivery.draft import Draft, Form, OutboxRow
from garra.domains.delivery.outbox import Rewrite, cut
from garra.io.files import atomic
from garra.sdk.channel import File, Media, MediaKind, SendFailed
from garra.sdk.ports import Clock

NAME_BYTES: Final = 100
KEEP_DAYS: Final = 30
ROOM: Final = 4 << 30
"""Bytes that all files together may take; beyond it the oldest go."""

YOUNG_S: Final = 3600.0
"""What is younger may still wait to be read or sent, and stays."""

BUFFER: Final = 256 << 10

_FORBIDDEN = later(r'[\x00-\x1f\x7f/\\:*?"<>|\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]+')
_CHANNEL = later(r"[^A-Za-z0-9._-]+")

Link = Callable[[File], str | None]
"""Where a file that is too large to be sent can be had instead; None where it cannot."""


@frozen
class Kept:
    """A file below the root. `path` is relative to it."""

    path: str
    name: str
    mime: str
    size: int
    kind: MediaKind

    def file(self) -> File:
        return File(self.kind, self.path, self.name, self.mime, self.size)


def safe(name: str, kind: str = "file") -> str:
    """`name` as the last part of a path: no folder, no dot in front, nothing invisible, at most 100 bytes."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name).encode("utf-8", "ignore").decode())[-1]
    stem, dot, end = _FORBIDDEN.sub("_", last).strip(" .").rpartition(".")
    if not dot or len(end.encode()) > 16:
        stem, dot, end = stem + dot + end, "", ""
    room = NAME_BYTES - len((dot + end).encode())
    stem = stem.encode()[:room].decode("utf-8", "ignore").strip(" .")
    return f"{stem or kind}{dot}{end}"


class MediaRoot:
    """Stores and finds files. `root` is STATE/media; `room` bytes are there for all of them."""

    def __init__(self, root: Path, clock: Clock, room: int = ROOM) -> None:
        self.root = root
        self._clock = clock
        self._room = room
        self._unswept = 0

    async def keep(self, channel: str, media: Media, chunks: AsyncIterator[bytes], limit: int) -> Kept:
        """Store an attachment as it comes, at most `limit` bytes. Raises SendFailed `too_large`, Unavailable."""
        if media.size is not None and media.size > limit:
            raise SendFailed("too_large", oversize(media, limit))
        relative = self._place(channel, media.name, media.kind)
        path = self.root / relative
        draft = await asyncio.to_thread(_open, path)
        size = 0
        try:
            async for piece in _gathered(chunks):
                size += len(piece)
                if size > limit:
                    raise SendFailed("too_large", oversize(media, limit))
                await asyncio.to_thread(_write, path, draft, piece)
            await asyncio.to_thread(_finish, path, draft)
        except BaseException:
            await asyncio.to_thread(_abandon, path, draft)
            raise
        self._unswept += size
        if self._unswept > self._room // 8:
            await self.sweep()
        return Kept(relative, safe(media.name, media.kind), media.mime, size, media.kind)

    async def add(self, channel: str, name: str, data: bytes, *, mime: str = "", kind: MediaKind = "file") -> Kept:
        """Store a file that is to be sent. Raises Unavailable."""

        async def once() -> AsyncIterator[bytes]:
            yield data

        return await self.keep(channel, Media(kind, "", name, mime, len(data)), once(), len(data))

    async def path(self, relative: str) -> Path:
        """Where a kept file is. Raises NotFound for a path that is not one of the root's."""
        return await asyncio.to_thread(_found, self.root, relative)

    async def sweep(self, days: int = KEEP_DAYS) -> int:
        """Remove what is older than `days` and, oldest first, what is over the room there is. How many files went."""
        self._unswept = 0
        now = self._clock.now_ms() / 1000
        return await asyncio.to_thread(_sweep, self.root, now - days * 86_400, now - YOUNG_S, self._room)

    def _place(self, channel: str, name: str, kind: str) -> str:
        """A new place: folder of the channel, of the day, then a name that nobody else has."""
        day = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date().isoformat()
        folder = _CHANNEL.sub("_", channel).strip(".") or "other"
        return f"{folder}/{day}/{os.urandom(6).hex()}-{safe(name, kind)}"


async def _gathered(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Small chunks put together, so that not each is a write."""
    held = bytearray()
    async for chunk in chunks:
        held += chunk
        if len(held) >= BUFFER:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _found(root: Path, relative: str) -> Path:
    path = root / relative
    inside = ".." not in path.parts and path.is_relative_to(root) and not path.is_symlink() and path.is_file()
    if not inside or not path.resolve().is_relative_to(root.resolve()):
        raise NotFound(f"no such file in the media folder: {relative[:200]}")
    return path


def _open(path: Path) -> int:
    with atomic.writing(path):
        atomic.folder(path.parent)
        return os.open(_draft(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _draft(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _write(path: Path, opened: int, data: bytes) -> None:
    rest = memoryview(data)
    with atomic.writing(path):
        while rest:
            rest = rest[os.write(opened, rest) :]


def _finish(path: Path, opened: int) -> None:
    with atomic.writing(path):
        os.fsync(opened)
        _draft(path).replace(path)
    os.close(opened)


def _abandon(path: Path, opened: int) -> None:
    os.close(opened)
    _draft(path).unlink(missing_ok=True)


def _sweep(root: Path, before: float, young: float, room: int) -> int:
    held = sorted(_held(root))
    total = sum(size for _, size, _ in held)
    gone = 0
    for changed, size, path in held:
        if changed < before or (total > room and changed < young):
            path.unlink(missing_ok=True)
            total -= size
            gone += 1
    for folder, _, _ in os.walk(root, topdown=False, followlinks=False):
        if Path(folder) != root and not any(Path(folder).iterdir()):
            Path(folder).rmdir()
    return gone


def _held(root: Path) -> Iterator[tuple[float, int, Path]]:
    """(when changed, bytes, path) of each file."""
    for folder, _, names in os.walk(root, followlinks=False):
        for name in names:
            path = Path(folder, name)
            facts = path.lstat()
            yield facts.st_mtime, facts.st_size, path


def megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"


def oversize(media: Media, limit: int) -> str:
    """The line about an attachment that is too large to be read."""
    size = f" ({megabytes(media.size)})" if media.size is not None else ""
    return f"{media.name or 'The ' + media.kind}{size} is over the limit of {megabytes(limit)} here and was not read."


def fitted(draft: Draft, limit: int, link: Link | None = None) -> Draft:
    """`draft` without the files over `limit` bytes; a line for each says where it can be had instead."""
    over = [file for file in draft.files if file.size > limit]
    if not over:
        return draft
    lines = "\n".join(_instead(file, limit, link) for file in over)
    text = f"{draft.text}\n\n{lines}" if draft.text else lines
    kept = tuple(file for file in draft.files if file.size <= limit)
    return replace(draft, forms=(Form("plain", text),), files=kept)


def _instead(file: File, limit: int, link: Link | None) -> str:
    place = link(file) if link else None
    over = f"over the limit of {megabytes(limit)} here" if limit else "too large to be sent here"
    where = f": {place}" if place else "; it is kept on the gateway's machine, in its media folder."
    return f"{file.name} ({megabytes(file.size)}) is {over}{where}"


def rewriting(limit: int, link: Link | None = None) -> Rewrite:
    """How a courier mends what the platform found too long or too large; `limit` is the platform's for files."""

    def rewrite(row: OutboxRow, effect: Split | Unload) -> Sequence[Draft]:
        if isinstance(effect, Split):
            return cut(row, effect)
        draft = fitted(row.draft, limit, link)
        return [draft if draft is not row.draft else fitted(row.draft, 0, link)]

    return rewrite
