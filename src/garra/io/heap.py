"""How this process keeps memory: what is made at the start is not looked through for garbage, and what is freed later
goes back to the system.
"""

from __future__ import annotations

import ctypes
import gc

TRIM_THRESHOLD, ARENA_MAX = -1, -8
"""Numbers of glibc's `mallopt`."""
TRIM_BYTES = 128 << 10


def start() -> None:
    """The program begins: what it makes from now on stays, so nobody looks for garbage in it. `started` ends this."""
    gc.disable()


def started() -> None:
    """The start is over: garbage is looked for again, though not in what was made until now."""
    gc.freeze()
    gc.enable()


def settle() -> None:
    """Give up what the start left over, once; what remains is looked through no more. It holds everything up for some
    hundredths of a second.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


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
