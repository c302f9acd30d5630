"""`garra messages`: what came in, what went out, and the story of each message."""

from __future__ import annotations

import argparse
import datetime
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.target import Target
from garra.faces.cli import output, parsing, place
from garra.faces.cli.messages_words import fate

READ = ("operator.read",)
WRITE = ("operator.read", "operator.write")
SHORT = 18
"""Letters of an id that a list shows at least; more where two begin alike."""
CHAT = 32
WIDE = 120
"""Columns of a list that goes to no terminal."""
REASONS = 5
HEADS = ("id", "when", "", "state", "chat", "text")
STATES = ("pending", "claimed", "adopted", "done", "sending", "sent", "unsure", "dead")

MEANINGS = {
    ("in", "pending"): "stored; it waits to be taken up",
    ("in", "claimed"): "it is being looked at",
    ("in", "adopted"): "a run is working on it",
    ("in", "done"): "finished",
    ("in", "dead"): "given up; its owner may retry or drop it",
    ("out", "pending"): "stored; it waits to be sent",
    ("out", "sending"): "with the platform; no word from it yet",
    ("out", "sent"): "the platform confirmed it",
    ("out", "unsure"): "sent, unconfirmed: it may have arrived, so it is not sent again by itself",
    ("out", "dead"): "given up; its owner may retry or drop it",
}


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when done, 1 when something could not be done, 2 when the command line is wrong."""
    words = list(arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words.insert(0, "list")
    asked = _parser().parse_args(words)
    target = place.here().target(parsing.wanted(asked))
    code: int = asked.step(target, asked)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("messages", "What came in, what went out, and the story of each message.")
    common = argparse.ArgumentParser(add_help=False)
    parsing.with_target(parsing.with_json(common))
    steps = parser.add_subparsers(metavar="COMMAND", required=True)
    rows = steps.add_parser(
        "list",
        parents=[common],
        help="the messages, newest first",
        description="The messages of every channel, newest first: ← came in, → goes out.\n"
        "Of an id the beginning is shown; it is enough for show, retry and drop.",
        epilog=_states(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rows.set_defaults(step=_list)
    rows.add_argument("--in", dest="direction", action="store_const", const="in", help="only what came in")
    rows.add_argument("--out", dest="direction", action="store_const", const="out", help="only what went out")
    rows.add_argument("--state", choices=STATES, help="only those in this state")
    rows.add_argument("--channel", default="", help="only this channel's")
    rows.add_argument("--account", default="", help="only this account's")
    rows.add_argument("--chat", default="", help="only this chat's")
    rows.add_argument("--limit", type=int, default=50, metavar="N", help="at most N (50)")
    for name, step, about in (
        ("show", _show, "one message: its words, its state and every station of its way"),
        ("retry", _change, "try a dead or unsure message again"),
        ("drop", _change, "give a message up"),
    ):
        each = steps.add_parser(name, parents=[common], help=about, description=f"{about[0].upper()}{about[1:]}.")
        each.set_defaults(step=step, action=name)
        each.add_argument("id", metavar="ID", help="its id, or a beginning that only one has")
    return parser


def _states() -> str:
    """Every state with what it means, for the help."""
    titles = {"in": "What came in is", "out": "What goes out is"}
    lines = [
        line
        for way, title in titles.items()
        for line in (title, *(f"  {state:<8} {words}" for (of, state), words in MEANINGS.items() if of == way))
    ]
    return "\n".join(lines)


def _list(target: Target, asked: argparse.Namespace) -> int:
    wanted = {
        "direction": asked.direction,
        "state": asked.state,
        "channel": asked.channel,
        "accountId": asked.account,
        "chat": asked.chat,
        "limit": asked.limit,
    }
    params = {name: value for name, value in wanted.items() if value}
    found = quick.call(target, "messages.list", params, scopes=READ)
    if asked.json:
        output.say_json(found)
        return 0
    for counts in found.get("unfinished", ()):
        output.say(_counted(counts))
    if not found["messages"]:
        output.say("No message.")
    else:
        output.say(listed(found["messages"], _width()))
        _troubles(found["messages"])
    return 0


def listed(rows: Sequence[Mapping[str, Any]], width: int) -> str:
    """The rows as a table no wider than `width`, where the chats' ids let it; what is cut ends in `…`."""
    ids = beginnings([str(row["id"]) for row in rows])
    cells = [_line(row, name) for row, name in zip(rows, ids, strict=True)]
    beside = [max(len(line[at]) for line in [*cells, HEADS]) + 2 for at in range(len(HEADS) - 1)]
    room = max(20, width - sum(beside))
    return output.table([(*line[:-1], cut(line[-1], room)) for line in cells], HEADS)


