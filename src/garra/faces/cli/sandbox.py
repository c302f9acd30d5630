"""`garra sandbox`: how an agent's commands are shut in, in words; and its containers, where an engine is set.

A sandbox is made for one command and ends with it, so that those that stand are those of commands that run. Ending them
ends these commands; it also forgets what `docker.setupCommand` made, which the next command makes anew.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

GONE = "No sandbox stands: each command has one of its own, which ends with it."


def run(arguments: Sequence[str]) -> int:
    asked, here = _parser().parse_args(list(arguments)), place.here()
    steps = {"explain": _explain, "list": _list, "recreate": _recreate}
    return steps[asked.doing](here, asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("sandbox", "How the commands of an agent are shut in.")
    common = parsing.with_json(argparse.ArgumentParser(add_help=False))
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND", required=True)
    explaining = doing.add_parser(
        "explain", parents=[common], help="what holds for an agent's commands, and where from"
    )
    explaining.add_argument("--session", default="", metavar="KEY", help="in this session, such as main")
    explaining.add_argument("--agent", default="", metavar="ID", help="the agent, where the session does not say")
    listing = doing.add_parser("list", parents=[common], help="the sandboxes that stand")
    listing.add_argument("--browser", action="store_true", help=argparse.SUPPRESS)
    again = doing.add_parser("recreate", parents=[common], help="end those that stand, so that new settings hold")
    again.add_argument("--all", action="store_true", help="of all agents")
    again.add_argument("--session", default="", metavar="KEY", help="of one session")
    again.add_argument("--agent", default="", metavar="ID", help="of one agent")
    for name in ("--browser", "--force"):
        again.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    return parser


def _list(here: Place, asked: argparse.Namespace) -> int:
    load, containers = importlib.import_module("garra.config.load"), importlib.import_module("garra.app.containers")
    config = load.load(here.paths, here.env).config
    found: list[dict[str, Any]] = []
    if not asked.browser:
        found = asyncio.run(containers.listed(containers.Asking(config, here.paths, here.env)))
    if asked.json:
        output.say_json({"containers": found, "browsers": []})
        return 0
    if not found:
        output.say(GONE)
        return 0
    output.say(
        output.table([_told(row) for row in found], ("container", "engine", "state", "for", "image", "settings"))
    )
    return 0


def _told(row: Mapping[str, Any]) -> tuple[str, ...]:
    state = "runs" if row["running"] else "has ended"
    settings = "as they are now" if row["configMatch"] else "older ones: garra sandbox recreate"
    told = (row["containerName"], row["backendId"], state, row["sessionKey"], row["image"], settings)
    return tuple(output.harmless(each) for each in told)


def _recreate(here: Place, asked: argparse.Namespace) -> int:
    if sum(map(bool, (asked.all, asked.session, asked.agent))) != 1:
        raise UserError("say which: one of --all, --session KEY, --agent ID")
    load, containers = importlib.import_module("garra.config.load"), importlib.import_module("garra.app.containers")
    config = load.load(here.paths, here.env).config
    by = "all" if asked.all else "session" if asked.session else "agent"
    gone: list[str] = []
    failed: list[str] = []
    if not asked.browser:
        wanted = containers.Wanted(by, asked.session or asked.agent)
        gone, failed = asyncio.run(containers.removed(containers.Asking(config, here.paths, here.env), wanted))
    if asked.json:
        output.say_json({"removed": gone, "failed": failed})
        return int(bool(failed))
    for name in gone:
        output.say(f"removed {output.harmless(name)}")
    for name in failed:
        output.note(f"not removed: {output.harmless(name)}")
    words = "" if gone or failed else f"{GONE} "
    output.say(f"{words}New settings hold from the next command on.")
    return int(bool(failed))


def _explain(here: Place, asked: argparse.Namespace) -> int:
    load = importlib.import_module("garra.config.load")
    fencing = importlib.import_module("garra.runs.fencing")
    config = load.load(here.paths, here.env).config
    told: Mapping[str, Any] = fencing.told(config, here.paths, asked.session, asked.agent)
    if asked.json:
        output.say_json(told)
        return 0
    output.say(output.table([(name, output.harmless(text)) for name, text in fencing.rows(told)], ("what", "how")))
    return 0
