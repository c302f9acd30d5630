"""`garra sandbox`: how an agent's commands are shut in, in words; and the sandboxes that stand: none ever does.

A sandbox is made for one command and ends with it, so there is nothing to list or to make anew: both say so, for
programs that ask.
"""

from __future__ import annotations

import argparse
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
    output.say_json({"containers": [], "browsers": []}) if asked.json else output.say(GONE)
    return 0


def _recreate(here: Place, asked: argparse.Namespace) -> int:
    if sum(map(bool, (asked.all, asked.session, asked.agent))) != 1:
        raise UserError("say which: one of --all, --session KEY, --agent ID")
    words = f"{GONE} New settings hold from the next command on."
    output.say_json({"removed": [], "failed": []}) if asked.json else output.say(words)
    return 0


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
