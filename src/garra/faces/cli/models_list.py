"""`garra models list`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Any

from garra.domains.models.registry import Models, Row
from garra.faces.cli import models_here, models_local, output
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place


def run(_step: str, words: Sequence[str], place: Place) -> int:
    found = with_json(parser("models list", "The models that can be used now; --all lists the whole catalog."))
    found.add_argument("--all", action="store_true", help="also those without a key")
    found.add_argument("--local", action="store_true", help="only those on this machine and its own servers")
    found.add_argument("--provider", default="", help="only this provider's")
    found.add_argument("--refresh", action="store_true", help="ask the servers which models they have, first")
    found.add_argument("--plain", action="store_true", help="only the names")
    asked = found.parse_args(words)
    rows, models, only = asyncio.run(_found(asked, place))
    _say(rows, asked, models, only=only, place=place)
    return 0


async def _found(asked: argparse.Namespace, place: Place) -> tuple[list[Row], Models, str]:
    async with models_here.opened(place) as desk:
        if asked.refresh:
            await models_here.refreshed(desk, asked.provider)
        models = desk.models
        models.installed = await asyncio.to_thread(models_local.weights(place).installed)
        only = models.provider(asked.provider) if asked.provider else ""
        return [row for row in models.rows() if _wanted(row, asked, models, only)], models, only


def _wanted(row: Row, asked: argparse.Namespace, models: Models, only: str) -> bool:
    near = row.provider == "local" or models.entries()[row.provider].provider.auth == "optional"
    return (asked.all or row.available or row.configured) and only in ("", row.provider) and (near or not asked.local)


def _say(rows: list[Row], asked: argparse.Namespace, models: Models, *, only: str, place: Place) -> None:
    if asked.json:
        output.say_json({"count": len(rows), "models": [row_json(row) for row in rows]})
    elif asked.plain:
        for row in rows:
            output.say(row.ref)
    elif not rows:
        output.say(_none(models, only, place))
    else:
        lines = [
            (row.ref, f"{row.context_window // 1000}k", "yes" if row.available else "no key", row.alias) for row in rows
        ]
        output.say(output.table(lines, ("MODEL", "WINDOW", "USABLE", "ALIAS")))


def _none(models: Models, only: str, place: Place) -> str:
    """Why a list is empty, and what to do."""
    if only and not models.entries()[only].listed():
        return f"No model of {only} is known by name, for its server knows them: use {only}/MODEL."
    lacks = f"{only} has no key here" if only else "No provider has a key here"
    more = f" --provider {only}" if only else ""
    return f"{lacks}. `{place.command} models list --all{more}` lists what could be used."


def row_json(row: Row) -> dict[str, Any]:
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
