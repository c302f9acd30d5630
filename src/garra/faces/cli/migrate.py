"""`garra migrate`: take over from another agent program. What it would do is shown first; nothing there is changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from garra.core.errors import UserError
from garra.core.migration import Found, Item, Plan, Wanted
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place

FAILED, UNDONE = 1, 2
"""Exit codes: something failed; nothing was done, for something else stands here or nobody said yes."""
WORDS = ("list", "plan", "apply")
MARKS = {"planned": "+", "done": "✓", "conflict": "!", "failed": "✗", "skipped": "-", "manual": "?"}


def run(arguments: Sequence[str]) -> int:
    asked, here = _parser().parse_args(list(arguments)), place.here()
    words = list(asked.words)
    doing = words.pop(0) if words and words[0] in WORDS else ("list" if not words else "")
    if doing == "list":
        return _list(here, asked)
    if len(words) != 1:
        raise UserError(f"name one program to take over from, as in `{here.command} migrate openclaw`")
    if doing == "apply" and asked.dry_run:
        raise UserError(f"apply changes things; to look first: {here.command} migrate plan {words[0]}")
    return _migrate(here, asked, words[0], only_look=doing == "plan" or asked.dry_run)


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser(
        "migrate",
        "Take over from another agent program: configuration, workspace, memory, skills, people, conversations.",
        epilog="What is there is only read. Each run leaves a report in the state folder, under migrations/.",
    )
    parsing.with_json(parser)
    parser.add_argument("words", nargs="*", metavar="[plan|apply] PROGRAM", help="openclaw, hermes, nanobot or claude")
    parser.add_argument("--from", dest="source", default="", metavar="DIR", help="its folder, where it is another")
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    parser.add_argument("--include-secrets", action="store_true", help="take keys, tokens and logins over, too")
    parser.add_argument("--no-auth-credentials", action="store_true", help="leave them, and do not ask")
    parser.add_argument("--overwrite", action="store_true", help="replace what stands here; it is kept in the report")
    parser.add_argument("--item", action="append", default=[], metavar="ID", help="only this one, or this kind")
    parser.add_argument("--yes", action="store_true", help="without asking")
    return parser


def _list(here: Place, asked: argparse.Namespace) -> int:
    from garra.app import migration  # noqa: PLC0415 - opens stores

    rows = [(name, migration.source_of(name, here.paths, here.env)) for name in migration.SOURCES]
    if asked.json:
        output.say_json([{"id": name, "source": str(source), "found": source.is_dir()} for name, source in rows])
        return 0
    shown = [(name, "found" if source.is_dir() else "not there", str(source)) for name, source in rows]
    output.say(output.table(shown, ("PROGRAM", "STATE", "FOLDER")))
    return 0


def _migrate(here: Place, asked: argparse.Namespace, provider: str, *, only_look: bool) -> int:
    from garra.app import migration  # noqa: PLC0415 - opens stores

    source = here.paths.expand(asked.source) if asked.source else migration.source_of(provider, here.paths, here.env)
    found = migration.found(provider, source)
    _expect(found, asked.item)
    keys = asked.include_secrets or _consents(found, asked, only_look=only_look)
    wanted = Wanted(keys, asked.overwrite, frozenset(asked.item))
    plan = migration.planned(here.paths, here.env, found if keys else migration.keyless(found), wanted)
    if only_look or (asked.json and not asked.yes):
        _show(plan, asked, "what would be done")
        return 0
    if plan.conflicts and not asked.overwrite:
        _show(plan, asked, "nothing was done")
        output.note("garra: what is marked ! stands here already; look at it, then say --overwrite or choose by --item")
        return UNDONE
    if not asked.yes:
        _show(plan, asked, "what would be done")
        if not _agreed("Do it?"):
            output.note("garra: nothing was done")
            return UNDONE
    done = migration.applied(here.paths, here.env, plan)
    _show(done, asked, "what was done")
    return FAILED if any(item.state == "failed" for item in done.items) else 0


def _expect(found: Found, names: Sequence[str]) -> None:
    """Raises UserError for a name that none of the pieces has."""
    known = {name for item in found.items for name in (item.kind, item.id)}
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"there is no {unknown[0]} to take over; there is {', '.join(sorted(known))}")


def _consents(found: Found, asked: argparse.Namespace, *, only_look: bool) -> bool:
    if only_look or asked.yes or asked.json or asked.no_auth_credentials:
        return False
    return any(item.secret or item.kind == "config" for item in found.items) and _agreed(
        "Take over keys, tokens and logins, too?"
    )


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError("nobody is there to be asked; say --yes (and --include-secrets for keys), or --dry-run to look")
    output.note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(plan: Plan, asked: argparse.Namespace, head: str) -> None:
    if asked.json:
        output.say_json(plan.shown())
        return
    output.say(f"{plan.found.provider} at {plan.found.source}: {head}")
    if plan.found.running:
        output.say("! its gateway is running: stop it before yours starts, or both answer the same chats")
    for item in plan.items:
        output.say(_line(item))
    for warning in plan.found.warnings:
        output.say(f"! {output.harmless(warning)}")
    output.say(", ".join(f"{count} {state}" for state, count in plan.counts().items()) or "nothing")


def _line(item: Item) -> str:
    note = f": {item.note}" if item.note else ""
    return output.harmless(f"  {MARKS[item.state]} {item.kind:<9} {item.label}{note}")
