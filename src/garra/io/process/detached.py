"""A program of our own that goes on when we end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from garra.core.errors import Unavailable
from garra.io.files import atomic


def start(argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> int:
    """Start it in a session of its own, with all that it says appended to `log`; gives its pid.

    Blocks. Raises Unavailable when it cannot be started.
    """
    atomic.folder(log.parent)
    try:
        with log.open("ab") as said:
            child = subprocess.Popen(
                list(argv), env=dict(env), cwd=cwd, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip
    except OSError as fault:
        raise Unavailable(f"{argv[0]} cannot be started: {fault.strerror or fault}") from fault
    pid = child.pid
    child.returncode = 0  # nobody waits for it: it outlives us
    return pid
