"""What this process uses of its machine."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from garra.core.value import frozen


@frozen
class Used:
    """Bytes that are resident, seconds of CPU, open descriptors (0 where the system does not tell)."""

    rss: int
    cpu_s: float
    descriptors: int


def used() -> Used:
    """Blocks for some microseconds: on a loop, use a thread."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu = own.ru_utime + own.ru_stime
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return Used(pages * os.sysconf("SC_PAGE_SIZE"), cpu, len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - names
    except (OSError, ValueError, IndexError):
        most = own.ru_maxrss if sys.platform == "darwin" else own.ru_maxrss * 1024
        return Used(most, cpu, 0)
