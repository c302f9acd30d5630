"""Installs the packages of an extra into the interpreter Garra runs in: pinned, by hash, with the person's pip."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import util
from pathlib import Path

from garra.core.errors import Unavailable, UserError
from garra.core.value import frozen
from garra.domains.plugins import packages
from garra.domains.plugins.discover import Plugin
from garra.io.process import pip
from garra.io.process.child import Child
from garra.io.process.door import Programs, Start

_FETCHED = re.compile(r"^\s*(?:Downloading|Using cached)\s+(\S+?)\.(?:whl|tar\.gz|zip)\s+\(([^)]+)\)")
_ADDRESS = re.compile(r"://[^/\s@]+@")
_LINE, _KEPT = 4_096, 200


@frozen
class Ground:
    """The interpreter that is installed into."""

    python: str
    site: str
    pip: bool
    writable: bool


def ground() -> Ground:
    """This one. Blocks."""
    site = sysconfig.get_path("purelib")
    return Ground(sys.executable, site, util.find_spec("pip") is not None, os.access(site, os.W_OK))


class Installer:
    """`tell` is called with one line for each package that has come, and for what is done at the end."""

    def __init__(
        self, programs: Programs, env: Mapping[str, str], tell: Callable[[str], None], on: Ground | None = None
    ) -> None:
        self._programs, self._tell = programs, tell
        self._env = pip.environment(env)
        self._ground = on or ground()

    async def __call__(self, plugin: Plugin) -> bool:
        """Install what `plugin` needs; False when all of it is there. Raises UserError that says what to do."""
        if not (line := await asyncio.to_thread(_lacking, plugin)):
            return False
        name, file = plugin.manifest.name or plugin.id, await asyncio.to_thread(packages.lock, plugin)
        if file is None:
            raise UserError(line)
        self._check(name, file)
        self._tell(f"{name}: installing its packages, as pinned in {file.name} …")
        await self._installed(name, file)
        if lacking := await asyncio.to_thread(packages.missing, plugin.manifest):
            raise Unavailable(
                f"pip is done, but {self._ground.python} still finds no {', '.join(lacking)}: look at pip's settings "
                "(`pip config list`, PIP_TARGET, PIP_USER)"
            )
        return True

    def _check(self, name: str, file: Path) -> None:
        """Raises UserError where pip could not do it, with the command that can."""
        on = self._ground
        if not on.pip:
            by_uv = _shown("uv", "pip", "install", "--python", on.python, "--require-hashes", "-r", str(file))
            raise UserError(f"{name}'s packages are not installed: {on.python} has no pip. Run: {by_uv}")
        if not on.writable:
            by_pip = _shown(on.python, "-m", "pip", "install", "--require-hashes", "-r", str(file))
            raise UserError(
                f"{name}'s packages are not installed: {on.site} cannot be written by this user. "
                f"Run as the one who owns it: {by_pip}"
            )

    async def _installed(self, name: str, file: Path) -> None:
        argv = pip.argv("install", "--require-hashes", "-r", str(file))
        child = await self._programs.start(Start(argv, str(file.parent), self._env, bare=True))
        kept: list[str] = []
        try:
            async for line in _lines(child):
                kept = [*kept[-_KEPT:], line]
                if shown := progress(line):
                    self._tell(f"  {shown}")
            code = await child.wait()
        finally:
            await asyncio.shield(child.kill())
            child.close()
        if code != 0:
            raise Unavailable(self._why(name, file, kept))

    def _why(self, name: str, file: Path, said: list[str]) -> str:
        """pip's own reason in one line."""
        if any("externally-managed-environment" in line for line in said):
            return (
                f"{name}'s packages are not installed: {self._ground.python} belongs to the system's package manager. "
                f"Install Garra in an environment of its own (`pipx install 'garra[{file.stem}]'`), or run: "
                + _shown(
                    self._ground.python, "-m", "pip", "install", "--break-system-packages", "--require-hashes", "-r",
                    str(file),
                )
            )  # fmt: skip
        again = _shown(self._ground.python, "-m", "pip", "install", "--require-hashes", "-r", str(file))
        return f"{name}'s packages are not installed: {reason(said)} (pip; the whole story: {again})"


def _lacking(plugin: Plugin) -> str:
    return packages.needed(plugin) or packages.welcome(plugin)


def reason(said: list[str]) -> str:
    """Why pip failed, in its own first words of it."""
    faults = [line for line in said if line.startswith("ERROR:")] or said[-1:]
    why = faults[0].removeprefix("ERROR:").strip() if faults else "it said nothing"
    return _ADDRESS.sub("://", why)[:300]


def progress(line: str) -> str:
    """What a person is shown of a line of pip's: a package that has come with its size, and the work at the end."""
    if (found := _FETCHED.match(line)) is not None:
        words = found[1].rpartition("/")[2].split("-")
        return f"{words[0]} {words[1]} ({found[2]})" if len(words) > 1 else ""
    if line.startswith("Installing collected packages:"):
        count = line.count(",") + 1
        return f"putting {count} package{'s' if count > 1 else ''} in place"
    return ""


async def _lines(child: Child) -> AsyncIterator[str]:
    """What it says, line by line; a line longer than any of pip's is cut."""
    rest = b""
    while child.stdout is not None and (data := await child.stdout.read()):
        *whole, rest = (rest + data).split(b"\n")
        rest = rest[-_LINE:]
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
    if rest:
        yield rest.decode("utf-8", "replace")


def _shown(*argv: str) -> str:
    return shlex.join(argv)
