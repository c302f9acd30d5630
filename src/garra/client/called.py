"""How a person calls this program, for the hints that name a command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

NAME = "garra"


def command(env: Mapping[str, str], profile: str = "") -> str:
    """What to type for this program in the same shell: the bare name where the search path leads to it, else as it was
    called (`.venv/bin/garra`). A profile belongs to it.
    """
    return f"{_program(env, sys.argv[0])} --profile {profile}" if profile else _program(env, sys.argv[0])


def _program(env: Mapping[str, str], called: str) -> str:
    file = Path(called)
    if file.name != NAME or file == Path(NAME) or _found(env) == file.absolute():
        return NAME
    return shlex.quote(called)


def _found(env: Mapping[str, str]) -> Path | None:
    """The program that a shell takes for the bare name."""
    folders = (Path(folder) for folder in env.get("PATH", "").split(":") if folder)
    return next((file.absolute() for folder in folders if (file := folder / NAME).is_file()), None)
