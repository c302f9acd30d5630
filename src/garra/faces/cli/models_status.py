"""`garra models status`: which model answers, what comes when it fails, how the logins of its providers stand."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from garra.core.errors import NotFound, RunFailed
from garra.domains.models import keys, standing
from garra.domains.models.detect import Pick, Scout
from garra.domains.models.fetch import Fetcher
from garra.domains.models.profiles import Asked
from garra.domains.models.weights import LocalWeights
from garra.faces.cli import models_here, models_probe, output
from garra.faces.cli.models_here import Desk
from garra.faces.cli.parsing import parser, with_json
from garra.faces.cli.place import Place
from garra.io.process.door import Programs

WRONG, SOON = 1, 2
"""Exit codes of --check: a login is missing or has ended; one ends within a day."""


def run(_step: str, words: Sequence[str], place: Place) -> int:
    found = with_json(parser("models status", "Which model answers, and how the logins of its providers stand."))
    found.add_argument("--plain", action="store_true", help="only the model that answers")
    found.add_argument("--check", action="store_true", help="exit code 1: no usable login, 2: one ends within a day")
    found.add_argument("--probe", action="store_true", help="ask each login's model for one word; real requests")
    found.add_argument("--agent", default="", metavar="ID", help="of this agent")
    models_probe.options(found)
    asked = found.parse_args(words)
    told = asyncio.run(_told(asked, place))
    code = _code(told) if asked.check else 0
    if asked.probe:
        told["auth"]["probes"] = models_probe.probed(asked, place)
    if asked.json:
        output.say_json(told)
    elif asked.plain:
        output.say(told["resolvedDefault"] or "")
    else:
        _shown(told)
    return code


async def _told(asked: argparse.Namespace, place: Place) -> dict[str, Any]:
    async with models_here.opened(place) as desk:
        pick = await _picked(desk, asked.agent)
        problem, resolved, provider = "" if pick.ref else pick.words, pick.ref, ""
        if pick.ref:
            try:
                model = desk.models.resolve(pick.ref)
                resolved, provider = model.ref, model.provider
                await desk.models.profiles.line(
                    Asked(desk.models.entries()[provider], model.id, desk.snapshot.env, agent=asked.agent)
                )
            except (NotFound, RunFailed) as fault:
                problem = fault.message
        return _object(desk, pick, resolved, problem=problem, provider=provider, agent=asked.agent)


async def _picked(desk: Desk, agent: str) -> Pick:
    own = desk.models.primary(agent)
    if agent and own:
        return Pick(own, "configured", f"Using {own}, as configured.")
    programs = Programs()
    try:
        fetch = Fetcher(desk.http, programs, desk.snapshot.env, lambda *_: None)
        return await Scout(desk.http, LocalWeights(models_here.folder(desk.place), fetch), desk.snapshot.env).pick(
            desk.models
        )
    finally:
        await programs.close()


def _object(desk: Desk, pick: Pick, resolved: str, *, problem: str, provider: str, agent: str) -> dict[str, Any]:
    config, paths = desk.snapshot.config, desk.place.paths
    defaults = config.agents.defaults
    image = defaults.image_model
    now = desk.clock.now_ms()
    auth = standing.overview(desk.kept, _keyed(desk), now)
    listed = [each for each in desk.kept.profiles.values() if each.provider == provider]
    return {
        "configPath": str(paths.config_file),
        "agentDir": str(paths.agents / (agent or "main") / "agent"),
        "defaultModel": defaults.model.primary or None,
        "resolvedDefault": resolved or None,
        "fallbacks": list(defaults.model.fallbacks or ()),
        "imageModel": (image.primary or None) if image else None,
        "imageFallbacks": list(image.fallbacks or ()) if image else [],
        "aliases": {setting.alias: name for name, setting in defaults.models.items() if setting.alias},
        "allowed": list(defaults.model_policy.allow) if defaults.model_policy else [],
        "found": {"how": pick.how, "words": pick.words},
        "available": not problem,
        "problem": problem or None,
        "auth": {
            "storePath": str(paths.db),
            "missingProvidersInUse": [provider] if problem and provider else [],
            "inUse": standing.best(standing.standing(each, now) for each in listed) if listed else None,
            **auth,
        },
    }


def _keyed(desk: Desk) -> dict[str, str]:
    """Where the keys are that stand in the configuration and the environment."""
    found = {}
    for name, entry in desk.models.entries().items():
        if entry.provider.auth == "key" and keys.has(entry, desk.snapshot.env):
            found[name] = "config" if entry.key is not None else "env"
    return found


def _code(told: Mapping[str, Any]) -> int:
    if told["problem"]:
        return WRONG
    return SOON if told["auth"]["inUse"] == "expiring" else 0


def _shown(told: Mapping[str, Any]) -> None:
    found = told["found"]
    if found["how"] not in {"configured", "none"}:
        output.say("No model is set. The first turn would pick this one:")
    output.say(found["words"])
    for fallback in told["fallbacks"]:
        output.say(f"If it fails: {fallback}")
    for alias, name in told["aliases"].items():
        output.say(f"{alias} is {name}")
    profiles = told["auth"]["oauth"]["profiles"]
    if profiles:
        rows = [(each["profileId"], each["type"], each["status"], left(each.get("remainingMs"))) for each in profiles]
        output.say(output.table(rows, ("LOGIN", "KIND", "STANDS", "ENDS IN")))
    for each in told["auth"]["unusableProfiles"]:
        of = f" for {each['model']}" if each.get("model") else ""
        output.say(f"{each['profileId']} rests{of} ({each['reason']}), for {left(each['remainingMs'])} still")
    for each in told["auth"].get("probes", ()):
        output.say(models_probe.line(each))
    if told["problem"] and told["problem"] != found["words"]:
        output.say(output.painted(f"It cannot answer now: {told['problem']}", "warn"))


def left(span_ms: int | None) -> str:
    """A span as people say it."""
    if span_ms is None:
        return "-"
    if span_ms <= 0:
        return "over"
    minutes = span_ms // 60_000
    for size, unit in ((1_440, "d"), (60, "h"), (1, "min")):
        if minutes >= size:
            return f"{minutes // size} {unit}"
    return f"{max(1, span_ms // 1_000)} s"
