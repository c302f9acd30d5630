"""`garra forget`: remove what is kept of one person."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from garra.core import forgetting
from garra.core.errors import UserError
from garra.core.forgetting import Report
from garra.faces.cli import output, parsing, place


def run(arguments: Sequence[str]) -> int:
    parser = parsing.parser(
        "forget",
        "Remove what is kept of one person: conversations, their words in groups, files, stored messages, rights.",
        epilog="Transcripts of groups keep their order; what agents said themselves stays. There is no way back.",
    )
    parsing.with_json(parser)
    parser.add_argument(
        "person", metavar="CHANNEL:ID", help="such as telegram:1001; telegram:work:1001 for one account"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what there is")
    parser.add_argument("--yes", action="store_true", help="without asking")
    asked, here = parser.parse_args(list(arguments)), place.here()
    who = forgetting.person(asked.person)
    if here.env.get("GARRA_SHELL"):
        raise UserError("an agent's commands may not forget people: the owner does, in another terminal")
    from garra.app import forgetting as acts  # noqa: PLC0415 - opens stores

    if not asked.dry_run and not asked.yes:
        _show(acts.forget(here.paths, here.env, who, dry=True), who.shown, "there is")
        if not sys.stdin.isatty():
            raise UserError("nobody is there to be asked; say --yes, or --dry-run to look")
        output.note("Remove it? There is no way back. [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            output.note("garra: nothing was removed")
            return 2
    done = acts.forget(here.paths, here.env, who, dry=asked.dry_run)
    if asked.json:
        output.say_json({"ok": not done.left, "person": who.shown, "dryRun": asked.dry_run, **done.shown()})
    else:
        _show(done, who.shown, "there is" if asked.dry_run else "removed")
    if done.left:
        again = f"garra forget {asked.person}"
        output.note(f"garra: {len(done.left)} of it could not be removed; mend that, and run `{again}` again")
    return 1 if done.left else 0


def _show(report: Report, name: str, head: str) -> None:
    output.say(f"Of {name} {head}:")
    rows = (
        (len(report.conversations), "conversations of their own"),
        (report.lines, "messages in conversations of others"),
        (report.received, "stored messages from them"),
        (report.sent, "stored answers to them"),
        (report.files, "files"),
        (report.let_in, "rights or requests to write here"),
        (report.promoted, "lines of MEMORY.md that dreams made of their words"),
        (report.dreamt, "lines of proposals"),
        (report.calls, "rows of the ledger that named them (the sums stay)"),
    )
    for count, what in rows:
        output.say(f"  {count:>5}  {what}")
    for line in report.left:
        output.say(f"  not removed: {line}")
    for path in report.mentions:
        output.say(f"  still names them, for you to edit: {path}")
