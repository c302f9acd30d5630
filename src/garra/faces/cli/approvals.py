"""`garra approvals`: what waits for a person, answering it, and what may run unasked. Works without a gateway too."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core import execrules
from garra.core.characters import escaped
from garra.core.errors import Forbidden, UserError
from garra.faces.cli import approvals_lines as lines
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

SCOPES = ("operator.admin", "operator.approvals")
CHOICES = ("allow-once", "allow-always", "deny")
CHANGES = frozenset({"set", "approve", "deny", "resolve", "revoke", "allowlist"})
"""What an agent's own command may not do."""


def run(arguments: Sequence[str]) -> int:
    asked = _parser().parse_args(list(arguments))
    here, doing = place.here(), asked.doing or "list"
    if doing in CHANGES and here.agents:
        raise Forbidden("an agent may not answer its own questions: a person does, in another terminal")
    if getattr(asked, "node", ""):
        raise UserError("no node keeps approvals of its own here: leave --node out")
    steps = {
        "list": _list, "pending": _list, "show": _show, "get": _get, "set": _set, "approve": _approve, "deny": _deny,
        "resolve": _resolve, "history": _history, "grants": _grants, "revoke": _revoke, "allowlist": _allowlist,
    }  # fmt: skip
    return steps[doing](here, asked)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("approvals", "What agents ask people: see it, answer it, and say what may run unasked.")
    common = parsing.with_target(parsing.with_json(argparse.ArgumentParser(add_help=False)))
    common.add_argument("--gateway", action="store_true", help=argparse.SUPPRESS)
    common.add_argument("--node", default="", help=argparse.SUPPRESS)
    common.add_argument("--timeout", default="", help=argparse.SUPPRESS)
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND")

    def step(name: str, about: str) -> argparse.ArgumentParser:
        words = f"{about[0].upper()}{about[1:]}."
        made: argparse.ArgumentParser = doing.add_parser(name, parents=[common], help=about, description=words)
        return made

    step("list", "what waits for an answer")
    step("pending", "the same as list")
    step("show", "one question, whole").add_argument(
        "id", metavar="ID", help="the question, or the beginning of its id"
    )
    _answering(step)
    step("get", "the document of what may run unasked")
    setting = step("set", "replace that document")
    setting.add_argument("--file", default="", metavar="F", help="a file with it, as JSON or JSON5")
    setting.add_argument("--stdin", action="store_true", help="read it from standard input")
    past = step("history", "what was asked and answered, newest first")
    past.add_argument("--limit", type=int, default=20, metavar="N", help="so many, at most 100 (default 20)")
    granted = step("grants", "what was allowed for longer than once")
    granted.add_argument("what", nargs="*", metavar="list | revoke ID", help="list them, or take some back")
    step("revoke", "let what a grant allowed pass no more").add_argument(
        "id", metavar="ID", help="the grant, or the beginning of its id"
    )
    listed = step("allowlist", "list, add or remove programs that may run unasked")
    listed.add_argument(
        "what",
        nargs="?",
        default="list",
        choices=("list", "add", "remove"),
        help="list the entries, add one, remove one",
    )
    listed.add_argument(
        "pattern", nargs="?", default="", metavar="PATTERN", help="a program's path; * and ** stand for any part of it"
    )
    listed.add_argument("--agent", default="*", metavar="ID", help="for this agent only (default: for all)")
    parser.set_defaults(json=False, url="", token="", password="")
    return parser


def _answering(step: Any) -> None:
    approving = step("approve", "allow it, once")
    approving.add_argument("id", metavar="ID", help="as `list` shows it; its beginning is enough")
    approving.add_argument("--always", action="store_true", help="and from now on what `list` says with it")
    approving.add_argument("--days", type=int, default=0, metavar="N", help="with --always: for N days only")
    denying = step("deny", "forbid it")
    denying.add_argument("id", metavar="ID", help="the question, or the beginning of its id")
    denying.add_argument("why", nargs="*", metavar="WHY", help="what the model is told, in words")
    denying.add_argument("--reason", default="", help="the same")
    resolving = step("resolve", "answer it, in the words of the protocol")
    resolving.add_argument("id", metavar="ID", help="the question, or the beginning of its id")
    resolving.add_argument("decision", choices=CHOICES, help="the answer")
    resolving.add_argument("--reason", default="", help="what the model is told, with deny")
    resolving.add_argument(
        "--expires-in-days",
        type=int,
        default=0,
        dest="days",
        metavar="N",
        help="end an allow-always after so many days",
    )


