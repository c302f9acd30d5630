"""`garra plugins`: what is installed and whether it is on; the packages one needs; the beginning of a new one."""

from __future__ import annotations

import argparse
import difflib
import importlib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from garra.core.errors import NotFound
from garra.faces.cli import brought, output, parsing, place
from garra.faces.cli.place import Place


def run(arguments: Sequence[str]) -> int:
    parser = parsing.parser("plugins", "What is installed and whether it is on; the packages one needs; a new one.")
    doing = parser.add_subparsers(dest="doing", metavar="COMMAND")
    listing = doing.add_parser(
        "list",
        help="every plugin, with its state",
        description="Every plugin, where it comes from, and whether it works.",
    )
    parsing.with_json(listing)
    installing = doing.add_parser(
        "install",
        help="install the packages that a plugin needs, and no more",
        description="Install the packages of others that a plugin needs or does better with, as pinned with Garra.",
    )
    installing.add_argument("plugin", metavar="PLUGIN", help="such as browser, web or matrix")
    parsing.with_json(installing)
    new = doing.add_parser(
        "new",
        help="write a plugin that works as it is, with its test",
        description="Write a plugin that works as it is, with its test, and say how to switch it on.",
    )
    new.add_argument("kind", metavar="KIND", help="tool or provider")
    new.add_argument("name", metavar="NAME", help="such as weather")
    new.add_argument("--dir", default="", metavar="DIR", help="where to (the folder of extensions)")
    words = list(arguments)
    if not words or words[0] == "--json":
        words.insert(0, "list")
    asked = parser.parse_args(words)
    here = place.here()
    doers = {"list": _list, "install": _install, "new": _new}
    return doers[asked.doing](here, asked)


def _list(here: Place, asked: argparse.Namespace) -> int:
    known = importlib.import_module("garra.domains.plugins.known")  # loads what is on: only this command does
    load = importlib.import_module("garra.config.load")
    rows = known.tried(here.paths, load.load(here.paths, here.env).config)
    refused = dict(brought.found(here).refused)
    rows = sorted((_with(row, refused.get(row.id, "")) for row in rows), key=lambda row: (row.id, row.origin))
    if asked.json:
        output.say_json({"plugins": [_json(row) for row in rows]})
        return 0
    shown = [(row.id, row.kind, row.origin, row.status.replace(f"{row.folder}/", "")) for row in rows]
    output.say(output.table(shown, ("PLUGIN", "KIND", "FROM", "STATE")))
    return 0


def _with(row: Any, refused: str) -> Any:
    """The row with why a command of its plugin is not taken, unless something worse is said of it."""
    return replace(row, status=refused) if refused and row.status == "ready" else row


def _json(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "origin": row.origin,
        "enabled": row.enabled,
        "status": row.status,
        "path": str(row.folder),
    }


def _install(here: Place, asked: argparse.Namespace) -> int:
    plugin = _meant(here, asked.plugin)
    manifest = plugin.manifest
    able = bool(manifest.imports or manifest.better)
    done = able and importlib.import_module("garra.faces.cli.plugin_packages").install(here, plugin)
    if asked.json:
        output.say_json({"plugin": plugin.id, "installed": done})
        return 0
    output.say(f"{manifest.name} has its packages." if done else f"{manifest.name} has all it needs.")
    if done and manifest.kind == "channel":
        output.say("A running gateway takes up its accounts by itself.")
    return 0


def _meant(here: Place, asked: str) -> Any:
    """The plugin of that id, one that is off too. Raises NotFound."""
    discover = importlib.import_module("garra.domains.plugins.discover")
    found = [one for root in discover.roots(here.paths) for one in root if isinstance(one, discover.Plugin)]
    packages = importlib.import_module("garra.domains.plugins.packages")
    if (plugin := next((one for one in found if one.id == asked), None) or packages.apart(asked)) is not None:
        return plugin
    ids = sorted([*packages.APART, *(one.id for one in found if one.manifest.imports or one.manifest.better)])
    near = difflib.get_close_matches(asked, ids, n=1)
    meant = f"did you mean {near[0]}?" if near else f"those that need packages are {', '.join(ids)}"
    raise NotFound(f"there is no plugin {asked!r} here; {meant}")


def _new(here: Place, asked: argparse.Namespace) -> int:
    scaffold = importlib.import_module("garra.domains.plugins.scaffold")
    folder = Path(asked.dir) / asked.name if asked.dir else here.paths.extensions / asked.name
    files = scaffold.write(asked.kind, asked.name, folder)
    output.say("\n".join(str(file) for file in files))
    steps = [f"Switch it on:  {_command(here)} config set plugins.entries.{asked.name}.enabled true"]
    if asked.kind == "tool":
        steps.insert(0, f"Run its test:  {shlex.quote(sys.executable)} -m pytest {shlex.quote(str(folder.absolute()))}")
    output.say("\n" + "\n".join(steps))
    return 0


def _command(here: Place) -> str:
    """This very program as a shell finds it, whatever is on its search path."""
    beside = Path(sys.executable).with_name("garra")
    program = shlex.quote(str(beside)) if beside.is_file() else f"{shlex.quote(sys.executable)} -m garra"
    return f"{program} --profile {here.paths.profile}" if here.paths.profile else program
