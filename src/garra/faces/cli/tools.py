"""`garra tools`: which tools an agent has in a session, and why. Works without a gateway too."""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.characters import escaped
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

SCOPES = ("operator.read",)
SESSION = "a session's key, such as agent:main:telegram:group:-100123; without it the agent's own"
OFFERED = {"full": "yes", "byName": "by name"}


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    here = place.here()
    return _explain(here, asked) if asked.doing == "explain" else _list(here, asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("tools", "Which tools an agent has in a session, and which rule took the others.")
    common = parsing.with_target(parsing.with_json(argparse.ArgumentParser(add_help=False)))
    common.add_argument("--session", default="", metavar="KEY", help=SESSION)
    common.add_argument("--agent", default="", metavar="ID", help="the agent, where the session does not say")
    common.add_argument("--sender", default="", metavar="ID", help="the platform's id of whoever writes there")
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND")
    doing.add_parser("list", parents=[common], help="every tool, and whether the session has it")
    explaining = doing.add_parser("explain", parents=[common], help="what each rule says of one tool, which decided")
    explaining.add_argument("name", metavar="NAME", help="the tool, such as exec")
    parser.set_defaults(json=False, url="", token="", password="", session="", agent="", sender="")
    return parser


def _ask(here: Place, asked: argparse.Namespace, method: str, more: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {"sessionKey": asked.session, "agentId": asked.agent, "senderId": asked.sender, **more}
    params = {name: value for name, value in wanted.items() if value}
    try:
        answer: dict[str, Any] = quick.call(here.target(parsing.wanted(asked)), method, params, scopes=SCOPES)
    except Unreachable:
        if here.holder or asked.url:
            raise
        offline = importlib.import_module("garra.app.tooling")  # opens the house; only where no gateway runs
        answer = asyncio.run(offline.answer(here.paths, here.env, method, params))
    return answer


def _list(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "tools.policy", {})
    if asked.json:
        output.say_json(found)
        return 0
    output.say(_whose(found))
    rows = [
        (row["name"], OFFERED.get(row["offered"], "no"), row["source"], row["decidedBy"] or "")
        for row in found["tools"]
    ]
    output.say(output.table(rows, ("tool", "offered", "source", "refused by")))
    output.say(f"Why: {here.command} tools explain NAME{_same(asked)}")
    for line in found["warnings"]:
        output.note(line)
    return 0


def _same(asked: argparse.Namespace) -> str:
    return f" --session {asked.session}" if asked.session else f" --agent {asked.agent}" if asked.agent else ""


def _explain(here: Place, asked: argparse.Namespace) -> int:
    if not asked.name.strip():
        raise UserError("which tool? such as: garra tools explain exec")
    found = _ask(here, asked, "tools.explain", {"name": asked.name.strip()})
    if asked.json:
        output.say_json(found)
        return 0
    output.say(found["words"])
    output.say(_whose(found))
    if found["known"]:
        output.say(output.table([_row(layer) for layer in found["layers"]], ("step", "says", "where", "by")))
    return 0


def _row(layer: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return layer["step"], layer["says"], escaped(layer["source"] or ""), escaped(layer["item"] or "")


def _whose(found: Mapping[str, Any]) -> str:
    at = found["place"]
    if at is None:
        where = "the owner's own screen"
    else:
        kind = "a group" if at["group"] else "a direct chat"
        who = f"{escaped(str(at['senderId'] or 'anybody'))}{', a guest' if at['guest'] else ''}"
        where = f"{kind} of {at['channel']} ({who})"
    model = f", answered by {found['provider']}/{found['model']}" if found["provider"] else ""
    return f"Session {escaped(found['sessionKey'])}, agent {found['agentId']}, from {where}{model}."
