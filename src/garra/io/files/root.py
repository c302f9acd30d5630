"""One folder and what is below it: the one door for every file a model, a person or a message may name.

A path is walked part by part from an open descriptor of the folder, and no part may be a symbolic link, so what is
opened is what was named, also while somebody moves things about. Files with a second name (hard links) are refused,
because the other name may be anywhere.
"""

from __future__ import annotations

import errno
import functools
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from garra.core.errors import ToolFailed
from garra.core.patterns import later
from garra.sdk.ports import Found

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LEAF = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_SCHEME = later(r"^[A-Za-z][A-Za-z0-9+.-]*://|^file:", re.I)
_WORDS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ELOOP: "a part of it is a symbolic link, which is not followed",
    errno.ENOTDIR: "a part of it is no folder, or a symbolic link, which is not followed",
    errno.EISDIR: "it is a folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "it is on a read-only disk",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.ENAMETOOLONG: "a name is too long",
    errno.ENOTEMPTY: "the folder is not empty",
    errno.EXDEV: "it is on another disk",
}


def said(path: str, error: OSError) -> ToolFailed:
    return ToolFailed(f"{path}: {_WORDS.get(error.errno or 0, error.strerror or 'cannot be used')}")


@contextmanager
def told(path: str) -> Iterator[None]:
    """Turns the system's refusal into one the model can read."""
    try:
        yield
    except OSError as error:
        raise said(path, error) from None


