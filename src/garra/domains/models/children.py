"""Modules of ours in processes of their own, spoken to in lines; as `sdk.ports.Children`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from garra.core.errors import Unavailable
from garra.io.process.child import Child
from garra.io.process.door import Programs, Start

_LINE = 8 << 20
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")
"""What such a child sees of our environment: nothing that could be a secret."""


class Children:
    """Starts them by the process door."""

    def __init__(self, programs: Programs, env: Mapping[str, str], folder: str) -> None:
        self._programs = programs
        self._env = {name: env[name] for name in KEPT if name in env}
        self._folder = folder

    async def start(self, module: str) -> Lines:
        argv = (sys.executable, "-m", module)
        start = Start(argv, self._folder, self._env, stdin=True, stderr="drop", bare=True)
        return Lines(await self._programs.start(start))


class Lines:
    """One of them, as `sdk.ports.Worker`."""

    def __init__(self, child: Child) -> None:
        self.child = child

    async def send(self, line: bytes) -> None:
        await self.child.stdin.write(line + b"\n")

    async def line(self) -> bytes:
        if self.child.stdout is None:
            raise Unavailable("the child has no output")
        return await self.child.stdout.line(_LINE)

    async def kill(self) -> None:
        await self.child.kill()
        self.child.close()
