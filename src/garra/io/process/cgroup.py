"""How many processes our children may have together, where their limits do not say so: the kernel does not count those
of root.

Only for a gateway that runs as root, where the kernel's control groups can be written; anywhere else nothing is done.
The group is that of the one thread that starts children. It costs each of them nothing: to move a child that has been
started costs the kernel ten milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import threading

MOUNT = "/sys/fs/cgroup"
MOST = 8_192
PATIENCE = 200


def enter() -> str:
    """Put this thread, and what it will start, into a group of its own; gives its folder, which `release` takes away
    once the thread has ended, and nothing where that cannot be done. Blocks.
    """
    if os.geteuid() != 0:
        return ""
    try:
        above, members = _above()
        _sweep(above)
        folder = f"{above}/garra-{os.getpid()}-{threading.get_native_id()}"
        os.mkdir(folder)  # noqa: PTH102
    except (OSError, LookupError):
        return ""
    try:
        if members == "cgroup.threads":
            _write(f"{folder}/cgroup.type", "threaded")
            _write(f"{above}/cgroup.subtree_control", "+pids")
        _write(f"{folder}/pids.max", str(MOST))
        _write(f"{folder}/{members}", str(threading.get_native_id()))
    except OSError:
        release(folder)
        return ""
    return folder


def release(folder: str) -> None:
    """The group is empty, or in a moment will be: one that is left over all the same is swept away by the next gateway.
    Blocks.
    """
    for _ in range(PATIENCE):
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106
            return
        os.sched_yield()


def _above() -> tuple[str, str]:
    """The folder to make groups in, and the file there that takes a thread. Raises LookupError where none counts."""
    with open("/proc/self/cgroup", encoding="ascii") as file:  # noqa: PTH123
        lines = [line.strip().split(":", 2) for line in file]
    for _, names, path in lines:
        if "pids" in names.split(","):
            return f"{MOUNT}/pids{path.rstrip('/')}", "tasks"
    for _, names, path in lines:
        if not names:  # the one hierarchy of version 2
            return f"{MOUNT}{path.rstrip('/')}", "cgroup.threads"
    raise LookupError


def _sweep(above: str) -> None:
    for name in os.listdir(above):  # noqa: PTH208
        if name.startswith("garra-") and not os.path.exists(f"/proc/{name.split('-')[1]}"):  # noqa: PTH110
            release(f"{above}/{name}")


def _write(file: str, words: str) -> None:
    handle = os.open(file, os.O_WRONLY)
    try:
        os.write(handle, words.encode())
    finally:
        os.close(handle)
