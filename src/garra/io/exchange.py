"""Two files or folders change places in one step, where the system can."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

HERE: Final = -100
SWAP: Final = 2


def exchange(one: Path, other: Path) -> bool:
    """Whether they have changed places; False where the system or the file system cannot. Both stay as they are then.

    Raises OSError for what no file system would do (one is missing, the rights).
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if call is None:
        return False
    if call(HERE, os.fsencode(one), HERE, os.fsencode(other), SWAP) == 0:
        return True
    fault = ctypes.get_errno()
    if fault in _CANNOT:
        return False
    raise OSError(fault, os.strerror(fault), str(one))


_CANNOT: Final = frozenset({22, 38, 95, 16, 18})
"""EINVAL, ENOSYS, EOPNOTSUPP; EBUSY of a mount point, EXDEV of two file systems."""
