"""`garra skills`: what an agent can read up on; install a skill, look after it, take it away."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from garra.client import quick
from garra.client.socket import Unreachable
from garra.core.errors import Forbidden, NotFound, UserError
from garra.faces.cli import output, parsing, place, skills_lines
from garra.faces.cli.place import Place

SCOPES = ("operator.read",)
UNDONE = 2
"""The exit code where nothing was done, because nobody said yes."""
NO_REGISTRY = (
    "Garra reads no registry of skills: download the skill, look at it, and install the folder, the archive, its "
    "https address, or git:OWNER/REPO"
)

Work = Callable[[Any], Awaitable[int]]


def run(arguments: Sequence[str]) -> int:
    """Exit code 0 when done, 1 when it could not be done, 2 when nobody said yes or the command line is wrong."""
    words = list(arguments)
    if not words or (words[0].startswith("--") and words[0] != "--help"):
        words.insert(0, "list")
    asked = _parser().parse_args(words)
    code: int = asked.step(place.here(), asked)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("skills", "What an agent can read up on: instructions in folders with a SKILL.md.")
    steps = parser.add_subparsers(metavar="COMMAND", required=True)
    _looking(steps)
    whose = argparse.ArgumentParser(add_help=False)
    whose.add_argument("--agent", default="", metavar="ID", help="one agent's own; without it those of all agents")
    whose.add_argument("--global", action="store_true", dest="common", help="those of all agents (as without --agent)")
    doing = parsing.with_json(argparse.ArgumentParser(add_help=False, parents=[whose]))
    doing.add_argument("--yes", action="store_true", help="without asking")
    install = steps.add_parser(
        "install",
        parents=[doing],
        help="copy a skill here; what it asks for is shown first",
        description="Copy a skill here from a folder, a .zip or .tar.gz, an https address of one, or git:OWNER/REPO "
        "(github:OWNER/REPO, @REF behind). No script of it is run.",
    )
    install.add_argument("source", metavar="SOURCE", help="a folder, an archive, an https address, or git:URL")
    install.add_argument("--as", dest="name", default="", metavar="NAME", help="the name of its folder here")
    install.add_argument(
        "--path", default="", metavar="FOLDER", help="which folder of the source, where it holds several"
    )
    install.add_argument("--sha256", default="", metavar="HEX", help="what the archive must be")
    install.add_argument(
        "--force", action="store_true", help="replace what stands there; what is not ours is kept aside"
    )
    install.add_argument("--version", default="", help=argparse.SUPPRESS)
    install.set_defaults(step=_install)
    update = steps.add_parser("update", parents=[doing], help="fetch it anew; what would change is shown first")
    update.add_argument("name", nargs="?", default="", metavar="NAME", help="which skill")
    update.add_argument("--all", action="store_true", help="every installed skill")
    update.add_argument("--from", dest="source", default="", metavar="SOURCE", help="from elsewhere than before")
    update.add_argument("--sha256", default="", metavar="HEX", help="what the archive must be")
    update.add_argument("--force", action="store_true", help="also where you have changed it; that is kept aside")
    update.set_defaults(step=_update)
    remove = steps.add_parser("remove", parents=[doing], help="take away what its install wrote", aliases=["uninstall"])
    remove.add_argument("name", metavar="NAME", help="which skill")
    remove.set_defaults(step=_remove)
    search = steps.add_parser("search", help="says where to look: Garra reads no registry")
    search.add_argument("words", nargs="*", help="what to look for")
    search.add_argument("--limit", default="", help="read by nothing")
    search.add_argument("--json", action="store_true", help="print JSON, and nothing else, on standard output")
    search.set_defaults(step=_search)
    return parser


def _looking(steps: Any) -> None:
    common = parsing.with_target(parsing.with_json(argparse.ArgumentParser(add_help=False)))
    common.add_argument("--agent", default="", metavar="ID", help="whose (the default agent's)")
    listing = steps.add_parser("list", parents=[common], help="every skill, and whether it is fit for use")
    listing.add_argument("--eligible", action="store_true", help="only those that are")
    listing.add_argument("-v", "--verbose", action="store_true", help="with what is missing")
    listing.set_defaults(step=_list)
    info = steps.add_parser("info", parents=[common], help="one skill: what it asks for, where it came from")
    info.add_argument("name", metavar="NAME", help="which skill")
    info.set_defaults(step=_info)
    check = steps.add_parser("check", parents=[common], help="what is missing, and what has changed since its install")
    check.set_defaults(step=_check)


# ---- looking


def _status(here: Place, asked: argparse.Namespace) -> dict[str, Any]:
    """As the gateway sees it; where none runs, as this command does."""
    params = {"agentId": asked.agent} if asked.agent else {}
    try:
        found: dict[str, Any] = quick.call(here.target(parsing.wanted(asked)), "skills.status", params, scopes=SCOPES)
    except Unreachable:
        if here.holder or asked.url:
            raise
        found = _offline(here, asked.agent)
    return found


def _offline(here: Place, agent: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def look(shop: Any) -> int:
        found.update(await asyncio.to_thread(shop.status, agent))
        return 0

    _with(here, look)
    return found


def _list(here: Place, asked: argparse.Namespace) -> int:
    found = _status(here, asked)
    rows = [row for row in found["skills"] if row["eligible"] or not asked.eligible]
    if asked.json:
        output.say_json({**found, "skills": rows})
        return 0
    if not rows:
        output.say(f"No skill. Install one: {here.command} skills install SOURCE")
        return 0
    output.say(output.table([skills_lines.listed(row, verbose=asked.verbose) for row in rows], skills_lines.HEADS))
    return 0


def _info(here: Place, asked: argparse.Namespace) -> int:
    row = skills_lines.meant(_status(here, asked)["skills"], asked.name)
    found: dict[str, Any] = {}

    async def look(shop: Any) -> int:
        found.update(await asyncio.to_thread(shop.detail, row))
        return 0

    if Path(row["baseDir"]).is_dir():
        _with(here, look)
    if asked.json:
        output.say_json(found or row)
    else:
        output.say("\n".join(map(output.harmless, skills_lines.info(found or row))))
    return 0


def _check(here: Place, asked: argparse.Namespace) -> int:
    found = _status(here, asked)
    told = importlib.import_module("garra.domains.skills.status").summary(found["skills"])
    if asked.json:
        where = {name: found[name] for name in ("agentId", "workspaceDir", "managedSkillsDir")}
        output.say_json({**where, **told})
    else:
        output.say("\n".join(map(output.harmless, skills_lines.checked(told))))
    return 0


# ---- doing


def _with(here: Place, work: Work) -> int:
    app = importlib.import_module("garra.app.skills")  # loads the configuration; only these commands do

    async def opened() -> int:
        async with app.opened(here.paths, here.env, await asyncio.to_thread(Path.cwd)) as shop:
            return await work(shop)

    return asyncio.run(opened())


def _mine(here: Place, asked: argparse.Namespace) -> None:
    """Raises Forbidden for an agent's command, UserError for words that exclude each other."""
    if here.agents:
        raise Forbidden("skills are installed, updated and removed by the owner, not by an agent's command")
    if asked.agent and asked.common:
        raise UserError("--global is for all agents, --agent for one: say one of them")


