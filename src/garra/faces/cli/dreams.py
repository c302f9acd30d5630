"""`garra memory dream`, `dreams`, `promote`, `promote-explain`, `rem-harness`: what an agent would keep for good."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from garra.core.errors import UserError
from garra.faces.cli import output
from garra.faces.cli.place import Place

ADMIN = ("operator.read", "operator.write", "operator.admin")


class Ask(Protocol):
    """Asks the gateway, or the house where none runs."""

    def __call__(
        self, here: Place, asked: argparse.Namespace, method: str, params: Mapping[str, Any], /, *, scopes: Any = ...
    ) -> dict[str, Any]: ...


def add(steps: Any, common: argparse.ArgumentParser, ask: Ask) -> None:
    """The commands, in the parser of `garra memory`."""
    rises = argparse.ArgumentParser(add_help=False, parents=[common])
    rises.add_argument("--min-score", type=float, metavar="X", help="least score, 0 to 1 (0.75)")
    rises.add_argument("--min-recall-count", type=int, metavar="N", help="met at least N times (3)")
    rises.add_argument("--min-unique-queries", type=int, metavar="N", help="found by N different questions (3)")
    dream = steps.add_parser("dream", parents=[rises], help="look for what is worth keeping, and propose it")
    dream.add_argument("--phase", default="all", choices=("all", "light", "rem", "deep"), help="only this one")
    dream.add_argument("--dry-run", action="store_true", help="write nothing")
    dream.add_argument("--reflect", action="store_true", help="ask a model for some words on the themes")
    dream.add_argument("--limit", type=int, metavar="N", help="at most N lines (10)")
    dream.set_defaults(step=lambda here, asked: _dream(here, asked, ask))
    dreams = steps.add_parser("dreams", parents=[common], help="the proposals: list, show, apply, refuse, undo")
    dreams.add_argument(
        "what",
        nargs="?",
        default="list",
        choices=("list", "show", "apply", "refuse", "undo"),
        help="list the proposals, show one, apply, refuse or take it back",
    )
    dreams.add_argument("id", nargs="?", default="", metavar="ID", help="a proposal, or the beginning of its id")
    dreams.add_argument("--state", default="", choices=("proposed", "applied", "refused", "undone"), help="only these")
    dreams.add_argument("--yes", action="store_true", help="apply what came from outside, too, without being asked")
    dreams.set_defaults(step=lambda here, asked: _dreams(here, asked, ask))
    promote = steps.add_parser("promote", parents=[rises], help="the deep phase alone: what would be kept")
    promote.add_argument("--apply", action="store_true", help="put the owner's own lines into MEMORY.md now")
    promote.add_argument("--limit", type=int, metavar="N", help="at most N lines (10)")
    promote.set_defaults(step=lambda here, asked: _promote(here, asked, ask))
    explain = steps.add_parser("promote-explain", parents=[rises], help="why a line is proposed, or not")
    explain.add_argument("selector", metavar="TEXT", help="words of the line, or its file")
    explain.set_defaults(step=lambda here, asked: _explain(here, asked, ask))
    harness = steps.add_parser("rem-harness", parents=[rises], help="all phases, nothing is written")
    harness.set_defaults(step=lambda here, asked: _harness(here, asked, ask))


def _rises(asked: argparse.Namespace) -> dict[str, Any]:
    return {
        "minScore": asked.min_score, "minRecallCount": asked.min_recall_count,
        "minUniqueQueries": asked.min_unique_queries,
    }  # fmt: skip


def _dream(here: Place, asked: argparse.Namespace, ask: Ask) -> int:
    params = {
        "phase": asked.phase, "dryRun": asked.dry_run, "reflect": asked.reflect, "limit": asked.limit, **_rises(asked),
    }  # fmt: skip
    return _swept(ask(here, asked, "memory.dream", params), asked)


def _harness(here: Place, asked: argparse.Namespace, ask: Ask) -> int:
    return _swept(ask(here, asked, "memory.dream", {"dryRun": True, **_rises(asked)}), asked)


def _swept(done: Mapping[str, Any], asked: argparse.Namespace) -> int:
    if asked.json:
        output.say_json(done)
        return 0
    if done.get("status") == "disabled":
        output.say("Memory is switched off.")
        return 0
    output.say(f"{done['agentId']}: {done['candidates']} lines were looked at.")
    for theme in done["themes"]:
        output.say(f"Theme: {theme['word']} ({theme['count']} times)")
    if done.get("reflection"):
        usage = done["usage"]
        output.say(f"{done['reflection']}\n({usage['model']}: {usage['input']:,} tokens in, {usage['output']:,} out)")
    for row in done["proposed"]:
        output.say(f"{row['score']:.2f} {row['path']}#L{row['line']}{_whence(row)}\n  {row['text']}")
    for each in done["dreams"]:
        output.say(f"Dream {each['id']}: {_state(each)}")
    if not done["proposed"] and "deep" in done["phases"]:
        output.say("Nothing is proposed.")
        for row in done["left"][:3]:
            output.note(f"left: {row['text'][:60]}: {'; '.join(row['why'])}")
    return 0


def _state(each: Mapping[str, Any]) -> str:
    count = f"{len(each['lines'])} line{'s' if len(each['lines']) != 1 else ''}"
    if each["state"] == "proposed":
        return f"{count} proposed; `garra memory dreams show {each['id']}`, then apply or refuse"
    return f"{count} {each['state']}; `garra memory dreams undo {each['id']}` takes it back"


def _whence(row: Mapping[str, Any]) -> str:
    """Whose words a line has, and what was read; empty for the owner's own."""
    with_ = f" by {row['owner']}" if row["owner"] else ""
    read = f" after reading {row['read']}" if row["read"] else ""
    return with_ + read


