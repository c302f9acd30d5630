"""`garra models refresh`: ask the servers of providers which models they have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from garra.faces.cli import models_here, output
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place


def run(_step: str, words: Sequence[str], place: Place) -> int:
    """Exit code 1 where a provider that was asked for, or that is configured, could not be asked."""
    found = with_json(parser("models refresh", "Ask the servers which models they have, and keep the answer."))
    found.add_argument("--provider", default="", help="only this one's")
    asked = found.parse_args(words)
    went = asyncio.run(_asked(asked.provider, place))
    if asked.json:
        rows = [
            {
                "provider": each.provider,
                "models": each.count,
                **({"budget": dict(each.budget)} if each.budget else {}),
                **({"error": each.problem} if each.problem else {}),
            }
            for each in went
        ]
        output.say_json({"ok": not any(each.problem for each in went), "providers": rows})
    elif not went:
        output.say("No provider has a key here, and no server of one's own answers.")
    for each in () if asked.json else went:
        said = each.problem or f"{each.count} models{_budget(each.budget)}"
        output.say(output.harmless(f"{each.provider}: {said}"))
    return 1 if any(each.problem for each in went) else 0


def _budget(told: Mapping[str, float]) -> str:
    return f", ${told['spent']:.2f} of ${told['limit']:.2f} spent this month" if told else ""


async def _asked(only: str, place: Place) -> list[Any]:
    async with models_here.opened(place) as desk:
        return await models_here.refreshed(desk, only)
