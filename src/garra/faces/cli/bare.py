"""`garra` alone: at a terminal it opens the chat; what comes on standard input is answered on standard output."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from garra.core.dotted import show
from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, place, turn
from garra.faces.cli.place import Place
from garra.faces.cli.turn import Ask, Terminated

CHAT = "garra.faces.tui.command"
SLIPS = 3
"""So many slips of the configuration are told before the chat opens."""


def run(arguments: Sequence[str]) -> int:
    del arguments
    here = place.here()
    terminal = os.isatty(0) and os.isatty(1)
    if not _usable(here, terminal=terminal):
        return 1
    if terminal:
        code: int = importlib.import_module(CHAT).run([])
        return code
    return answer(here, sys.stdin.read())


def _usable(here: Place, *, terminal: bool) -> bool:
    """Whether there is a configuration to go on with; a broken one is mended first, where a person can be asked."""
    if not here.paths.config_file.exists():
        return True
    found = importlib.import_module("garra.config.load").load(here.paths, here.env)
    if found.valid:
        for slip in importlib.import_module("garra.config.troubles").slips(found)[:SLIPS]:
            output.note(f"garra: {show(slip.at)}: {slip.message} ({here.command} repair)")
        return True
    repair = importlib.import_module("garra.faces.cli.repair")
    if terminal:
        end: str = repair.Repair(here).talk()
        return end != "quit"
    output.note(repair.explained(here, found))
    return False


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
