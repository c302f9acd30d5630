"""`garra usage`: tokens and money, by day, conversation, sender, agent, model or job. Works without a gateway too."""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

BY = ("day", "session", "sender", "agent", "model", "job")
NOBODY = {"sender": "(operators)", "job": "(no job)", "session": "(none)", "agent": "(none)"}


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(parsing.with_json(parsing.parser("usage", "What model calls cost.")))
    parser.add_argument("--by", choices=BY, default="day", help="what each line is for (day)")
    parser.add_argument("--days", type=int, default=30, metavar="N", help="so many days up to today (30)")
    asked = parser.parse_args(list(arguments))
    if not 1 <= asked.days <= 36_500:
        raise UserError("--days has to be between 1 and 36500")
    found = _report(place.here(), asked)
    if asked.json:
        output.say_json(found)
    else:
        output.say(words(found))
    return 0


def _report(here: Place, asked: argparse.Namespace) -> dict[str, Any]:
    params = {"by": asked.by, "days": asked.days}
    try:
        found: dict[str, Any] = quick.call(here.target(parsing.wanted(asked)), "usage.report", params)
    except Unreachable:
        if here.holder or asked.url:
            raise
        # opens the database; only where no gateway does
        offline = importlib.import_module("garra.app.usage_offline")
        found = asyncio.run(offline.report(here.paths, here.env, params))
    return found


def words(found: Mapping[str, Any]) -> str:
    """A table, the sum below."""
    if not found["rows"]:
        return f"No model was called from {found['startDate']} to {found['endDate']}."
    by = found["by"]
    names = [output.harmless(row["name"] or NOBODY.get(by, "(none)")) for row in found["rows"]]
    rows: list[tuple[str, ...]] = [(by, "calls", "input", "cached", "output", "cost")]
    rows += [(name, *_figures(row)) for name, row in zip(names, found["rows"], strict=True)]
    rows.append(("all", *_figures(found["totals"])))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [_line(row, widths) for row in rows]
    if missing := found["totals"]["missingCostEntries"]:
        calls = "call is" if missing == 1 else "calls are"
        lines.append(f"{missing:,} {calls} of models without a known price: counted in tokens only.")
    return "\n".join(lines)


def _figures(row: Mapping[str, Any]) -> tuple[str, ...]:
    cost = row["totalCost"]
    shown = "?" if row["missingCostEntries"] and not cost else f"${cost:,.4f}" if cost < 1 else f"${cost:,.2f}"
    given = row["input"] + row["cacheWrite"]
    return (f"{row['calls']:,}", f"{given:,}", f"{row['cacheRead']:,}", f"{row['output']:,}", shown)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    rest = "  ".join(f"{text:>{width}}" for text, width in zip(row[1:], widths[1:], strict=True))
    return f"{row[0]:<{widths[0]}}  {rest}"
