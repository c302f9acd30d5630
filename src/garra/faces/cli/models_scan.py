"""`garra models scan`: free models of OpenRouter that could stand in when others fail."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from garra.config.load import load
from garra.core import catalog
from garra.core.errors import Unavailable, UserError
from garra.faces.cli import models_choose, models_here, models_probe, output
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place

PROVIDER = "openrouter"
LARGEST = 16 << 20


def run(_step: str, words: Sequence[str], place: Place) -> int:
    asked = _parsed(words)
    rows = asyncio.run(_found(asked, place))[: asked.max_candidates]
    if not asked.no_probe and rows:
        probing = argparse.Namespace(
            models=[f"{PROVIDER}/{row['id']}" for row in rows], agent="", probe_provider="", probe_profile=[],
            probe_timeout=asked.timeout, probe_concurrency=asked.concurrency, probe_max_tokens=8,
        )  # fmt: skip
        went = {row["model"]: row for row in models_probe.probed(probing, place)}
        rows = [{**row, "probe": went.get(f"{PROVIDER}/{row['id']}")} for row in rows]
    good = [row for row in rows if (row.get("probe") or {}).get("status") == "ok"]
    chosen = _chosen(asked, place, good)
    if asked.json:
        output.say_json({"models": rows, "chosen": chosen})
    elif not rows:
        output.say("OpenRouter offers no free model that fits.")
    else:
        lines = [(f"{PROVIDER}/{row['id']}", f"{row['context_window'] // 1000}k", _verdict(row)) for row in rows]
        output.say(output.table(lines, ("MODEL", "WINDOW", "ANSWERS")))
        if chosen:
            output.say(f"{chosen} answers from now on.")
    return 0


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    found = with_json(parser("models scan", "Free models of OpenRouter that could stand in when others fail."))
    found.add_argument("--no-probe", action="store_true", help="only look at the list; needs no key")
    found.add_argument("--min-params", type=float, default=0.0, metavar="B", help="at least so many billions")
    found.add_argument("--max-candidates", type=int, default=6, metavar="N", help="how many to show and try")
    found.add_argument("--timeout", type=int, default=10_000, metavar="MS", help="of one try")
    found.add_argument("--concurrency", type=int, default=2, metavar="N", help="how many are tried at one time")
    found.add_argument("--set-default", action="store_true", help="the first that answers becomes the one that answers")
    found.add_argument("--yes", action="store_true", help=argparse.SUPPRESS)
    found.add_argument("--no-input", action="store_true", help=argparse.SUPPRESS)
    asked = found.parse_args(words)
    if asked.set_default and asked.no_probe:
        raise UserError("--set-default needs live tries: leave --no-probe out")
    return asked


async def _found(asked: argparse.Namespace, place: Place) -> list[dict[str, Any]]:
    """The free ones, the largest window first."""
    async with models_here.opened(place) as desk:
        entry = desk.models.entries()[PROVIDER]
        url = f"{entry.provider.base_url.rstrip('/')}/models"
        async with desk.http.stream("GET", url, timeout=asked.timeout / 1_000, via=entry.via) as body:
            if body.status != 200:
                raise Unavailable(f"{url} answered {body.status}")
            text = await body.read(LARGEST)
    try:
        listed = catalog.listed(json.loads(text))
    except ValueError:
        raise Unavailable(f"{url} answered with no JSON") from None
    free = [{"id": name, "context_window": 0, **row} for name, row in listed.items() if name.endswith(":free")]
    fit = [row for row in free if _billions(row) >= asked.min_params or not asked.min_params]
    return sorted(fit, key=lambda row: -int(row["context_window"]))


def _billions(row: Mapping[str, Any]) -> float:
    """How large a model is, as its name says."""
    found = re.findall(r"(\d+(?:\.\d+)?)b\b", str(row["id"]).lower())
    return max(map(float, found), default=0.0)


def _verdict(row: Mapping[str, Any]) -> str:
    probe = row.get("probe")
    if not probe:
        return "not tried"
    took = f" in {probe['latencyMs'] / 1_000:.1f} s" if "latencyMs" in probe else ""
    return f"yes{took}" if probe["status"] == "ok" else str(probe["status"])


def _chosen(asked: argparse.Namespace, place: Place, good: Sequence[Mapping[str, Any]]) -> str | None:
    if not asked.set_default:
        return None
    if not good:
        raise UserError("none of them answers now, so that none was chosen")
    ref = f"{PROVIDER}/{good[0]['id']}"
    models_choose.choose(place, load(place.paths, place.env), ref)
    return ref
