"""How the C library keeps memory for this process."""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, ARENA_MAX = -1, -8
"""Numbers of glibc's `mallopt`."""
TRIM_BYTES = 128 << 10


def gather() -> None:
    """One heap for all threads, given back from its end; before the first thread is started. Elsewhere than on glibc
    nothing happens.

    With a heap for each thread, what one thread frees the others cannot use: over thousands of turns a process that
    lives long grows by a third for nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(ARENA_MAX, 1)
        mallopt(TRIM_THRESHOLD, TRIM_BYTES)


def trim() -> None:
    """Give back to the system what is free in the middle of the heap as well. It may take milliseconds: in a thread.
    Elsewhere than on glibc nothing happens.
    """
    given_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if given_back is not None:
        given_back(0)
