"""How many processes a child may have, where its limits do not say so: the kernel does not count those of root.

Only for a gateway that runs as root, where the kernel's control groups can be written; anywhere else nothing is done.
"""

from __future__ import annotations

import contextlib
import os

MOUNT = "/sys/fs/cgroup"


def enclose(pid: int, processes: int) -> str:
    """Put a child that has just been started, and what it will start, into a group of its own; gives its folder, which
    `release` takes away, and nothing where that cannot be done. Blocks for some microseconds.
    """
    if os.geteuid() != 0:
        return ""
    try:
        folder = f"{_above()}/garra-{pid}"
        os.mkdir(folder)  # noqa: PTH102 - no Path for every command
    except (OSError, LookupError):
        return ""
    try:
        _write(f"{folder}/pids.max", processes)
        _write(f"{folder}/cgroup.procs", pid)
    except OSError:
        release(folder)
        return ""
    return folder


def release(folder: str) -> None:
    """The group is empty, or soon will be; an empty one left over costs the kernel little."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # noqa: PTH106


def _above() -> str:
    """The folder to make groups in. Raises LookupError where processes are not counted."""
    with open("/proc/self/cgroup", encoding="ascii") as file:  # noqa: PTH123
        lines = [line.strip().split(":", 2) for line in file]
    for _, names, path in lines:
        if "pids" in names.split(","):
            return f"{MOUNT}/pids{path.rstrip('/')}"
    for _, names, path in lines:
        if not names:  # the one hierarchy of version 2: beside us, for a group with processes has none below it
            beside = f"{MOUNT}{os.path.dirname(path).rstrip('/')}"  # noqa: PTH120
            with open(f"{beside}/cgroup.subtree_control", encoding="ascii") as file:  # noqa: PTH123
                if "pids" in file.read().split():
                    return beside
    raise LookupError


def _write(file: str, number: int) -> None:
    handle = os.open(file, os.O_WRONLY)
    try:
        os.write(handle, str(number).encode())
    finally:
        os.close(handle)
