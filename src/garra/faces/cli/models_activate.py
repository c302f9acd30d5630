"""`garra models auth activate`: try a login with one tiny request, and take it from now on where it answers."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from garra.config.load import load
from garra.core.errors import GarraError, NotFound, UserError
from garra.core.value import frozen
from garra.domains.models.probing import AT_ONCE, TIMEOUT_S, TOKENS
from garra.faces.cli import models_choose, models_here, models_probe, output
from garra.faces.cli.place import Place

Order = tuple[str, ...] | None


@frozen
class Standing:
    """How it is before: the provider, the order that is set for it, its logins, and whether a model of it answers."""

    provider: str
    order: Order
    logins: tuple[str, ...]
    answers: bool


def run(asked: argparse.Namespace, place: Place) -> int:
    """Nothing is changed unless the login answers. Raises UserError then, with what it said."""
    was = asyncio.run(_standing(asked, place))
    order = (asked.profile, *(each for each in was.order or was.logins if each != asked.profile))
    out = was.order is not None and asked.profile not in was.order
    if out:  # what an order leaves out is not even tried
        asyncio.run(_ordered(asked, place, was.provider, order))
    row = _tried(asked, place, was.provider)
    if row["status"] != "ok":
        if out:
            asyncio.run(_ordered(asked, place, was.provider, was.order))
        raise UserError(f"{models_probe.line(row)}. All stays as it was")
    asyncio.run(_ordered(asked, place, was.provider, order))
    ref = "" if was.answers or asked.agent else str(row["model"])
    if ref:
        models_choose.choose(place, load(place.paths, place.env), ref)
    _told(asked, row, ref, {"ok": True, "profileId": asked.profile, "provider": was.provider, "order": list(order)})
    return 0


def _told(asked: argparse.Namespace, row: dict[str, Any], ref: str, body: dict[str, Any]) -> None:
    if asked.json:
        output.say_json({**body, "model": row["model"], **({"defaultModel": ref} if ref else {})})
        return
    output.say(models_probe.line(row))
    whose = f" by {asked.agent}" if asked.agent else ""
    output.say(f"{asked.profile} is taken first{whose}.{f' {ref} answers from now on.' if ref else ''}")


async def _standing(asked: argparse.Namespace, place: Place) -> Standing:
    """Raises NotFound."""
    async with models_here.opened(place) as desk:
        kept = desk.kept.profiles.values()
        mine = [each for each in kept if each.id == asked.profile and each.agent in ("", "main", asked.agent)]
        if not mine:
            raise NotFound(f"no login {asked.profile} is kept; `garra models auth list` lists them")
        provider = mine[0].provider
        logins = tuple(sorted({each.id for each in kept if each.provider == provider}))
        try:
            answers = desk.models.resolve(None, asked.agent).provider == provider
        except GarraError:
            answers = False
        return Standing(provider, desk.kept.orders.get((asked.agent, provider)), logins, answers)


def _tried(asked: argparse.Namespace, place: Place, provider: str) -> dict[str, Any]:
    probe = argparse.Namespace(
        probe_provider=provider, probe_profile=[asked.profile], probe_timeout=round(TIMEOUT_S * 1_000),
        probe_concurrency=AT_ONCE, probe_max_tokens=TOKENS, agent=asked.agent, models=[],
    )  # fmt: skip
    rows = models_probe.probed(probe, place)
    if not rows:
        raise UserError(f"{provider} has no model to try {asked.profile} with. All stays as it was")
    return rows[0]


async def _ordered(asked: argparse.Namespace, place: Place, provider: str, order: Order) -> None:
    async with models_here.opened(place) as desk:
        await desk.logins.order(asked.agent, provider, order)
