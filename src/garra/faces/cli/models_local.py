"""`garra models install-local`: models that run on this machine."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from garra.config.load import Snapshot, load
from garra.domains.models.fetch import Fetcher
from garra.domains.models.weights import LocalWeights, Sheet, named, sheets
from garra.faces.cli import models_choose, models_here, output
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place
from garra.io.http import GuardedHttp
from garra.io.process.door import Programs


def weights(place: Place) -> LocalWeights:
    """To look at only: nothing is fetched with it."""
    return LocalWeights(models_here.folder(place), Fetcher(GuardedHttp(), Programs(), {}, lambda *_: None))


def run(_step: str, words: Sequence[str], place: Place) -> int:
    found = with_json(
        parser("models install-local", "Fetch a model that runs on this machine; without a name, list them.")
    )
    found.add_argument("name", nargs="?", default="", help="a name of the catalog")
    found.add_argument("--set", action="store_true", dest="choose", help="also make it the model that answers")
    asked = found.parse_args(words)
    if not asked.name:
        return _catalog(asked, place)
    snapshot = load(place.paths, place.env)
    sheet = named(asked.name)
    path = asyncio.run(_fetched(sheet, snapshot, place))
    ref = f"local/{sheet.name}"
    chosen = models_choose.choose(place, snapshot, ref) if asked.choose else None
    if asked.json:
        output.say_json({"ok": True, "model": ref, "path": str(path), "size": sheet.size, "chosen": asked.choose})
        return 0
    after = f"It {models_choose.since_when(place, chosen)}" if chosen else f"Use it with `garra models set {ref}`."
    output.say(f"{sheet.title} is at {path}. {after}")
    return 0


async def _fetched(sheet: Sheet, snapshot: Snapshot, place: Place) -> Path:
    http, programs = models_here.door(place, snapshot), Programs()
    bar = _Bar(sheet)
    try:
        fetcher = Fetcher(http, programs, snapshot.env, bar)
        return await LocalWeights(models_here.folder(place), fetcher).install(sheet)
    finally:
        bar.end()
        await programs.close()
        await http.close()


def _catalog(asked: argparse.Namespace, place: Place) -> int:
    there = weights(place)
    found = [(sheet, there.find(sheet)) for sheet in sheets()]
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