def beginnings(names: Sequence[str]) -> list[str]:
    """For each name the shortest beginning, of SHORT letters at least, that no other of them has."""
    whole = set(names)
    return [
        next(
            (name[:end] for end in range(SHORT, len(name)) if sum(each.startswith(name[:end]) for each in whole) == 1),
            name,
        )
        for name in names
    ]


def cut(text: str, room: int) -> str:
    """Words on one line of so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= room else line[: room - 1] + "…"


def _width() -> int:
    return shutil.get_terminal_size().columns if os.isatty(1) else WIDE


def _troubles(rows: Sequence[Mapping[str, Any]]) -> None:
    """Why those that ended badly did, once for each reason, and what their owner may do."""
    bad = [
        row for row in rows if row["state"] in ("dead", "unsure") or (row["state"] == "pending" and row.get("reason"))
    ]
    reasons = list(dict.fromkeys(f"{row['state']}: {row['reason']}" for row in bad if row.get("reason")))
    if bad:
        output.say()
    for reason in reasons[:REASONS]:
        output.say(output.harmless(" ".join(reason.split())))
    if bad:
        output.say("All of one: garra messages show ID. Once mended: garra messages retry ID, or drop ID.")


def _counted(counts: Mapping[str, Any]) -> str:
    """`telegram (default): 2 in pending, 1 out unsure`."""
    states = (f"{count} {state.replace('.', ' ')}" for state, count in counts.items() if isinstance(count, int))
    return f"{counts['channel']} ({counts['accountId']}): {', '.join(states)}"


def _line(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    sign = "→" if row["direction"] == "out" else "←"
    text = str(row.get("text") or row.get("reason") or "")
    return name, _when(row["at"]), sign, str(row["state"]), cut(_chat(row), CHAT), text


def _show(target: Target, asked: argparse.Namespace) -> int:
    found = quick.call(target, "messages.get", {"id": asked.id}, scopes=READ)
    if asked.json:
        output.say_json(found)
        return 0
    if told := fate(found["message"], found["answers"], found["timeline"]):
        output.say(output.harmless(told) + "\n")
    for row in (found["message"], *found["answers"]):
        output.say("\n".join(_whole(row)) + "\n")
    for station in found["timeline"]:
        detail = f" ({output.harmless(station['detail'])})" if station.get("detail") else ""
        output.say(f"{_when(station['at'], exact=True)}  {station['station']:<9} {station['words']}{detail}")
    return 0


def _whole(row: Mapping[str, Any]) -> list[str]:
    came = row["direction"] == "in"
    sender = row.get("sender") or {}
    who = f" from {sender.get('name') or sender.get('id')}" if came and sender else ""
    head = f"{'Came in' if came else 'Went out' if row['state'] == 'sent' else 'To go out'}: {_chat(row)}{who}"
    state = f"{row['state']}: {MEANINGS.get((row['direction'], row['state']), '')}"
    reason = [f"  why      {row['reason']}"] if row.get("reason") else []
    proof = [f"  platform {row['platformId']}"] if row.get("platformId") else []
    tries = [f"  tries    {row['tries']}"] if row.get("tries") else []
    text = [f"  text     {str(row.get('text') or '').replace(chr(10), chr(10) + ' ' * 11)}"]
    session = [f"  session  {row['sessionKey']}"] if row.get("sessionKey") else []
    lines = [head, f"  id       {row['id']}", f"  state    {state}", *reason, *tries, *proof, *session, *text]
    return [output.harmless(line) for line in lines]


def _change(target: Target, asked: argparse.Namespace) -> int:
    found = quick.call(target, f"messages.{asked.action}", {"id": asked.id}, scopes=WRITE)
    if asked.json:
        output.say_json(found)
    else:
        done = "is tried again" if asked.action == "retry" else "is dropped"
        output.say(f"{found['message']['id']} {done}.")
    return 0


def _chat(row: Mapping[str, Any]) -> str:
    thread = f"/{row['thread']}" if row.get("thread") else ""
    return f"{row.get('channel') or '?'}:{row.get('chat') or '?'}{thread}"


def _when(at_ms: int, *, exact: bool = False) -> str:
    then = datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC).astimezone()
    return f"{then:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03}" if exact else f"{then:%m-%d %H:%M:%S}"
