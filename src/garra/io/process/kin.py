"""Whether somebody who calls is a program that this gateway has started itself: the kernel says so, not the caller.

It holds for what runs below the gateway. A program that has another do its calling (a service, a job of the system's
clock) is not recognised: who may run anything as the owner may do what the owner may.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from garra.io.process import stub

LISTS = ("/proc/net/tcp", "/proc/net/tcp6")


def above(pid: int) -> bool:
    """Whether the process `pid` is above this one. Of the first of all nothing is said: orphans are its too. Blocks."""
    parents, at = stub.parents(), os.getppid()
    while at > 1:
        if at == pid:
            return True
        at = parents.get(at, 0)
    return False


def holds(port: int) -> bool:
    """Whether a process below this one holds the other end of a connection on loopback, from `port`. Blocks."""
    below = stub.below(os.getpid())
    sockets = set(_sockets(port)) if below else set()
    return bool(sockets) and any(link in sockets for pid in below for link in _open(pid))


def _sockets(port: int) -> Iterator[str]:
    """The connections from `port`, as a process's descriptors name them."""
    end = f":{port:04X}"
    for name in LISTS:
        try:
            with open(name, encoding="ascii") as file:  # noqa: PTH123 - no pathlib here
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        yield from (f"socket:[{row[9]}]" for row in rows if len(row) > 9 and row[1].endswith(end))


def _open(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")  # noqa: PTH115
        except OSError:
            continue
