"""Modules of ours that read what nobody vouches for: each in a process of its own, with little time and memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from garra.core.errors import Unavailable
from garra.io.process.door import Limits, Programs, Start

LIMITS = Limits(files=64, file_bytes=0, memory=1 << 30, cpu_s=20)
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")


class Bounded:
    """As `sdk.web.Bounded`. It writes no file."""

    def __init__(self, programs: Programs, env: Mapping[str, str], folder: str) -> None:
        self._programs, self._folder = programs, folder
        self._env = {name: env[name] for name in KEPT if name in env}

    async def run(self, module: str, given: bytes, *, timeout_s: float = 20.0, limit: int = 8 << 20) -> bytes:
        argv = (sys.executable, "-B", "-P", "-m", module)
        start = Start(argv, self._folder, self._env, stdin=True, stderr="drop", limits=LIMITS)
        done = await self._programs.run(start, given=given, timeout_s=timeout_s, limit=limit)
        if done.code is None:
            raise Unavailable(f"it could not be read within {timeout_s:g} s", details={"kind": "timeout"})
        if done.code or done.truncated:
            why = "it has too much in it" if done.truncated else "reading it failed, or took too much time or memory"
            raise Unavailable(why, details={"kind": "refused"})
        return done.output
