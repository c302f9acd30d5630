"""A program of the owner's is asked for the words of a recording: its own process group, limits, a bare environment."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from garra.config.sections.media import AudioMedia, MediaModel
from garra.core.errors import Unavailable
from garra.core.patterns import later
from garra.domains.hearing.ask import Fault, Recording
from garra.io.process.door import Finished, Limits, Start

LARGEST: Final = 5 << 20
"""Bytes of its output that are read."""

_HOLE = later(r"\{\{\s*(\w+)\s*\}\}")


class Programs(Protocol):
    """The door to processes."""

    async def run(self, start: Start, *, given: bytes = b"", timeout_s: float = 30.0, limit: int = 1 << 20) -> Finished:
        """Raises Unavailable when it cannot be started."""
        ...


class Running:
    """`env` is the host's; the program gets only where to find others, and its owner's home."""

    def __init__(self, programs: Programs, env: Mapping[str, str]) -> None:
        self._programs, self._env = programs, env

    async def heard(self, one: MediaModel, audio: AudioMedia, recording: Recording) -> str:
        """What it writes to its output. Raises Fault."""
        if not one.command.strip() or not one.args:
            raise Fault("command and args must both be set")
        argv0 = await asyncio.to_thread(self._found, one.command)
        folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="garra-hearing-")
        try:
            argv = (argv0, *(_filled(arg, _holes(one, audio, recording, folder)) for arg in one.args))
            seconds = one.timeout_seconds or audio.timeout_seconds
            start = Start(argv, folder, self._plain(), stderr="drop", limits=Limits(), keep=True)
            ended = await self._programs.run(start, timeout_s=seconds, limit=LARGEST)
        except Unavailable as error:
            raise Fault("it cannot be started", error.message) from None
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        if ended.code != 0:
            raise Fault("no answer in time" if ended.code is None else f"it ended with {ended.code}")
        return ended.output.decode("utf-8", "replace")

    def _found(self, command: str) -> str:
        path = shutil.which(str(Path(command).expanduser()), path=self._env.get("PATH", ""))
        if path is None:
            raise Fault("there is no such program")
        return str(Path(path).absolute())

    def _plain(self) -> dict[str, str]:
        return {name: self._env[name] for name in ("PATH", "HOME", "LANG") if name in self._env}


def _holes(one: MediaModel, audio: AudioMedia, recording: Recording, folder: str) -> dict[str, str]:
    path = recording.path
    shared = {"Path": str(path), "Dir": str(path.parent), "ContentType": recording.mime, "Index": "0"}
    return {
        **{f"Attachment{name}": value for name, value in shared.items()},
        "MediaPath": str(path),
        "MediaDir": str(path.parent),
        "MediaType": recording.mime,
        "OutputDir": folder,
        "OutputBase": f"{folder}/words",
        "Prompt": one.prompt or audio.prompt,
        "Language": one.language or audio.language,
        "MaxChars": str(one.max_chars or audio.max_chars or ""),
    }


def _filled(arg: str, holes: Mapping[str, str]) -> str:
    unknown = next((name for name in _HOLE.findall(arg) if name not in holes), "")
    if unknown:
        raise Fault(f"args name {{{{{unknown}}}}}, which is not known")
    return _HOLE.sub(lambda found: holes[found[1]], arg)
