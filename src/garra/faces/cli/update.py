"""`garra update`: another version, tried first and taken back if it fails."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra import __version__
from garra.core.errors import GarraError, UserError
from garra.faces.cli import output, parsing, place
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock

IDLE_S = 300.0
"""So long an update waits for running turns."""


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_json(parsing.parser("update", "Put another version in place: staged, tried, watched."))
    parser.add_argument("act", nargs="?", choices=("status", "rollback", "selftest"), help="instead of updating")
    parser.add_argument("--to", default="", metavar="VERSION", help="this version, from your package index")
    parser.add_argument("--wheel", default="", metavar="FILE", help="this wheel")
    parser.add_argument("--wheelhouse", default="", metavar="DIR", help="take all packages from there, ask no index")
    parser.add_argument("--requirements", default="", metavar="FILE", help="a list with hashes that all must match")
    parser.add_argument("--reuse-packages", action="store_true", help="take the packages of this version")
    parser.add_argument("--dry-run", action="store_true", help="stage and try it, change nothing")
    parser.add_argument("--restore-database", action="store_true", help="with rollback: the copy of before the update")
    parser.add_argument("--ready-within", type=float, default=60.0, metavar="S", help="seconds until it must be ready")
    parser.add_argument("--yes", action="store_true", help="without asking (it never asks)")
    parser.add_argument("--db", default="", help="of selftest: a copy of the database")
    asked, here = parser.parse_args(list(arguments)), place.here()
    if asked.act == "selftest":
        output.say_json(selftest(here, Path(asked.db) if asked.db else None))
        return 0
    if asked.act == "status":
        return _status(asked, here)
    if here.agents:
        raise UserError("an agent's commands may not update the gateway: the owner does, in another terminal")
    install = importlib.import_module("garra.domains.upkeep.installs").detect(here.paths)
    if not install.owned:
        if asked.json:
            output.say_json({"ok": False, "kind": install.kind, "nextAction": install.advice})
        raise UserError(install.advice)
    with importlib.import_module("garra.domains.upkeep.update").alone(here.paths):
        return _rollback(asked, here) if asked.act == "rollback" else _update(asked, here)


def _made(asked: Any, here: Place) -> Any:
    module = importlib.import_module("garra.domains.upkeep.update")
    tell = output.note
    ports = module.Ports(lambda: _idle(here, tell), lambda: _healthy(here), tell)
    return module.Update(here.paths, here.env, ports, asked.ready_within)


def _update(asked: Any, here: Place) -> int:
    module, update = importlib.import_module("garra.domains.upkeep.update"), _made(asked, here)
    places = (Path(text).absolute() if text else None for text in (asked.wheel, asked.wheelhouse, asked.requirements))
    wheel, house, requirements = places
    if wheel is not None and not wheel.is_file():
        raise UserError(f"there is no file {wheel}")
    source = module.Source(wheel, asked.to, house, requirements, asked.reuse_packages)
    output.note("Staging the new version; the old one goes on meanwhile.")
    folder = update.stage(source)
    try:
        new = update.tried(folder)
        faults = module.worse(selftest(here, None), new)
        if faults:
            raise UserError(f"version {new['version']} failed its self-test, nothing was changed: {'; '.join(faults)}")
        if asked.dry_run:
            return _told(asked, {"ok": True, "dryRun": True, "from": __version__, "to": new["version"]}, folder)
        report = update.switch(folder, str(new["version"]))
        if report["ok"]:
            report["removed"] = module.tidy(here.paths)
    except GarraError:
        importlib.import_module("shutil").rmtree(folder, ignore_errors=True)
        raise
    return _told(asked, report, folder)


def _told(asked: Any, report: dict[str, Any], folder: Path) -> int:
    if report.get("dryRun") or not report["ok"]:
        importlib.import_module("shutil").rmtree(folder, ignore_errors=True)
    if asked.json:
        output.say_json(report)
    elif report["ok"]:
        did = "passed its self-test; nothing was changed" if report.get("dryRun") else "is in place"
        output.say(f"Garra {report['to']} {did} (this is {report['from']}).")
        if report.get("launcher"):
            output.say(f"The command: {report['launcher']}")
    else:
        back = "is back and running" if report["running"] else "is back: start it with `garra gateway run`"
        output.say(f"Garra {report['to']} was taken back: {report['why']}. Version {report['from']} {back}.")
    return 0 if report["ok"] else 1


def _rollback(asked: Any, here: Place) -> int:
    report = _made(asked, here).rollback(restore=asked.restore_database)
    output.say_json(report) if asked.json else output.say("The previous version is in place again.")
    return 0


def _status(asked: Any, here: Place) -> int:
    installs = importlib.import_module("garra.domains.upkeep.installs")
    module = importlib.import_module("garra.domains.upkeep.update")
    handoff = importlib.import_module("garra.domains.upkeep.handoff")
    install = installs.detect(here.paths)
    base = installs.base(here.paths)
    links = {name: str((base / name).resolve()) if (base / name).is_symlink() else None for name in
             ("current", "previous")}  # fmt: skip
    last = handoff.read(module.noted(here.paths)) or None
    told = {
        "version": __version__,
        "kind": install.kind,
        "nextAction": install.advice or None,
        **links,
        "lastRun": last,
    }
    if asked.json:
        output.say_json(told)
        return 0
    output.say(f"Garra {__version__}, installed as {install.kind} in {install.prefix}")
    if install.advice:
        output.say(f"To update: {install.advice}")
    if last:
        how = "well" if last.get("ok") else f"taken back: {last.get('why')}"
        output.say(f"Last update: {last.get('from')} to {last.get('to')}, {how}")
    return 0


def _idle(here: Place, tell: Any) -> bool:
    """Wait until no turn runs."""
    quick, clock = importlib.import_module("garra.client.quick"), SystemClock()
    end, said = clock.monotonic() + IDLE_S, False
    while clock.monotonic() < end:
        with quick.Gateway(here.target()) as wire:
            if wire.call("gateway.restart.preflight", {})["safe"]:
                return True
        if not said:
            tell("Waiting for running turns to end.")
            said = True
        clock.hold(1.0)
    return False


def _healthy(here: Place) -> bool:
    quick = importlib.import_module("garra.client.quick")
    return bool(quick.alive(here.target(), timeout_s=5.0))


def selftest(here: Place, db: Path | None) -> dict[str, Any]:
    """How this version finds the installation: `{version, schema, faults}`; `db` is a copy, which it opens and brings
    up to its own schema.
    """
    doctor = importlib.import_module("garra.faces.cli.doctor")
    importlib.import_module("garra.app.resident")
    loaded = importlib.import_module("garra.config.load").load(here.paths, here.env)
    faults = [f"configuration: {issue.path}: {issue.message}" for issue in loaded.issues]
    faults += [f"{each.check}: {each.what}" for each in doctor.examine(here) if each.level == "bad"]
    schema = 0
    if db is not None and db.is_file():
        store, copies = (importlib.import_module(f"garra.io.store.{name}") for name in ("db", "copies"))
        database = store.Database(db)
        try:
            database.write_now(lambda _: None)
        except GarraError as fault:
            faults.append(f"database: {fault.message}")
        finally:
            database.close_now()
        schema = copies.schema(db)
    return {"version": __version__, "schema": schema, "faults": faults}
