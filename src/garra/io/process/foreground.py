"""A program that takes over this terminal until it ends: a person's own editor."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from garra.core.errors import UserError

USUAL = ("nano", "vim", "vi")


def editor(env: Mapping[str, str]) -> tuple[str, ...]:
    """The person's editor as argv: `VISUAL`, else `EDITOR`, else a usual one; empty when there is none."""
    for name in ("VISUAL", "EDITOR"):
        words = _words(env.get(name, ""))
        if words and shutil.which(words[0], path=env.get("PATH")):
            return words
    return next(((name,) for name in USUAL if shutil.which(name, path=env.get("PATH"))), ())


def run(argv: Sequence[str]) -> int:
    """Run it in the foreground, with our environment and terminal, and give its exit code. Raises UserError."""
    try:
        return subprocess.run(argv, check=False).returncode
    except OSError as fault:
        raise UserError(f"{argv[0]} cannot be started: {fault.strerror or fault}") from fault


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return ()
