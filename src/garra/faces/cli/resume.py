"""`garra resume`: what `garra stop --all --pause` holds back may begin."""

from __future__ import annotations

from collections.abc import Sequence

from garra.faces.cli import output, parsing
from garra.faces.cli.stop import called


def run(arguments: Sequence[str]) -> int:
    about = "Let a paused gateway work again; messages that waited are answered."
    asked = parsing.with_target(parsing.with_json(parsing.parser("resume", about))).parse_args(list(arguments))
    found = called(asked, "work.resume", {})
    if asked.json:
        output.say_json(found)
    else:
        output.say("Work goes on." if found["resumed"] else "Work was not paused.")
    return 0
