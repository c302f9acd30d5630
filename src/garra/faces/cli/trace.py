"""`garra trace`: where the time of a turn went, as bars and words; without a name, the newest turns."""

from __future__ import annotations

import argparse
import datetime
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from garra.client import quick
from garra.client.target import Target
from garra.core.errors import NotFound
from garra.faces.cli import output, parsing, place

READ: Final = ("operator.read",)
BAR: Final = 24
NAME: Final = 26
NARROW: Final = 60
WIDE: Final = 120
HEADS: Final = ("run", "when", "took", "how", "calls", "tools", "tokens", "conversation")
SHORT: Final = 14
HOW: Final = {"ok": "answered", "silent": "said nothing", "error": "failed", "aborted": "stopped", "timeout": "time up"}
LEVELS: Final = {
    "transport": "the server's own wait was over",
    "operation": "tried again",
    "profile": "next login",
    "model": "next model",
}


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when shown, 1 when there is no such trace, 2 when the command line is wrong."""
    parser = parsing.with_target(
        parsing.with_json(parsing.parser("trace", "Where the time of one turn went; without a name, the newest turns."))
    )
    parser.add_argument("name", nargs="?", metavar="RUN|MESSAGE", help="a run's id or a message's, or its beginning")
    parser.add_argument("--session", metavar="KEY", help="of the list: only this conversation's turns")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="of the list: at most N (20)")
    asked = parser.parse_args(list(arguments))
    target = place.here().target(parsing.wanted(asked))
    found = _one(target, asked.name) if asked.name else _newest(target, asked)
    if asked.json:
        output.say_json(found)
        return 0
    width = max(NARROW, min(WIDE, shutil.get_terminal_size((80, 24)).columns))
    output.say("\n".join(shown(found, width)) if asked.name else listed(found["traces"]))
    return 0


def _one(target: Target, name: str) -> dict[str, Any]:
    """By a run's id first, then by a message's. Raises NotFound."""
    try:
        found: dict[str, Any] = quick.call(target, "trace.get", {"runId": name}, scopes=READ)
    except NotFound:
        found = quick.call(target, "trace.get", {"messageId": name}, scopes=READ)
    return found


def _newest(target: Target, asked: argparse.Namespace) -> dict[str, Any]:
    params = {"limit": asked.limit, **({"sessionKey": asked.session} if asked.session else {})}
    found: dict[str, Any] = quick.call(target, "trace.list", params, scopes=READ)
    return found


def listed(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line for each turn."""
    if not rows:
        return "No turn yet. Each is kept from its first step on, the newest two thousand."
    cells = [
        (
            str(row["runId"])[:SHORT],
            _clock(row["startMs"]),
            span(row["durationMs"]) if row["endMs"] else "runs",
            HOW.get(row["outcome"], row["outcome"]),
            str(row["modelRequests"]),
            str(row["toolCalls"]),
            f"{row['tokens']:,}",
            str(row["sessionKey"]),
        )
        for row in rows
    ]
    return output.table(cells, HEADS)


def shown(found: Mapping[str, Any], width: int) -> Iterator[str]:
    """The turn in a line, then a bar for each step."""
    spans: Sequence[Mapping[str, Any]] = found["spans"]
    whole = spans[0]
    start, end = whole["startMs"], whole["endMs"] or max(each["endMs"] or each["startMs"] for each in spans)
    yield from _head(found, start, end)
    depth = _depths(spans)
    for each in spans[1:]:
        name = f"{'  ' * (depth[each['id']] - 1)}{output.harmless(str(each['name']))}"
        yield _line(each, f"{_cut(name, NAME):<{NAME}}", start, end, width=width)


def _head(found: Mapping[str, Any], start: int, end: int) -> Iterator[str]:
    how = HOW.get(found["outcome"], found["outcome"])
    why = f" ({found['failure']})" if found.get("failure") else ""
    took = span(end - start) if found["endMs"] else f"{span(end - start)} so far"
    yield f"{output.harmless(found['runId'])}: {how}{why} in {took}, {_clock(start)}"
    models = ", ".join(found["models"]) or "no model"
    yield f"{output.harmless(found['sessionKey'])} · {output.harmless(models)} · {found['tokens']:,} tokens"
    if found.get("ledBy"):
        yield f"Taken along by {found['ledBy']}: garra trace {found['ledBy']} has the rest."
    yield ""


def _line(each: Mapping[str, Any], name: str, start: int, end: int, *, width: int) -> str:
    began, ended = each["startMs"], each["endMs"]
    bar = drawn(began - start, (ended if ended is not None else end) - start, end - start, BAR)
    took = span(ended - began) if ended is not None else "runs"
    line = f"{name} {bar} {took:>7}"
    more = _more(each)
    room = width - len(line) - 2
    return f"{line}  {_cut(more, room)}" if more and room > 3 else line


def drawn(began: int, ended: int, whole: int, width: int) -> str:
    """A bar of `width` columns on which a step takes its share; the shortest is seen too."""
    whole = max(1, whole)
    first = min(width - 1, began * width // whole)
    last = max(first + 1, min(width, -(-ended * width // whole)))
    mark = "▏" if ended <= began else "█" * (last - first)
    return f"{' ' * first}{mark}".ljust(width, "·").replace(" ", "·")


def _more(each: Mapping[str, Any]) -> str:
    """What else is to be said of a step, in words."""
    about: Mapping[str, Any] = each["attributes"]
    match each["kind"]:
        case "model":
            return _model(about)
        case "tool" | "approval":
            return "" if about["result"] == "ok" else str(about["result"])
        case "compaction":
            return f"{about['before']:,} → {about['after']:,} tokens"
        case "send":
            again = f", try {about['try']}" if about["try"] > 1 else ""
            return f"{'confirmed' if about.get('confirmed') else about['result']}{again} · {about['channel']}"
        case "inbox" if each["name"] == "received":
            return str(about["channel"])
        case _:
            return ""


def _model(about: Mapping[str, Any]) -> str:
    given = about["inputTokens"] + about["cacheReadTokens"] + about["cacheWriteTokens"]
    words = [about["result"]] if about["result"] != "success" else [f"{given:,}→{about['outputTokens']:,}"]
    if about.get("firstTokenMs") is not None and about["result"] == "success":
        words.append(f"first {span(about['firstTokenMs'])}")
    if about["level"] in LEVELS:
        words.append(LEVELS[about["level"]])
    return ", ".join(words)


def _depths(spans: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    parents = {each["id"]: each["parent"] for each in spans}

    def depth(name: str) -> int:
        above = parents.get(name)
        return 0 if not above else 1 + depth(above)

    return {name: depth(name) for name in parents}


def span(ms: int | None) -> str:
    """A stretch of time, short."""
    if ms is None:
        return "?"
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 60_000 else f"{ms // 60_000} min {ms % 60_000 // 1000:02d}"


def _clock(ms: int) -> str:
    return datetime.datetime.fromtimestamp(ms / 1000).astimezone().strftime("%m-%d %H:%M:%S")


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"
