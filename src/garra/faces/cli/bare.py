"""`garra` alone: at a terminal it opens the chat; what comes on standard input is answered on standard output."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, place, turn
from garra.faces.cli.place import Place
from garra.faces.cli.turn import Ask, Terminated

CHAT = "garra.faces.tui.command"


def run(arguments: Sequence[str]) -> int:
    del arguments
    here = place.here()
    broken = broken_config(here)
    if broken:
        output.note(broken)
        return 1
    if os.isatty(0) and os.isatty(1):
        code: int = importlib.import_module(CHAT).run([])
        return code
    return answer(here, sys.stdin.read())


def answer(here: Place, text: str) -> int:
    """Answer `text` and print the reply alone: by the gateway that runs here, else in this process."""
    with output.reserved() as out:
        try:
            if not text.strip():
                raise UserError('nothing came on standard input. Try: echo "What can you do?" | garra')
            ask = Ask(turn.message_of(text.strip(), "", None))
            owner = here.holder
            went = turn.outcome(turn.through(here.target(), ask)) if owner else turn.embedded(here, ask)
            if went.ending != "ok":
                raise UserError(went.fault)
        except GarraError as fault:
            output.note(f"garra: {fault.message}")
            return 1
        except Terminated:
            return turn.TERMINATED
        out.text(went.text)
        return 0


def broken_config(here: Place) -> str:
    """What is wrong with the configuration and how to mend it, empty when it is right or absent."""
    if not here.paths.config_file.exists():
        return ""
    loaded = importlib.import_module("garra.config.load").load(here.paths, here.env)
    if loaded.valid:
        return ""
    faults = [
        f"  {getattr(issue, 'path', '') or 'file'}: {getattr(issue, 'message', issue)}" for issue in loaded.issues
    ]
    return "\n".join(
        (
            f"The configuration {here.paths.config_file} is not valid:",
            *faults,
            "",
            f"Mend the file, or bring the last good one back:  {here.command} config restore",
            f"See what else is wrong:                          {here.command} doctor",
        )
    )