def _ask(here: Place, asked: argparse.Namespace, method: str, params: Mapping[str, Any]) -> Any:
    """The gateway's answer; where none runs, that of the stores themselves."""
    wanted = {name: value for name, value in params.items() if value not in ("", 0, None)}
    try:
        return quick.call(here.target(parsing.wanted(asked)), method, wanted, scopes=SCOPES)
    except Unreachable:
        if here.holder or asked.url:
            raise
        offline = importlib.import_module(
            "garra.app.approvals_offline"
        )  # opens the database; only where no gateway does
        return asyncio.run(offline.answer(here.paths, method, wanted))


def _pending(here: Place, asked: argparse.Namespace) -> list[dict[str, Any]]:
    methods = ("exec.approval.list", "plugin.approval.list")
    return [row for method in methods for row in _ask(here, asked, method, {})]


def _list(here: Place, asked: argparse.Namespace) -> int:
    waiting = _pending(here, asked)
    if asked.json:
        output.say_json({"approvals": [lines.plain(row) for row in waiting]})
    elif waiting:
        for row in waiting:
            output.say(lines.question(row))
        output.say(f"Answer with: {here.command} approvals approve ID, or deny ID")
    else:
        output.say("Nothing waits for an answer.")
    return 0


def _show(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "exec.approval.get", {"id": asked.id})
    if asked.json:
        output.say_json(found)
    else:
        output.say(lines.whole(found))
    return 0


def _approve(here: Place, asked: argparse.Namespace) -> int:
    return _decided(here, asked, "allow-always" if asked.always else "allow-once")


def _deny(here: Place, asked: argparse.Namespace) -> int:
    asked.days, asked.reason = 0, asked.reason or " ".join(asked.why)
    return _decided(here, asked, "deny")


def _resolve(here: Place, asked: argparse.Namespace) -> int:
    return _decided(here, asked, asked.decision)


def _decided(here: Place, asked: argparse.Namespace, choice: str) -> int:
    """Answer; a yes is for what is shown here, whole."""
    shown = _ask(here, asked, "approval.get", {"id": asked.id})["approval"]
    if choice != "deny" and shown["status"] == "pending" and not asked.json:
        output.say(lines.whole(_ask(here, asked, "exec.approval.get", {"id": shown["id"]})))
    params = {
        "id": shown["id"],
        "decision": choice,
        "kind": shown["presentation"]["kind"],
        "reason": getattr(asked, "reason", ""),
        "grantExpiresInDays": asked.days,
        "whole": True,
    }
    answer = _ask(here, asked, "approval.resolve", params)
    if asked.json:
        output.say_json(answer)
        return 0
    again = "" if answer["applied"] else "already resolved (same decision): "
    output.say(f"{again}{shown['id'][:8]} {lines.DECIDED[choice]}")
    return 0


def _get(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "exec.approvals.get", {})
    output.say_json(found if asked.json else found["file"])
    return 0


def _set(here: Place, asked: argparse.Namespace) -> int:
    if bool(asked.file) == asked.stdin:
        raise UserError(f"it reads: {here.command} approvals set --file FILE, or --stdin")
    document = _document(asked)
    found = _ask(here, asked, "exec.approvals.get", {})
    return _replaced(here, asked, document, found["hash"])


