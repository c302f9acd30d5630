"""`garra doctor`: what is wrong with this installation, where, and how it is mended."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

from garra.core.errors import GarraError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.output import Tone
from garra.faces.cli.place import Place

TONES: dict[str, Tone] = {"ok": "accent", "note": "quiet", "warn": "warn", "bad": "bad"}
MARKS = {"ok": "well", "note": "note", "warn": "look", "bad": "BAD "}


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_json(parsing.parser("doctor", "Find what is wrong with this installation."))
    parser.add_argument("--fix", "--repair", "--yes", action="store_true", help="mend what can be mended, unasked")
    parser.add_argument("--non-interactive", action="store_true", help="ask nothing; only look, unless with --fix")
    asked = parser.parse_args(list(arguments))
    here = place.here()
    found = examine(here)
    mended = [_mended(finding) for finding in found if finding.mend] if asked.fix else []
    if not (asked.fix or asked.non_interactive or asked.json) and os.isatty(0) and os.isatty(1):
        return _talk(here, found)
    found = examine(here) if mended else found
    bad = any(finding.level == "bad" for finding in found)
    if asked.json:
        output.say_json({"ok": not bad, "findings": [told(finding) for finding in found], "mended": mended})
    else:
        output.say("\n".join([*lines(found), *mended]))
        output.say(summary(found))
    return 1 if bad else 0


def _talk(here: Place, found: Sequence[Any]) -> int:
    """Show what was found, and ask of each thing that can be mended whether it shall be."""
    output.say("\n".join(lines(found)))
    done = False
    for finding in found:
        if finding.mend and _wanted(finding):
            output.say(_mended(finding))
            done = True
    found = examine(here) if done else found
    output.say(summary(found))
    return 1 if any(finding.level == "bad" for finding in found) else 0


def _wanted(finding: Any) -> bool:
    output.say(f"\n{finding.check}: {finding.what}")
    try:
        return input(f"{finding.how or 'It can be mended'}. Mend it now? (y/N) ").strip().casefold() in ("y", "yes")
    except EOFError:
        output.say()
        return False


def summary(found: Sequence[Any]) -> str:
    """The last line: whether all is well."""
    counts = {level: sum(finding.level == level for finding in found) for level in ("bad", "warn")}
    if counts["bad"]:
        return f"{_times(counts['bad'], 'thing')} to mend."
    if counts["warn"]:
        return f"It works, but look at {_times(counts['warn'], 'thing')} above."
    return "Nothing stands in the way."


def _times(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def examine(here: Place) -> list[Any]:
    """What the checks find; loads the configuration and the catalog of models."""
    finding = importlib.import_module("garra.checks.finding")
    load = importlib.import_module("garra.config.load")
    checks = importlib.import_module("garra.checks.all")
    found: list[Any] = checks.examine(finding.Ground(here.paths, here.env, load.load(here.paths, here.env)))
    return found


def told(finding: Any) -> dict[str, Any]:
    made: dict[str, Any] = importlib.import_module("garra.checks.finding").told(finding)
    return made


def lines(found: Sequence[Any]) -> list[str]:
    """The findings for a person; a remedy that several share stands once, below the last of them."""
    after = [*((finding.where, finding.how) for finding in found[1:]), None]
    return [
        _line(finding, whole=(finding.where, finding.how) != following)
        for finding, following in zip(found, after, strict=True)
    ]


def _line(finding: Any, *, whole: bool) -> str:
    """One finding; what to do stands below what is not well."""
    head = f"{output.painted(MARKS[finding.level], TONES[finding.level])}  {finding.check:<8} {finding.what}"
    if finding.level == "ok" or not whole:
        return head
    where = f"\n               in {finding.where}" if finding.where else ""
    return head + where + (f"\n               {finding.how}" if finding.how else "")


def _mended(finding: Any) -> str:
    try:
        return str(finding.mend())
    except (GarraError, OSError) as fault:
        return f"could not mend it: {finding.what}: {fault}"
