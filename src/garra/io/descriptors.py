"""How many files and sockets this process may have open."""

from __future__ import annotations

import resource
from typing import Final

MOST: Final = 1 << 20


def allowed() -> int:
    """The soft limit of the process (`ulimit -n`); `MOST` where there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else min(soft, MOST)
