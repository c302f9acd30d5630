"""`garra logs`: the gateway's log, from its files on this machine or over the wire from another."""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from garra.client import quick
from garra.core.characters import escaped
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.output import Tone

PERIOD_S = 1.0
TONES: dict[str, Tone] = {"error": "bad", "fatal": "bad", "warn": "warn", "debug": "quiet", "trace": "quiet"}
Read = Callable[[int | None], dict[str, Any]]


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(parsing.parser("logs", "Show the gateway's log."))
    parser.add_argument("--json", action="store_true", help="one JSON object a line, as it is stored")
    parser.add_argument("--limit", type=int, default=200, metavar="N", help="so many lines (200)")
    parser.add_argument("--follow", "-f", action="store_true", help="go on showing what comes, until ctrl+c")
    asked = parser.parse_args(list(arguments))
    if asked.limit < 1:
        raise UserError("--limit has to be at least 1")
    read = reader(asked)
    found = read(None)
    _show(found["lines"], as_json=asked.json)
    if not found["file"] and not asked.follow:
        output.note("garra: no log yet; the gateway writes one when it runs")
    pause = threading.Event()
    while asked.follow and not pause.wait(PERIOD_S):
        found = read(found["cursor"])
        _show(found["lines"], as_json=asked.json)
    return 0


def reader(asked: argparse.Namespace) -> Read:
    """How to read on from a cursor: `{file, cursor, lines}`."""
    here = place.here()
    if asked.url:
        target = here.target(parsing.wanted(asked))

        def remote(cursor: int | None) -> dict[str, Any]:
            params = {"limit": asked.limit, **({} if cursor is None else {"cursor": cursor})}
            answer: dict[str, Any] = quick.call(target, "logs.tail", params)
            return answer

        return remote
    from garra.io.log import tail  # noqa: PLC0415 - another machine's log needs none of it

    settings = here.config.get("logging")
    own = settings.get("file") if isinstance(settings, dict) else None
    file = here.paths.expand(own) if isinstance(own, str) and own else None

    def local(cursor: int | None) -> dict[str, Any]:
        found = tail(here.paths, cursor, asked.limit, file)
        return {"file": found.file, "cursor": found.cursor, "lines": found.lines}

    return local


def _show(lines: Sequence[str], *, as_json: bool) -> None:
    for line in lines:
        output.say(line if as_json else readable(line))


def readable(line: str) -> str:
    """One stored line for a person: local time, level, who, what."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    if not isinstance(entry, dict) or "message" not in entry:
        return line
    level = str(entry.get("level", "info"))
    when = _local(str(entry.get("time", "")))
    text = escaped(f"{when} {level:<5} {entry.get('subsystem', '')}: {entry['message']}")
    text += "".join(f"\n  {escaped(part)}" for part in str(entry.get("error") or "").splitlines())
    return output.painted(text, TONES[level]) if level in TONES else text


def _local(when: str) -> str:
    try:
        return datetime.fromisoformat(when).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return when
