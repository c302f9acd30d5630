"""A lock on a file that dies with the process that holds it, and says who holds it.

The lock is the operating system's (`flock`), so a killed holder never leaves it behind; what the file says about its
holder is only believed while somebody holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any

from garra.core.errors import Conflict
from garra.io.files.atomic import FILE_MODE, folder

_PAUSE_S = 0.01
_TRIES = 5  # whoever asks `holder` holds the lock for a moment: that is no reason to give up


class Lock:
    """A lock that is held. `release` it, or use it with `with`; the end of the process releases it too."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle: int | None = handle
        self.path = path

    def update(self, info: dict[str, Any]) -> None:
        """Say something else about the holder."""
        if self._handle is not None:
            _describe(self._handle, info)

    def release(self) -> None:
        """Let go. The file stays: removing it would let two holders meet."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.ftruncate(handle, 0)
            os.close(handle)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(path: Path, info: dict[str, Any], wait_s: float = 0.0) -> Lock:
    """Take the lock and write `info` (JSON) about the holder beside it, for whoever asks `holder`.

    Waits up to `wait_s` seconds (blocking: then use a thread). Raises Conflict, whose `details["holder"]` is the
    holder's info (empty when it has not said).
    """
    folder(path.parent)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    for _ in range(max(_TRIES, int(wait_s / _PAUSE_S))):
        if _take(handle):
            _describe(handle, info)
            return Lock(handle, path)
        threading.Event().wait(_PAUSE_S)
    found = _read(handle)
    os.close(handle)
    who = f"process {found['pid']}" if "pid" in found else "another process"
    raise Conflict(f"{path} is held by {who}", details={"holder": found})


def holder(path: Path) -> dict[str, Any] | None:
    """What the holder of the lock says about itself; None when nobody holds it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _read(handle)
        return None
    finally:
        os.close(handle)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _describe(handle: int, info: dict[str, Any]) -> None:
    data = json.dumps(info).encode()
    os.ftruncate(handle, 0)
    os.pwrite(handle, data, 0)


def _read(handle: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(handle, 65536, 0) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
