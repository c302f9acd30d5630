"""`garra devices`: which devices may connect, and which ask to."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.target import Target
from garra.core.errors import NotFound, UserError
from garra.faces.cli import output, parsing, place

SCOPES = ("operator.admin", "operator.pairing")


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    target = place.here().target(parsing.wanted(asked))
    actions = {
        "list": _list,
        "approve": _approve,
        "reject": _reject,
        "revoke": _revoke,
        "rotate": _rotate,
        "remove": _remove,
    }
    return actions[asked.action or "list"](target, asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("devices", "Which devices may connect to the gateway, and which ask to.")
    common = argparse.ArgumentParser(add_help=False)
    parsing.with_target(parsing.with_json(common))
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    listed = actions.add_parser("list", parents=[common], help="what is paired and what waits")
    del listed
    for name, about in (("approve", "let a waiting device in"), ("reject", "turn a waiting device away")):
        each = actions.add_parser(name, parents=[common], help=about)
        each.add_argument("request", nargs="?", default="", help="its request id")
        each.add_argument("--latest", action="store_true", help="show the newest one, to be named")
    for name, about in (("revoke", "take a device's token back"), ("rotate", "give a device a new token")):
        each = actions.add_parser(name, parents=[common], help=about)
        each.add_argument("device", nargs="?", default="", help="its device id")
        each.add_argument("--device", dest="named", default="", help=argparse.SUPPRESS)
        each.add_argument("--role", default="operator", help="operator or node (operator)")
    each = actions.add_parser("remove", parents=[common], help="forget a device")
    each.add_argument("device", help="its device id")
    for missing in ("json", "url", "token", "password"):
        parser.set_defaults(**{missing: False if missing == "json" else ""})
    return parser


def _call(target: Target, method: str, params: Mapping[str, Any]) -> Any:
    return quick.call(target, method, params, scopes=SCOPES)


def _list(target: Target, asked: argparse.Namespace) -> int:
    found = _call(target, "device.pair.list", {})
    if asked.json:
        output.say_json(found)
        return 0
    waiting, paired = found.get("pending") or [], found.get("paired") or []
    if waiting:
        output.say(f"{len(waiting)} waiting:")
        output.say(output.table([_waiting(row) for row in waiting], ("request", "device", "asks for", "from")))
        output.say("Let one in with: garra devices approve REQUEST\n")
    if paired:
        output.say(output.table([_paired(row) for row in paired], ("device", "name", "role", "rights")))
    if not waiting and not paired:
        output.say("No device is paired, and none waits.")
    return 0


def _waiting(row: Mapping[str, Any]) -> tuple[str, ...]:
    scopes = ", ".join(row.get("scopes") or row.get("requestedScopes") or ())
    name = str(row.get("displayName") or row.get("clientId") or str(row.get("deviceId", ""))[:12])
    return str(row.get("requestId", "")), name, scopes or str(row.get("role", "")), str(row.get("remoteIp") or "here")


def _paired(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = str(row.get("operatorLabel") or row.get("displayName") or row.get("clientId") or "")
    roles = ", ".join(row.get("roles") or [str(row.get("role", ""))])
    return str(row.get("deviceId", "")), name, roles, ", ".join(row.get("scopes") or ())


def _approve(target: Target, asked: argparse.Namespace) -> int:
    return _decide(target, asked, "approve", "let in")


def _reject(target: Target, asked: argparse.Namespace) -> int:
    return _decide(target, asked, "reject", "turned away")


def _decide(target: Target, asked: argparse.Namespace, verb: str, done: str) -> int:
    if not asked.request:
        waiting = _call(target, "device.pair.list", {}).get("pending") or []
        if not waiting:
            raise NotFound("no device waits")
        newest = max(waiting, key=lambda row: row.get("ts") or row.get("requestedAtMs") or 0)
        output.say(output.table([_waiting(newest)], ("request", "device", "asks for", "from")))
        output.note(f"garra: name it: garra devices {verb} {newest.get('requestId')}")
        return 1
    answer = _call(target, f"device.pair.{verb}", {"requestId": asked.request})
    return _tell(answer, asked, f"{asked.request} is {done}.")


def _device(asked: argparse.Namespace) -> str:
    device = str(asked.device or asked.named)
    if not device:
        raise UserError("which device? garra devices list shows their ids")
    return device


def _revoke(target: Target, asked: argparse.Namespace) -> int:
    device = _device(asked)
    answer = _call(target, "device.token.revoke", {"deviceId": device, "role": asked.role})
    return _tell(answer, asked, f"The token of {device} is taken back.")


def _rotate(target: Target, asked: argparse.Namespace) -> int:
    device = _device(asked)
    answer = _call(target, "device.token.rotate", {"deviceId": device, "role": asked.role})
    return _tell(answer, asked, f"{device} has a new token.")


def _remove(target: Target, asked: argparse.Namespace) -> int:
    answer = _call(target, "device.pair.remove", {"deviceId": asked.device})
    return _tell(answer, asked, f"{asked.device} is forgotten.")


def _tell(answer: Any, asked: argparse.Namespace, words: str) -> int:
    if asked.json:
        output.say_json(answer)
    else:
        output.say(words)
    return 0