def _document(asked: argparse.Namespace) -> Any:
    source = asked.file or "standard input"
    try:
        text = Path(asked.file).read_text("utf-8") if asked.file else sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UserError(f"{source} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UserError(f"{source} cannot be read: {error.strerror or error}") from None
    try:
        return json.loads(text)
    except ValueError:
        reader = importlib.import_module("garra.config.include")  # JSON5 is rarer
        try:
            return reader.decode(text)
        except reader.Unreadable as fault:
            raise UserError(f"{source}: {fault.message}") from None


def _replaced(here: Place, asked: argparse.Namespace, document: Any, base_hash: str, *, told: bool = True) -> int:
    answer = _ask(here, asked, "exec.approvals.set", {"file": document, "baseHash": base_hash})
    if asked.json:
        output.say_json(answer)
    elif told:
        agents = ", ".join(answer["file"].get("agents") or {}) or "no agent of its own"
        output.say(f"The approvals are set: for {escaped(agents)}.")
    return 0


def _history(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "approval.history", {"limit": max(1, min(asked.limit, 100))})
    heads, nothing = ("id", "when", "end", "by", "what"), "Nothing was asked in the last thirty days."
    return _rows(asked, found, [lines.past(row) for row in found["items"]], heads=heads, nothing=nothing)


def _rows(
    asked: argparse.Namespace, found: Any, rows: Sequence[Sequence[str]], *, heads: Sequence[str], nothing: str
) -> int:
    """A list as a table, or as it came for scripts."""
    if asked.json:
        output.say_json(found)
    else:
        output.say(output.table([tuple(row) for row in rows], tuple(heads)) if rows else nothing)
    return 0


def _grants(here: Place, asked: argparse.Namespace) -> int:
    words = list(asked.what or ["list"])
    if words[0] == "revoke" and len(words) == 2:
        if here.agents:
            raise Forbidden("an agent may not change what it is allowed")
        asked.id = words[1]
        return _revoke(here, asked)
    if words != ["list"]:
        raise UserError(f"it reads: {here.command} approvals grants [list], or grants revoke ID")
    found = _ask(here, asked, "exec.approval.grants.list", {})
    heads = ("id", "agent", "until", "used", "what passes")
    nothing = "Nothing was allowed for longer than once; programs that may run are in `approvals allowlist`."
    return _rows(asked, found, [lines.grant(row) for row in found["grants"]], heads=heads, nothing=nothing)


def _revoke(here: Place, asked: argparse.Namespace) -> int:
    answer = _ask(here, asked, "exec.approval.grants.revoke", {"grantId": asked.id})
    if asked.json:
        output.say_json(answer)
    else:
        output.say("It is revoked." if answer["outcome"] == "revoked" else "It was revoked before.")
    return 0


def _sure(here: Place, asked: argparse.Namespace) -> None:
    """Raises UserError for a pattern or an agent that cannot be meant."""
    if why := execrules.misread(asked.pattern):
        raise UserError(f"{escaped(asked.pattern)}: {why}")
    known = lines.agents(here.config)
    if asked.agent != "*" and asked.agent.lower() not in known:
        raise UserError(f"there is no agent {escaped(asked.agent)}; there is: {', '.join(map(escaped, known))}")


def _allowlist(here: Place, asked: argparse.Namespace) -> int:
    found = _ask(here, asked, "exec.approvals.get", {})
    if asked.what == "list":
        heads, nothing = ("agent", "program", "arguments"), "No program is listed; what is not listed is asked about."
        return _rows(asked, found, lines.programs(found["file"], asked.agent), heads=heads, nothing=nothing)
    if not asked.pattern:
        raise UserError(f"which program? such as: {here.command} approvals allowlist {asked.what} /usr/bin/rg")
    if asked.what == "add":
        _sure(here, asked)
    document = lines.changed(found["file"], asked.agent, asked.pattern, add=asked.what == "add")
    if document == found["file"]:
        words = lines.unchanged(document, asked.agent, asked.pattern, add=asked.what == "add")
        output.say_json(found) if asked.json else output.say(words)
        return 1 if asked.what == "remove" and lines.lists(document, asked.pattern) else 0
    code = _replaced(here, asked, document, found["hash"], told=False)
    if not asked.json:
        output.say(lines.listed(asked.agent, asked.pattern, add=asked.what == "add"))
    return code