def _agreed(question: str, asked: argparse.Namespace) -> bool:
    if asked.yes:
        return True
    if not sys.stdin.isatty():
        raise UserError("nobody is there to be asked; look at what is shown, then say --yes")
    output.note(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _undone() -> int:
    output.note("garra: nothing was done")
    return UNDONE


def _install(here: Place, asked: argparse.Namespace) -> int:
    _mine(here, asked)
    if asked.version:
        raise UserError(f"--version is for a registry. {NO_REGISTRY}; a tag of git stands behind an @")
    app = importlib.import_module("garra.app.skills")
    wish = app.Wish(asked.source, asked.name, asked.agent, asked.sha256, asked.path)

    async def work(shop: Any) -> int:
        offer = await shop.offer(wish)
        told = offer.told()
        if asked.json and not asked.yes:
            output.say_json({"installed": False, **told})
            return UNDONE
        if not asked.json:
            output.say("\n".join(map(output.harmless, skills_lines.offered(told))))
        if not _agreed("Install it?", asked):
            return _undone()
        record = await shop.install(offer, force=asked.force)
        if asked.json:
            output.say_json({"installed": True, **told, "sha256": dict(record.files)})
        else:
            output.say(f"Installed in {record.folder}. Its instructions are in the next turn's list.")
        return 0

    return _with(here, work)


def _update(here: Place, asked: argparse.Namespace) -> int:
    _mine(here, asked)
    if bool(asked.name) == asked.all or (asked.all and (asked.source or asked.force)):
        raise UserError("name one skill, or say --all (without --from and --force)")

    async def work(shop: Any) -> int:
        root = shop.root(asked.agent)
        every = [one for one in shop.library.records.every().values() if Path(one.folder).parent == root]
        records = every if asked.all else [shop.found(asked.name, asked.agent)]
        results = [await _updated(shop, record, asked) for record in records]
        if asked.json:
            output.say_json({"results": results})
        elif not results:
            output.say("No skill was installed.")
        codes = {"failed": 1, "undone": UNDONE}
        return max((codes.get(one["state"], 0) for one in results), default=0)

    return _with(here, work)


async def _updated(shop: Any, record: Any, asked: argparse.Namespace) -> dict[str, Any]:
    """How the update of one went; with --all one that fails does not keep the others from theirs."""
    try:
        anew = await shop.anew(record, asked.source, asked.sha256)
        told = skills_lines.told(anew)
        if not anew.changes:
            return _said({"state": "same", **told}, f"{record.name}: as it was.", asked)
        if not asked.json:
            output.say("\n".join(map(output.harmless, skills_lines.changes(anew))))
        if anew.own and not asked.force:
            await shop.update(anew)  # says what to do about what was changed here
        if (asked.json and not asked.yes) or not _agreed(f"Update {record.name}?", asked):
            return {"state": "undone", **told}
        _, aside = await shop.update(anew, force=asked.force)
        kept = f" What you had changed is in {aside}." if aside else ""
        return _said({"state": "updated", **told, "kept": aside or None}, f"{record.name}: updated.{kept}", asked)
    except UserError as fault:
        if not asked.all:
            raise
        return _said({"state": "failed", "name": record.name, "error": fault.message}, fault.message, asked)


def _said(result: dict[str, Any], line: str, asked: argparse.Namespace) -> dict[str, Any]:
    if not asked.json:
        output.say(output.harmless(line))
    return result


def _remove(here: Place, asked: argparse.Namespace) -> int:
    _mine(here, asked)

    async def work(shop: Any) -> int:
        record = shop.found(asked.name, asked.agent)
        if not _agreed(f"Take away {record.name} ({record.folder})?", asked):
            return _undone()
        gone, written = await shop.remove(record)
        if asked.json:
            output.say_json(skills_lines.removed_json(gone, written))
        else:
            output.say("\n".join(map(output.harmless, skills_lines.removed(gone, written))))
        return 0

    return _with(here, work)


def _search(here: Place, asked: argparse.Namespace) -> int:
    raise NotFound(NO_REGISTRY)
