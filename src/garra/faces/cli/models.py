"""`garra models`: which models there are, which one answers, choose one, install one on this machine."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from garra.config.load import Snapshot, load
from garra.config.write import Writer
from garra.core import dotted
from garra.core.errors import GarraError, NotFound, RunFailed
from garra.domains.models import catalog, keys
from garra.domains.models.call import Ports
from garra.domains.models.detect import Pick, Scout
from garra.domains.models.fetch import Fetcher
from garra.domains.models.registry import Models, Row
from garra.domains.models.weights import LocalWeights, Sheet, named, sheets
from garra.domains.plugins import known
from garra.faces.cli import output, taken
from garra.faces.cli.options import Misused
from garra.faces.cli.parsing import parser, unknown, with_json
from garra.faces.cli.place import Place, here
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.sdk.model import Api, Model
from garra.sdk.ports import Via

NOW = "answers from now on."
_STEPS = ("status", "list", "set", "install-local", "auth")


def run(arguments: Sequence[str], place: Place | None = None) -> int:
    """Exit code 0 when done, 1 when it could not be done, 2 when the command line is wrong."""
    words = list(arguments)
    if words[:1] == ["auth"]:
        logins = importlib.import_module("garra.faces.cli.models_auth")  # opens the database; only where it is asked
        return int(logins.run(words[1:], place or here()))
    if words and words[0] not in _STEPS and not words[0].startswith("-"):
        raise Misused(unknown(words[0], "models", _STEPS))
    step = words.pop(0) if words and words[0] in _STEPS else "status"
    asked = _parsed(step, words, help_of_all=not arguments or arguments[0] in {"-h", "--help"})
    if isinstance(asked, int):
        return asked
    try:
        return {"status": _status, "list": _list, "set": _set, "install-local": _install}[step](asked, place or here())
    except GarraError as fault:
        if asked.json:
            output.say_json({"ok": False, "error": {"type": "cli_error", "message": fault.message}})
        else:
            output.note(f"garra: {fault.message}")
        return 1
    except KeyboardInterrupt:
        output.note("stopped; what was fetched is kept and the next try goes on from there")
        return 130


def _parsed(step: str, words: list[str], *, help_of_all: bool) -> argparse.Namespace | int:
    about = {
        "status": "Which model answers, and what is known of it.",
        "list": "The models that can be used now; --all lists the whole catalog.",
        "set": "Choose the model that answers when nothing else is said.",
        "install-local": "Fetch a model that runs on this machine; without a name, list them.",
    }
    steps = f"commands: {', '.join(_STEPS)} (garra models COMMAND --help)" if help_of_all else ""
    found = with_json(parser(f"models {step}" if not help_of_all else "models", about[step], epilog=steps))
    if step == "list":
        found.add_argument("--all", action="store_true", help="also those without a key")
        found.add_argument("--provider", default="", help="only this provider's")
    elif step == "set":
        found.add_argument("model", help="provider/model, or an alias")
    elif step == "install-local":
        found.add_argument("name", nargs="?", default="", help="a name of the catalog")
        found.add_argument("--set", action="store_true", dest="choose", help="also make it the model that answers")
    try:
        return found.parse_args(words)
    except SystemExit as end:
        return int(end.code or 0)


def _no_api(family: str) -> Api:
    raise NotFound(f"the family {family} is not loaded here")


def _models(snapshot: Snapshot, place: Place) -> Models:
    ports = Ports(_no_api, lambda: snapshot.env, Tasks(), SystemClock())
    return Models(lambda: snapshot.config, ports, (*catalog.shipped(), *known.brought(place.paths, snapshot.config)))


def _door(snapshot: Snapshot) -> GuardedHttp:
    return GuardedHttp(Via(snapshot.config.proxy_url or None, snapshot.config.ca_file or None))


async def _picked(models: Models, snapshot: Snapshot, place: Place) -> Pick:
    http, programs = _door(snapshot), Programs()
    try:
        fetch = Fetcher(http, programs, snapshot.env, lambda *_: None)
        return await Scout(http, LocalWeights(_folder(place), fetch), snapshot.env).pick(models)
    finally:
        await programs.close()
        await http.close()


def _weights(place: Place) -> LocalWeights:
    """To look at only: nothing is fetched with it."""
    return LocalWeights(_folder(place), Fetcher(GuardedHttp(), Programs(), {}, lambda *_: None))


def _folder(place: Place) -> Path:
    return place.paths.state / "models"


def _status(asked: argparse.Namespace, place: Place) -> int:
    snapshot = load(place.paths, place.env)
    models = _models(snapshot, place)
    pick = asyncio.run(_picked(models, snapshot, place))
    problem, resolved = "" if pick.ref else pick.words, pick.ref
    if pick.ref:
        try:
            model = models.resolve(pick.ref)
            resolved = model.ref
            keys.found(models.entries()[model.provider], snapshot.env)
        except (NotFound, RunFailed) as fault:
            problem = fault.message
    defaults = snapshot.config.agents.defaults
    aliases = {setting.alias: name for name, setting in defaults.models.items() if setting.alias}
    if asked.json:
        output.say_json(
            {
                "configPath": str(place.paths.config_file),
                "defaultModel": defaults.model.primary or None,
                "resolvedDefault": resolved or None,
                "fallbacks": list(defaults.model.fallbacks or ()),
                "aliases": aliases,
                "found": {"how": pick.how, "words": pick.words},
                "available": not problem,
                "problem": problem or None,
            }
        )
        return 0
    if pick.how not in {"configured", "none"}:
        output.say("No model is set. The first turn would pick this one:")
    output.say(pick.words)
    for fallback in defaults.model.fallbacks or ():
        output.say(f"If it fails: {fallback}")
    for alias, name in aliases.items():
        output.say(f"{alias} is {name}")
    if problem and problem != pick.words:
        output.say(output.painted(f"It cannot answer now: {problem}", "warn"))
    return 0


def _list(asked: argparse.Namespace, place: Place) -> int:
    snapshot = load(place.paths, place.env)
    models = _models(snapshot, place)
    models.installed = _weights(place).installed()
    only = models.provider(asked.provider) if asked.provider else ""
    rows = [
        row
        for row in models.rows()
        if (asked.all or row.available or row.configured) and (not only or row.provider == only)
    ]
    if asked.json:
        output.say_json({"count": len(rows), "models": [_row_json(row) for row in rows]})
        return 0
    if not rows:
        output.say(_none(models, only, place))
        return 0
    lines = [
        (row.ref, f"{row.context_window // 1000}k", "yes" if row.available else "no key", row.alias) for row in rows
    ]
    output.say(output.table(lines, ("MODEL", "WINDOW", "USABLE", "ALIAS")))
    return 0


def _none(models: Models, only: str, place: Place) -> str:
    """Why a list is empty, and what to do."""
    if only and not models.entries()[only].listed():
        return f"No model of {only} is known by name, for its server knows them: use {only}/MODEL."
    lacks = f"{only} has no key here" if only else "No provider has a key here"
    more = f" --provider {only}" if only else ""
    return f"{lacks}. `{place.command} models list --all{more}` lists what could be used."


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "key": row.ref,
        "name": row.name,
        "input": "+".join(row.input),
        "contextWindow": row.context_window,
        "reasoning": row.reasoning,
        "local": row.provider == "local",
        "available": row.available,
        "tags": [tag for tag, on in (("configured", row.configured), (f"alias:{row.alias}", bool(row.alias))) if on],
    }


def _set(asked: argparse.Namespace, place: Place) -> int:
    snapshot = load(place.paths, place.env)
    models = _models(snapshot, place)
    model = models.resolve(asked.model)
    since = _since(place, _choose(place, snapshot, model.ref))
    listed = model.id in models.entries()[model.provider].listed() or model.id.endswith(".gguf")
    try:
        keys.found(models.entries()[model.provider], snapshot.env)
        lacking = ""
    except RunFailed as fault:
        lacking = fault.message
    if asked.json:
        output.say_json({"ok": True, "model": model.ref, "known": listed, "problem": lacking or None})
        return 0
    if doubt := _doubt(models, model):
        output.note(doubt)
    if lacking:
        output.note(lacking)
    if lacking:
        output.say(f"{model.ref} is chosen; it answers once there is a key.")
    else:
        output.say(f"{model.ref} {since if listed or since != NOW else 'is chosen.'}")
    return 0


def meant(place: Place, snapshot: Snapshot, text: str) -> tuple[str, str]:
    """The model that `text` names, `provider/model`, and a line of doubt about it. Raises NotFound for none."""
    models = _models(snapshot, place)
    model = models.resolve(text)
    return model.ref, _doubt(models, model)


def _doubt(models: Models, model: Model) -> str:
    """What is to be said of a name that is nowhere listed; nothing where no list is known."""
    names = models.entries()[model.provider].listed()
    if not names or model.id in names or model.id.endswith(".gguf"):
        return ""
    return f"{model.id} is not in the catalog of {model.provider}; if it is misspelt, its calls will fail."


def _since(place: Place, written: Snapshot) -> str:
    """From when on it answers; a gateway that runs is given the time to take it up."""
    if taken.up(place, written.hash):
        return NOW
    when = "when it is restarted" if written.config.gateway.reload.mode == "off" else "as soon as it has read it"
    return f"is chosen; the gateway that runs takes it up {when}."


def _choose(place: Place, snapshot: Snapshot, ref: str) -> Snapshot:
    agents = snapshot.parsed.get("agents")
    defaults = agents.get("defaults") if isinstance(agents, dict) else None
    plain = isinstance(defaults, dict) and isinstance(defaults.get("model"), str)
    path = dotted.parse("agents.defaults.model" if plain else "agents.defaults.model.primary")
    return Writer(place.paths, place.env).set(path, ref)


def _install(asked: argparse.Namespace, place: Place) -> int:
    if not asked.name:
        return _catalog(asked, place)
    snapshot = load(place.paths, place.env)
    sheet = named(asked.name)
    path = asyncio.run(_fetched(sheet, snapshot, place))
    ref = f"local/{sheet.name}"
    chosen = _choose(place, snapshot, ref) if asked.choose else None
    if asked.json:
        output.say_json({"ok": True, "model": ref, "path": str(path), "size": sheet.size, "chosen": asked.choose})
        return 0
    after = f"It {_since(place, chosen)}" if chosen else f"Use it with `garra models set {ref}`."
    output.say(f"{sheet.title} is at {path}. {after}")
    return 0


async def _fetched(sheet: Sheet, snapshot: Snapshot, place: Place) -> Path:
    http, programs = _door(snapshot), Programs()
    bar = _Bar(sheet)
    try:
        weights = LocalWeights(_folder(place), Fetcher(http, programs, snapshot.env, bar))
        return await weights.install(sheet)
    finally:
        bar.end()
        await programs.close()
        await http.close()


def _catalog(asked: argparse.Namespace, place: Place) -> int:
    weights = _weights(place)
    found = [(sheet, weights.find(sheet)) for sheet in sheets()]
    if asked.json:
        rows = [
            {"name": sheet.name, "size": sheet.size, "about": sheet.about, "path": None if path is None else str(path)}
            for sheet, path in found
        ]
        output.say_json({"models": rows})
        return 0
    lines = [(sheet.name, f"{sheet.megabytes} MB", "yes" if path else "no", sheet.about) for sheet, path in found]
    output.say(output.table(lines, ("NAME", "SIZE", "INSTALLED", "WHAT IT IS")))
    return 0


class _Bar:
    """How far a download is, on standard error: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._live = sys.stderr.isatty()
        self._shown = -1
        output.note(f"{sheet.title}: {sheet.megabytes} MB")

    def __call__(self, done: int, total: int, source: str) -> None:
        percent = done * 100 // max(total, 1)
        if percent == self._shown or (not self._live and percent // 10 == self._shown // 10):
            return
        self._shown = percent
        line = f"{'#' * (percent // 4):<25} {percent:3d} %  {done // 1_000_000} MB from {source}"
        sys.stderr.write(f"\r{line}\x1b[K" if self._live else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        if self._live and self._shown >= 0:
            sys.stderr.write("\n")
