"""`garra backup`: the state in one file, checked, and put back."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock


def run(arguments: Sequence[str]) -> int:
    parser = parsing.parser("backup", "Pack the state into one file, check such a file, put it back.")
    rows = parser.add_subparsers(dest="act", required=True, metavar="COMMAND")
    create = parsing.with_json(rows.add_parser("create", help="pack it, also while the gateway runs"))
    create.add_argument("--output", default="", metavar="PATH", help="a file or a folder (STATE/backups)")
    create.add_argument("--include-secrets", action="store_true", help="pack the stores of keys and logins too")
    create.add_argument("--no-include-workspace", action="store_true", help="without the agents' folders")
    create.add_argument("--only-config", action="store_true", help="the configuration file alone")
    create.add_argument("--verify", action="store_true", help="check it when it is written")
    for name, about in (
        ("verify", "check every file against the manifest"),
        ("restore", "put it in the state's place"),
    ):
        one = parsing.with_json(rows.add_parser(name, help=about))
        one.add_argument("archive", help="the file that garra backup create wrote")
        if name == "restore":
            one.add_argument("--target", default="", metavar="DIR", help="only unpack it there, into a new folder")
            one.add_argument("--yes", action="store_true", help="without asking")
    listed = parsing.with_json(rows.add_parser("list", help="the backups of a folder"))
    listed.add_argument("folder", nargs="?", default="", help="where backups lie, if not in the usual place")
    asked, here = parser.parse_args(list(arguments)), place.here()
    acts = {"create": _create, "verify": _verify, "restore": _restore, "list": _list}
    return acts[asked.act](asked, here)


def _module(name: str = "backup") -> Any:
    return importlib.import_module(f"garra.domains.upkeep.{name}")


def _create(asked: Any, here: Place) -> int:
    if asked.include_secrets and here.agents:
        raise UserError("an agent's commands may not pack secrets: the owner does, in another terminal")
    backup = _module()
    target = Path(asked.output).absolute() if asked.output else here.paths.state / "backups"
    if target.is_dir() or not asked.output:
        target = target / backup.name(SystemClock().now_ms())
    outside = () if asked.no_include_workspace or asked.only_config else tuple(_outside(here))
    wish = backup.Wish(asked.include_secrets, not asked.no_include_workspace, asked.only_config, outside)
    made = backup.create(here.paths, target, wish)
    if asked.verify:
        _module("restore").verify(target)
    if asked.json:
        told = {"ok": True, "path": str(target), "files": len(made.entries), "size": target.stat().st_size}
        output.say_json({**told, "verified": asked.verify, "skipped": made.skipped})
        return 0
    output.say(f"Packed {len(made.entries)} files into {target} ({target.stat().st_size:,} bytes).")
    for line in made.skipped:
        output.note(f"left out: {output.harmless(line)}")
    return 0


def _verify(asked: Any, here: Place) -> int:
    told = _module("restore").verify(Path(asked.archive))
    facts = {"version": told.version, "createdAt": told.created_at, "files": len(told.entries)}
    if asked.json:
        output.say_json({"ok": True, **facts, "secrets": told.secrets})
    else:
        output.say(f"Good: {facts['files']} files, made by Garra {facts['version']}.")
    return 0


def _restore(asked: Any, here: Place) -> int:
    if here.agents:
        raise UserError("an agent's commands may not restore the state: the owner does, in another terminal")
    module, archive = _module("restore"), Path(asked.archive)
    if asked.target:
        target = Path(asked.target).absolute()
        if target.exists() and any(target.iterdir()):
            raise UserError(f"{target} is not empty")
        files = len(module.unpack(archive, target).entries)
        told = {"ok": True, "target": str(target), "files": files}
        output.say_json(told) if asked.json else output.say(f"Unpacked {files} files to {target}.")
        return 0
    if not asked.yes:
        agreed(f"Put {archive.name} in the place of {here.paths.state}? What is there is kept beside it.")
    done = module.restore(here.paths, archive)
    if asked.json:
        moved = [{"path": now, "from": was} for now, was in done.outside]
        output.say_json({"ok": True, "state": str(here.paths.state), "kept": done.kept, "workspaces": moved})
        return 0
    output.say(f"Restored to {here.paths.state}.")
    if done.kept:
        output.say(f"What was there before: {done.kept}")
    for now, was in done.outside:
        output.say(f"A workspace is in {now}; it stood at {output.harmless(was)}: move it there if you want it there.")
    return 0


def _outside(here: Place) -> list[Path]:
    """The workspaces that stand elsewhere. One that holds more than a workspace is left out, and said."""
    found = []
    for path in importlib.import_module("garra.faces.cli.remove").elsewhere(here):
        if path.resolve() == here.paths.home or here.paths.state.resolve().is_relative_to(path.resolve()):
            output.note(f"left out: the workspace {path} holds more than a workspace")
        else:
            found.append(path)
    return found


def agreed(question: str) -> None:
    """Raises UserError where nobody agrees."""
    if not sys.stdin.isatty():
        raise UserError("nobody is there to be asked; say --yes")
    output.note(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing was done")


def _list(asked: Any, here: Place) -> int:
    folder = Path(asked.folder).absolute() if asked.folder else here.paths.state / "backups"
    rows = _module().listed(folder)
    if asked.json:
        output.say_json({"ok": True, "folder": str(folder), "backups": rows})
    elif rows:
        shown = [[Path(row["path"]).name, row["version"], f"{row['size']:,}", str(row["files"])] for row in rows]
        output.say(output.table(shown, ("NAME", "VERSION", "BYTES", "FILES")))
    else:
        output.say(f"No backups in {folder}")
    return 0
