"""`garra models probe`: does a model answer, by which login, how fast. Real requests, one word each."""

from __future__ import annotations

import argparse
import asyncio
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from garra.client import quick
from garra.core.errors import UserError
from garra.domains.models.probing import AT_ONCE, TIMEOUT_S, TOKENS, Limits, usable
from garra.faces.cli import models_here, output
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place


def options(found: argparse.ArgumentParser) -> None:
    """How wide and how long is probed."""
    found.add_argument("--probe-provider", default="", metavar="P", help="only this provider's logins")
    found.add_argument(
        "--probe-profile", action="append", default=[], metavar="ID", help="only this login (repeatable)"
    )
    found.add_argument(
        "--probe-timeout",
        type=_whole,
        default=round(TIMEOUT_S * 1_000),
        metavar="MS",
        help="milliseconds that one may take",
    )
    found.add_argument(
        "--probe-concurrency", type=_whole, default=AT_ONCE, metavar="N", help="how many are asked at one time"
    )
    found.add_argument(
        "--probe-max-tokens", type=_whole, default=TOKENS, metavar="N", help="the longest answer, in tokens"
    )


def _whole(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def run(_step: str, words: Sequence[str], place: Place) -> int:
    found = with_json(parser("models probe", "One tiny live request to each model: does it answer, and how fast."))
    found.add_argument("models", nargs="*", metavar="MODEL", help="these; else one of each provider that can be used")
    found.add_argument("--agent", default="", metavar="ID", help="with this agent's logins")
    options(found)
    asked = found.parse_args(words)
    rows = probed(asked, place)
    if asked.json:
        output.say_json({"results": rows})
    elif not rows:
        output.say("There is nothing to try: no provider has a key or a login here.")
    for row in () if asked.json else rows:
        output.say(line(row))
    return 0 if rows and all(row["status"] == "ok" for row in rows) else 1


def line(row: Mapping[str, Any]) -> str:
    """One result, for a person."""
    took = f" in {row['latencyMs'] / 1_000:.1f} s" if row["status"] == "ok" else ""
    by = f" by {row['profileId']}" if row.get("profileId") else ""
    why = f": {row['error']}" if row.get("error") else ""
    status = _ENDS.get(str(row.get("reasonCode")), row["status"]) if row["status"] == "unknown" else row["status"]
    return output.harmless(f"{row['model'] or row['provider']}{by}: {status}{took}{why}")


_ENDS = {"cut_stream": "cut off", "empty": "no answer", "server_error": "server error", "content_filter": "filtered"}


def probed(asked: argparse.Namespace, place: Place) -> list[dict[str, Any]]:
    """The results, by the gateway that runs here, or by this process where none does."""
    limits = Limits(asked.probe_timeout / 1_000, asked.probe_concurrency, asked.probe_max_tokens)
    refs = list(getattr(asked, "models", ()))
    if place.holder is None:
        alone = importlib.import_module("garra.app.probing").alone
        rows: list[dict[str, Any]] = asyncio.run(alone(place.paths, place.env, alone_asks(asked, refs), limits))
        return rows
    return _served(asked, place, refs, limits)


def alone_asks(asked: argparse.Namespace, refs: Sequence[str]) -> dict[str, Any]:
    return {
        "refs": refs, "provider": asked.probe_provider, "profiles": _names(asked.probe_profile), "agent": asked.agent,
    }  # fmt: skip


def _names(texts: Sequence[str]) -> list[str]:
    return [name for text in texts for name in text.split(",") if name]


def _served(asked: argparse.Namespace, place: Place, refs: Sequence[str], limits: Limits) -> list[dict[str, Any]]:
    """The gateway probes a provider at a time, as its clients ask it to."""
    if refs:
        raise UserError("a gateway runs here and probes whole providers: use --probe-provider, or stop it first")
    rows = []
    patience = limits.timeout_s * 20 + 10
    with quick.Gateway(place.target(), ("operator.admin",)) as gateway:
        for provider in [asked.probe_provider] if asked.probe_provider else _usable(place):
            for profile in _names(asked.probe_profile) or [""]:
                params = {"provider": provider, "timeoutMs": round(limits.timeout_s * 1_000)}
                more = {"profileId": profile} if profile else {}
                told = gateway.call("models.probe", {**params, **more}, timeout_s=patience)
                rows += [{"provider": provider, "model": told.get("model"), **each} for each in told.get("results", ())]
    return rows


def _usable(place: Place) -> list[str]:
    async def names() -> list[str]:
        async with models_here.opened(place) as desk:
            return usable(desk.models)

    return asyncio.run(names())