def _dreams(here: Place, asked: argparse.Namespace, ask: Ask) -> int:
    if asked.what == "list":
        return _list(ask(here, asked, "memory.dreams", {"state": asked.state}), asked)
    if not asked.id:
        raise UserError(f"which dream? `garra memory dreams list` shows them; then: dreams {asked.what} ID")
    if asked.what == "show":
        return _shown(ask(here, asked, "memory.dreams", {"id": asked.id}), asked)
    if here.agents:
        raise UserError("an agent's commands may not change what it remembers for good: the owner does, elsewhere")
    params: dict[str, Any] = {"id": asked.id, "step": asked.what}
    if asked.what == "apply":
        params["confirmed"] = asked.yes or _confirmed(ask(here, asked, "memory.dreams", {"id": asked.id}), asked)
    return _shown(ask(here, asked, "memory.dreams.decide", params, scopes=ADMIN), asked)


def _confirmed(one: Mapping[str, Any], asked: argparse.Namespace) -> bool:
    """Whether a person says yes to what came from outside. Raises UserError where there is nobody to ask."""
    if not one["outside"] or one["state"] == "applied":
        return False
    if asked.json or not sys.stdin.isatty():
        raise UserError(
            f"the dream {one['id']} has lines of somebody else or from outside, and nobody is there to be asked; look "
            f"at it (dreams show {one['id']}) and say --yes"
        )
    _shown(one, asked)
    output.note("These lines are not the owner's own. Keep them for good? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _list(told: Mapping[str, Any], asked: argparse.Namespace) -> int:
    if asked.json:
        output.say_json(told)
        return 0
    rows = [
        (each["id"], f"{datetime.fromtimestamp(each['at'] / 1000, UTC).astimezone():%Y-%m-%d %H:%M}", each["state"],
         str(len(each["lines"])), "from outside" if each["outside"] else "")
        for each in told.get("dreams", ())
    ]  # fmt: skip
    output.say(output.table(rows, ("id", "when", "state", "lines", "")) if rows else "There are no dreams yet.")
    return 0


def _shown(one: Mapping[str, Any], asked: argparse.Namespace) -> int:
    if asked.json:
        output.say_json(one)
        return 0
    output.say(f"Dream {one['id']}: {one['state']}{', some of it from outside' if one['outside'] else ''}")
    for row in one["lines"]:
        parts = ", ".join(f"{name} {part:.2f}" for name, part in row["parts"].items())
        output.say(f"{row['score']:.2f} {row['path']}#L{row['line']}{_whence(row)} ({parts})")
    if one.get("diff"):
        output.say(one["diff"])
    for text in one.get("gone", ()):
        output.note(f"no longer as it was: {text}")
    return 0


def _promote(here: Place, asked: argparse.Namespace, ask: Ask) -> int:
    params = {"phase": "deep", "dryRun": not asked.apply, "limit": asked.limit, **_rises(asked)}
    if asked.apply and here.agents:
        raise UserError("an agent's commands may not change what it remembers for good: the owner does, elsewhere")
    done = ask(here, asked, "memory.dream", params)
    for at, each in enumerate(done.get("dreams", ())):
        if not each["outside"] and each["state"] == "proposed":
            decided = {"id": each["id"], "step": "apply"}
            done["dreams"][at] = ask(here, asked, "memory.dreams.decide", decided, scopes=ADMIN)
    return _swept(done, asked)


def _explain(here: Place, asked: argparse.Namespace, ask: Ask) -> int:
    told = ask(here, asked, "memory.dreams.explain", {"selector": asked.selector, **_rises(asked)})
    if asked.json:
        output.say_json(told)
        return 0 if told.get("candidates") else 1
    for row in told.get("candidates", ()):
        parts = ", ".join(f"{name} {part:.2f}" for name, part in row["parts"].items())
        output.say(f"{row['score']:.2f} {row['path']}#L{row['line']}{_whence(row)}\n  {row['text']}\n  {parts}")
        output.say("  proposed" if row["promoted"] else f"  left: {'; '.join(row['why'])}")
    if not told.get("candidates"):
        output.say("No such line is a candidate.")
        return 1
    return 0
