"""`garra pairing`: strangers who wrote to a chat account, and letting them in. Works without a gateway too."""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.characters import escaped, quoted
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

SCOPES = ("operator.admin", "operator.pairing")


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    doing = {"list": _list, "approve": _approve, "dismiss": _dismiss, "revoke": _revoke}
    return doing[asked.doing or "list"](place.here(), asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("pairing", "Strangers who wrote to a chat account: who they are, and letting them in.")
    common = parsing.with_target(parsing.with_json(argparse.ArgumentParser(add_help=False)))
    common.add_argument("--account", default="", metavar="ID", help="only this account of the channel")
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND")
    listing = _step(doing, "list", "who waits to be let in, and who was", common)
    listing.add_argument("channel", nargs="?", default="", metavar="CHANNEL", help="such as telegram; all without it")
    first = "The first who is let in this way becomes the agent's owner (commands.ownerAllowFrom)."
    approving = _step(doing, "approve", "let in whoever was given this code", common, more=first)
    approving.usage = f"{approving.prog} [OPTIONS] CHANNEL CODE"
    approving.add_argument("channel", nargs="?", default="", metavar="CHANNEL", help="such as telegram")
    approving.add_argument("code", nargs="?", default="", metavar="CODE", help="what the stranger was given")
    approving.add_argument("--notify", action="store_true", help="tell them, in their chat")
    for name, about in (
        ("dismiss", "forget a request; its sender may ask again"),
        ("revoke", "let somebody in no more; they are no longer the owner either, where an approval made them that"),
    ):
        each = _step(doing, name, about, common)
        each.add_argument("channel", metavar="CHANNEL", help="the channel, such as telegram")
        each.add_argument("sender", metavar="ID", help="the sender's id, as `garra pairing list` shows it")
    parser.set_defaults(json=False, url="", token="", password="", account="", channel="")
    return parser


def _step(
    doing: Any, name: str, about: str, parent: argparse.ArgumentParser, *, more: str = ""
) -> argparse.ArgumentParser:
    words = f"{about[0].upper()}{about[1:]}. {more}".strip()
    made: argparse.ArgumentParser = doing.add_parser(name, parents=[parent], help=about, description=words)
    return made


def _ask(here: Place, asked: argparse.Namespace, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The gateway's answer; where none runs, that of the stores themselves."""
    wanted = {name: value for name, value in params.items() if value != ""}
    try:
        answer: dict[str, Any] = quick.call(here.target(parsing.wanted(asked)), method, wanted, scopes=SCOPES)
    except Unreachable:
        if here.holder or asked.url:
            raise
        offline = importlib.import_module("garra.app.pairing")  # opens the database; only where no gateway does
        answer = asyncio.run(offline.answer(here.paths, here.env, method, wanted))
    return answer


def _list(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "channels.pairing.list", {"channel": asked.channel, "accountId": asked.account})
    if asked.json:
        output.say_json(found)
        return 0
    waiting, people = found.get("requests") or [], found.get("people") or []
    if waiting:
        heads = ("channel", "account", "id", "name", "code", "until")
        output.say(output.table([_waiting(row) for row in waiting], heads))
        output.say(f"Let one in with: {here.command} pairing approve CHANNEL CODE")
    if waiting and people:
        output.say()
    if people:
        rows = [(row["channel"], row["accountId"], escaped(row["senderId"]), _named(row.get("name"))) for row in people]
        output.say(output.table(rows, ("channel", "account", "let in", "name")))
    if not waiting and not people:
        output.say("Nobody waits to be let in, and nobody was.")
    return 0


def _named(name: object) -> str:
    """What somebody calls themselves, in quotes: it may look like an id, or like another row."""
    return quoted(str(name)) if name else ""


def _waiting(row: Mapping[str, Any]) -> tuple[str, ...]:
    name = _named((row.get("metadata") or {}).get("name"))
    until = str(row["expiresAt"])[11:16]
    return row["channel"], row["accountId"], escaped(row["senderId"]), name, str(row.get("code", "")), f"{until} UTC"


def _approve(here: Place, asked: argparse.Namespace) -> int:
    if not asked.code:
        raise UserError(f"it reads: {here.command} pairing approve CHANNEL CODE")
    params = {
        "channel": asked.channel,
        "accountId": asked.account,
        "code": asked.code,
        "notify": asked.notify,
        "bootstrapCommandOwner": True,
    }
    answer = _ask(here, asked, "channels.pairing.approve", params)
    if asked.json:
        output.say_json(answer)
        return 0
    output.say(f"{answer['senderId']} may write to the agent on {asked.channel} now.")
    if answer["commandOwnerBootstrap"] == "configured":
        output.say("They are its owner, too: the first who was let in (commands.ownerAllowFrom).")
    if answer["notification"] in ("failed", "unsupported"):
        output.note("garra: they could not be told; tell them yourself")
    return 0


def _dismiss(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "channels.pairing.list", {"channel": asked.channel, "accountId": asked.account})
    rows = [row for row in found.get("requests") or [] if row["senderId"] == asked.sender]
    if not rows:
        raise UserError(f"no request of {asked.sender} waits at {asked.channel}")
    params = {"channel": asked.channel, "accountId": rows[0]["accountId"], "requestId": rows[0]["requestId"]}
    return _told(asked, _ask(here, asked, "channels.pairing.dismiss", params), "The request is forgotten.")


def _revoke(here: Place, asked: argparse.Namespace) -> int:
    params = {"channel": asked.channel, "accountId": asked.account, "senderId": asked.sender}
    answer = _ask(here, asked, "channels.pairing.revoke", params)
    words = f"{asked.sender} may not write to the agent on {asked.channel} any more."
    if answer.get("commandOwner") == "removed":
        words += "\nThey are no longer its owner either (commands.ownerAllowFrom)."
    for path in answer.get("stillListed") or ():
        words += f"\nBut {path} still names them; change it with: {here.command} config set {path} '[…]'"
    return _told(asked, answer, words)


def _told(asked: argparse.Namespace, answer: Any, words: str) -> int:
    if asked.json:
        output.say_json(answer)
    else:
        output.say(words)
    return 0
