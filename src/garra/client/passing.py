"""Asks the running gateway for the secret of its run, as the same user: see `io.passing`. Light: no asyncio."""

from __future__ import annotations

import socket
from pathlib import Path

WAIT_S = 1.0
LONGEST = 4_096


def ask(path: Path) -> str:
    """The secret of the run that owns `path`; empty where none hands one out. Blocks a second at most."""
    if not hasattr(socket, "AF_UNIX"):
        return ""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(WAIT_S)
        try:
            asking.connect(str(path))
            said = b""
            while not said.endswith(b"\n") and len(said) < LONGEST and (more := asking.recv(LONGEST)):
                said += more
        except OSError:
            return ""
    return said.decode("utf-8", "replace").strip()
