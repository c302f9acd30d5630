"""`garra models aliases`, `fallbacks` and `image-fallbacks`: lists of the configuration."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from garra.config.load import Snapshot, load
from garra.config.write import Writer
from garra.core import dotted
from garra.core.errors import NotFound, UserError
from garra.domains.models.registry import Models
from garra.faces.cli import models_here, output, taken
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place

WHERE = {"fallbacks": "agents.defaults.model", "image-fallbacks": "agents.defaults.imageModel"}
ALIASES = "agents.defaults.models"


def run(step: str, words: Sequence[str], place: Place) -> int:
    asked = _parsed(step, words)
    snapshot = load(place.paths, place.env)
    models = models_here.registry(snapshot, place)
    if step == "aliases":
        return _aliases(asked, place, snapshot, models)
    return _fallbacks(asked, place, snapshot, models, where=WHERE[step])


def _parsed(step: str, words: Sequence[str]) -> argparse.Namespace:
    whole = parser(f"models {step}", "Short names of models." if step == "aliases" else "Who answers when one fails.")
    doing = whole.add_subparsers(dest="doing", metavar="COMMAND")
    listing = with_json(doing.add_parser("list", help="what there is"))
    listing.add_argument("--plain", action="store_true", help="only the names")
    adding = with_json(doing.add_parser("add", help="one more"))
    removing = with_json(doing.add_parser("remove", help="one less"))
    if step == "aliases":
        adding.add_argument("alias", help="the short name")
        removing.add_argument("alias", help="the short name")
    else:
        removing.add_argument("model", help="provider/model, or an alias")
        with_json(doing.add_parser("clear", help="none at all"))
    adding.add_argument("model", help="provider/model, or an alias")
    asked = whole.parse_args(words or ["list"])
    if asked.doing is None:
        asked = whole.parse_args(["list", *words])
    return asked


def _aliases(asked: argparse.Namespace, place: Place, snapshot: Snapshot, models: Models) -> int:
    settings = snapshot.config.agents.defaults.models
    known = {setting.alias: name for name, setting in settings.items() if setting.alias}
    match asked.doing:
        case "list":
            _listed(asked, {"aliases": known}, [f"{alias} {name}" for alias, name in known.items()], "No aliases.")
        case "add":
            ref = models.resolve(asked.model).ref
            if "/" in asked.alias or not asked.alias.strip():
                raise UserError(f"{asked.alias!r} is no alias: one word without a slash")
            _drop(place, {name for alias, name in known.items() if alias.lower() == asked.alias.lower()} - {ref})
            _set(place, [*dotted.parse(ALIASES), ref, "alias"], asked.alias)
            _done(asked, {"alias": asked.alias, "model": ref}, f"{asked.alias} is {ref}.")
        case _:
            named = {name for alias, name in known.items() if alias.lower() == asked.alias.lower()}
            if not named:
                raise NotFound(f"no alias {asked.alias!r}; there are: {', '.join(known) or 'none'}")
            _drop(place, named)
            _done(asked, {"alias": asked.alias}, f"{asked.alias} is no alias any more.")
    return 0


def _drop(place: Place, names: set[str]) -> None:
    for name in names:
        Writer(place.paths, place.env).unset((*dotted.parse(ALIASES), name, "alias"))


def _fallbacks(asked: argparse.Namespace, place: Place, snapshot: Snapshot, models: Models, *, where: str) -> int:
    value = models_here.told(snapshot, where)
    told = value.get("fallbacks") if isinstance(value, dict) else None
    known = [str(each) for each in told] if isinstance(told, list) else []
    match asked.doing:
        case "list":
            _listed(asked, {"fallbacks": known}, known, "No fallbacks.")
            return 0
        case "clear":
            new, words = [], "There are no fallbacks any more."
        case "add":
            ref = models.resolve(asked.model).ref
            new, words = [*(each for each in known if each != ref), ref], f"If the others fail: {ref}."
        case _:
            ref = models.resolve(asked.model).ref
            new, words = [each for each in known if each not in (ref, asked.model)], f"{ref} is no fallback any more."
            if new == known:
                raise NotFound(f"{ref} is none of the fallbacks: {', '.join(known) or 'there are none'}")
    if isinstance(value, str):  # the bare text becomes the first of the object
        _set(place, dotted.parse(where), {"primary": value, "fallbacks": new})
    else:
        _set(place, [*dotted.parse(where), "fallbacks"], new)
    _done(asked, {"fallbacks": new}, words)
    return 0


def _set(place: Place, path: Sequence[str | int], value: Any) -> None:
    written = Writer(place.paths, place.env).set(tuple(path), value)
    taken.up(place, written.hash)


def _listed(asked: argparse.Namespace, body: dict[str, Any], lines: list[str], none: str) -> None:
    if asked.json:
        output.say_json(body)
    elif lines:
        output.say("\n".join(lines))
    elif not asked.plain:
        output.say(none)


def _done(asked: argparse.Namespace, body: dict[str, Any], words: str) -> None:
    if asked.json:
        output.say_json({"ok": True, **body})
    else:
        output.say(words)
