"""Files that are there whole or not at all: ours alone to read, replaced in one step, safe against a power cut."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from garra.core.errors import Unavailable

FOLDER_MODE = 0o700
FILE_MODE = 0o600

_WORDS = {
    errno.ENOSPC: "the disk is full: free some space, then try again",
    errno.EDQUOT: "the disk quota is used up: free some space, then try again",
    errno.EROFS: "it is on a read-only disk: make that writable, or choose another place with GARRA_STATE_DIR",
    errno.EACCES: "its rights do not allow it: make it yours, or choose another place with GARRA_STATE_DIR",
    errno.EPERM: "its rights do not allow it: make it yours, or choose another place with GARRA_STATE_DIR",
}


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the system's refusal to write at `path` into a line for the owner. Raises Unavailable."""
    try:
        yield
    except OSError as fault:
        why = _WORDS.get(fault.errno or 0, fault.strerror or str(fault))
        raise Unavailable(f"{path} cannot be written: {why}", retryable=True) from fault


def folder(path: Path) -> None:
    """Make a folder that only its owner may enter, and those above it."""
    lacking = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(lacking):
        place.mkdir(mode=FOLDER_MODE, exist_ok=True)


def write(path: Path, data: bytes, mode: int = FILE_MODE) -> None:
    """Replace a file. Whoever reads it meanwhile sees the old or the new one, never half; on return it is on the disk.

    A link is followed, so that what it points to is replaced. Raises OSError, and then the old file stands.
    """
    path = path.resolve()
    folder(path.parent)
    _sweep(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.draft")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(handle)
        draft.replace(path)
    finally:  # it is gone when it took its place
        draft.unlink(missing_ok=True)
    _settle(path.parent)


def create(path: Path, data: bytes, mode: int = FILE_MODE) -> bool:
    """Make a file whole, unless something is there already: then it stays, and the answer is False. Raises OSError."""
    if os.path.lexists(path):
        return False
    folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.draft")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def read(path: Path, limit: int = 16 << 20) -> str:
    """A text file. Raises FileNotFoundError; Unavailable with one line when it cannot be read or is no text."""
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise Unavailable(f"{path} cannot be read: {fault.strerror or fault}") from fault
    if len(data) > limit:
        raise Unavailable(f"{path} is larger than {limit} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise Unavailable(f"{path} is not UTF-8 text (byte {fault.start})") from fault


def _sweep(path: Path) -> None:
    """Remove drafts of writers that died."""
    for draft in path.parent.glob(f".{path.name}.*.draft"):
        owner = draft.name.removeprefix(f".{path.name}.").split(".")[0]
        if owner.isdecimal() and not alive(int(owner)):
            draft.unlink(missing_ok=True)


def alive(pid: int) -> bool:
    """Whether a process of this number runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _settle(path: Path) -> None:
    """Put a folder's entries on the disk; not every file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