class Root:
    """A folder, as `sdk.ports.Files`. `folder` is absolute; a link in its own path is the owner's choice.

    `closed` are files and folders that, where they lie below it, are not there for tools.
    """

    def __init__(self, folder: str | os.PathLike[str], closed: Iterable[str | os.PathLike[str]] = ()) -> None:
        self.root = os.fspath(folder)
        self._places = tuple(closed)

    @functools.cached_property
    def real(self) -> str:
        """Where the folder really is."""
        return os.path.realpath(self.root)

    @functools.cached_property
    def _closed(self) -> tuple[list[str], ...]:
        """The way to each closed place, as it is compared."""
        lead = self.real.rstrip("/") + "/"
        real = (os.path.realpath(place) for place in self._places)
        return tuple(_folded(place[len(lead) :].split("/")) for place in real if place.startswith(lead))

    def _is_closed(self, names: list[str]) -> bool:
        """Whether it is a closed place, or below one."""
        found = _folded(names)
        return any(found[: len(closed)] == closed for closed in self._closed)

    def _holds_closed(self, names: list[str]) -> bool:
        found = _folded(names)
        return any(closed[: len(found)] == found for closed in self._closed)

    def parts(self, path: str) -> list[str]:
        """The names on the way to `path`, none for the folder itself. Raises ToolFailed for what is no plain path."""
        if "\0" in path:
            raise ToolFailed("a path cannot hold a NUL character")
        if _SCHEME.match(path):
            raise ToolFailed(f"{path}: give a plain path, not an address")
        if path.startswith(("~", "\\\\")):
            raise ToolFailed(f"{path}: only paths in the workspace are allowed; ~ and \\\\ are not expanded")
        if path.startswith("/"):
            path = self._inside(path)
        names = [name for name in path.split("/") if name not in {"", "."}]
        if ".." in names:
            raise ToolFailed(f"{path}: '..' is not allowed in a path; name it from the workspace {self.root}")
        if self._is_closed(names):
            raise ToolFailed(f"{path}: it is the gateway's own and closed to tools")
        return names

    def _inside(self, path: str) -> str:
        for root in (self.root, self.real):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return path[len(root) :]
        raise ToolFailed(f"{path}: outside the workspace {self.root}")

    @contextmanager
    def _folder(self, names: list[str], *, make: bool = False) -> Iterator[int]:
        """An open descriptor of the folder at `names`."""
        try:
            here = os.open(self.real, FOLDER)
        except OSError as error:
            raise ToolFailed(f"the workspace {self.root} is gone: {error.strerror}") from None
        try:
            for name in names:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=here)
                below = os.open(name, FOLDER, dir_fd=here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder that `path` is in, and its name there."""
        names = self.parts(path)
        if not names:
            raise ToolFailed(f"{path or '.'}: it is the workspace itself")
        with told(path), self._folder(names[:-1], make=make) as folder:
            yield folder, names[-1]

    def read(self, path: str, limit: int) -> bytes:
        with self._parent(path) as (folder, name):
            file = os.open(name, os.O_RDONLY | LEAF, dir_fd=folder)
            try:
                facts = os.fstat(file)
                plain(path, facts)
                if facts.st_size > limit:
                    raise ToolFailed(f"{path}: {facts.st_size} bytes, more than the {limit} that can be read at once")
                return _whole(file, path, limit)
            finally:
                os.close(file)

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        """At most `size` bytes from byte `start`, and how large the file is."""
        with self._parent(path) as (folder, name):
            file = os.open(name, os.O_RDONLY | LEAF, dir_fd=folder)
            try:
                facts = os.fstat(file)
                plain(path, facts)
                return os.pread(file, size, start), facts.st_size
            finally:
                os.close(file)

    def write(self, path: str, data: bytes) -> None:
        with self._parent(path, make=True) as (folder, name):
            mode = _replaceable(path, folder, name)
            temporary = f".{secrets.token_hex(8)}.part"
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | LEAF, 0o600, dir_fd=folder)
            try:
                try:
                    _fill(file, data)
                    os.fchmod(file, mode)
                finally:
                    os.close(file)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):  # it is there no more when it has become the file
                    os.unlink(temporary, dir_fd=folder)

    def remove(self, path: str) -> None:
        with self._parent(path) as (folder, name):
            if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def rename(self, path: str, to: str) -> None:
        if self._holds_closed(self.parts(path)):
            raise ToolFailed(f"{path}: what is the gateway's own lies in it; it cannot be moved")
        with self._parent(path) as (folder, name), self._parent(to, make=True) as (target, new):
            facts = os.lstat(name, dir_fd=folder)
            if not stat.S_ISDIR(facts.st_mode):
                plain(path, facts)
            _replaceable(to, target, new)
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=target)

    def entries(self, path: str) -> list[Found]:
        names = self.parts(path)
        with told(path or "."), self._folder(names) as folder:
            listed = sorted(_listed(folder, "/".join(names)), key=lambda found: found.path)
        return [found for found in listed if not self._is_closed(found.path.split("/"))] if self._closed else listed

    def walk(self, path: str, limit: int, skip: Collection[str] = ()) -> list[Found]:
        names = self.parts(path)
        found: list[Found] = []
        waiting = ["/".join(names)]
        while waiting and len(found) < limit:
            here = waiting.pop()
            try:
                listed = self.entries(here)
            except ToolFailed:
                if here == "/".join(names):
                    raise
                continue  # gone, or not ours to read, since it was listed
            found += [entry for entry in listed if entry.kind == "file"]
            folders = (entry.path for entry in listed if entry.kind == "folder")
            waiting += sorted((folder for folder in folders if folder.rpartition("/")[2] not in skip), reverse=True)
        return found[:limit]

    def stat(self, path: str) -> Found | None:
        names = self.parts(path)
        if not names:
            with told(path or "."), self._folder([]) as folder:
                return _found("", os.fstat(folder))
        try:
            with self._folder(names[:-1]) as folder:
                return _found("/".join(names), os.lstat(names[-1], dir_fd=folder))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise said(path, error) from None


def _folded(names: list[str]) -> list[str]:
    """Names as file systems compare them that do not tell capitals from small letters."""
    return [name.casefold() for name in names]


def plain(path: str, facts: os.stat_result) -> None:
    """Raises ToolFailed unless it is a plain file with one name."""
    if stat.S_ISDIR(facts.st_mode):
        raise ToolFailed(f"{path}: it is a folder")
    if stat.S_ISLNK(facts.st_mode):
        raise ToolFailed(f"{path}: it is a symbolic link, which is not followed")
    if not stat.S_ISREG(facts.st_mode):
        raise ToolFailed(f"{path}: it is no plain file")
    if facts.st_nlink > 1:
        raise ToolFailed(f"{path}: it has a second name (a hard link); copy it to a new file first")


def _replaceable(path: str, folder: int, name: str) -> int:
    """The mode a file written at `name` gets. Raises ToolFailed when something else stands there."""
    try:
        facts = os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return 0o644
    plain(path, facts)
    return stat.S_IMODE(facts.st_mode) & 0o777


def _whole(file: int, path: str, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while data := os.read(file, 1 << 20):
        parts.append(data)
        size += len(data)
        if size > limit:
            raise ToolFailed(f"{path}: it grew past the {limit} bytes that can be read at once")
    return b"".join(parts)


def _fill(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _kind(mode: int) -> Literal["file", "folder", "link", "other"]:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _found(path: str, facts: os.stat_result) -> Found:
    return Found(path, _kind(facts.st_mode), facts.st_size, facts.st_mtime_ns // 1_000_000)


def _listed(folder: int, above: str) -> Iterator[Found]:
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                path = f"{above}/{entry.name}" if above else entry.name
                yield _found(path, entry.stat(follow_symlinks=False))
