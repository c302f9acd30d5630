"""The house's dreaming: each agent's sweep, its proposals, and what is asked of them by methods and commands."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from datetime import datetime, tzinfo
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from garra.config.sections import dreaming as section
from garra.core import cron
from garra.core.budget import FILE_CHARS
from garra.core.dreaming import Bar
from garra.core.errors import Failure, UserError
from garra.core.messages import Text, User
from garra.core.outside import wrap
from garra.core.spending import Payer
from garra.core.taint import Mark
from garra.domains.context import stamps
from garra.domains.memory import dreaming
from garra.domains.memory.dreaming import PHASES, Ground, Night, Thought
from garra.domains.memory.sources import LARGEST
from garra.io.files.root import Root
from garra.sdk.model import ModelRequest

if TYPE_CHECKING:
    from garra.app.house import House

PATIENCE_S: Final = 120.0
WORDS: Final = 400
"""Tokens of a reflection."""
STEPS: Final = ("apply", "refuse", "undo")


class Dreams:
    """Asked by methods, commands and the night."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._locks: dict[str, asyncio.Lock] = {}

    def settings(self) -> section.Dreaming:
        """As they are now. Raises UserError for what cannot be understood."""
        entry = self._house.live.config.plugins.entries.get(section.PLUGIN)
        return section.read(entry.config if entry is not None else {})

    async def due(self, looked: int, now: int) -> bool:
        """Whether a time of `frequency` lies between the two, the later one included, in milliseconds since 1970."""
        settings = self.settings()
        at = cron.after(cron.parse(settings.frequency), looked, await self._zone(settings))
        return at is not None and at <= now

    async def status(self, agent: str) -> dict[str, Any]:
        """Whether it dreams by itself, when next, and what waits."""
        settings, ground = self.settings(), await self._ground(agent)
        now = self._house.clock.now_ms()
        at = cron.after(cron.parse(settings.frequency), now, await self._zone(settings)) if settings.enabled else None
        waiting = (await dreaming.listed(ground, "proposed"))["dreams"]
        return {
            "enabled": settings.enabled, "frequency": settings.frequency, "apply": settings.apply,
            "model": settings.model or None, "nextRunAtMs": at, "zone": str(ground.zone),
            "waiting": [each["id"] for each in waiting],
        }  # fmt: skip

    async def dream(self, agent: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """One sweep. `phase`: one of the three, or all; `dryRun` writes nothing; `reflect` asks a model; the thresholds
        may be given for once.
        """
        settings = self.settings()
        ground = await self._ground(agent)
        if (params.get("reflect") or settings.model) and not params.get("dryRun"):
            ground = await self._ground(agent, think=True)
        done = await dreaming.dream(ground, self._night(agent, settings, params))
        if any(each["state"] == "applied" for each in done["dreams"]):
            self._house.recalls.notice(agent)
        return done

    async def explain(self, agent: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Why a line would be proposed, or not."""
        night = self._night(agent, self.settings(), params)
        return await dreaming.explained(await self._ground(agent), night, str(params.get("selector", "")))

    async def listed(self, agent: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """All proposals, or one of them with its change."""
        ground = await self._ground(agent)
        if params.get("id"):
            return await dreaming.shown(ground, str(params["id"]))
        return await dreaming.listed(ground, str(params.get("state") or ""))

    async def decide(self, agent: str, params: Mapping[str, Any], *, by: str) -> dict[str, Any]:
        """What the owner decides."""
        step = str(params["step"])
        if step not in STEPS:
            raise UserError(f"a dream can be taken in (apply), refused, or taken back (undo), not {step[:20]!r}")
        ground = await self._ground(agent)
        confirmed = bool(params.get("confirmed"))
        done = await dreaming.decide(ground, str(params["id"]), step, by=by, confirmed=confirmed)
        self._house.recalls.notice(agent)
        return done

    async def said(self, agent: str, words: str, *, owner: bool) -> str:
        """What `/dreaming` answers; only the owner may switch it. Raises UserError."""
        word = words.split(maxsplit=1)[0].lower() if words.split() else "status"
        if word == "help":
            return HELP
        if word in ("on", "off"):
            if not owner:
                raise UserError(f"Only an owner may use /dreaming {word}.")
            path = ("plugins", "entries", section.PLUGIN, "config", "dreaming", "enabled")
            await self._house.live.change(lambda writer: writer.set(path, word == "on"))
        elif word != "status":
            raise UserError(HELP)
        return await asyncio.to_thread(shown, await self.status(agent))

    async def pages(self, agent: str) -> dict[str, Any]:
        """DREAMS.md, as the original's clients ask for it."""
        ground = await self._ground(agent)
        return {"agentId": agent, **await asyncio.to_thread(_pages, ground)}

    def _night(self, agent: str, settings: section.Dreaming, params: Mapping[str, Any]) -> Night:
        deep = settings.phases.deep
        given = {name: params[name] for name in ("minScore", "minRecallCount", "minUniqueQueries") if name in params}
        bar = Bar(
            float(given.get("minScore", deep.min_score)),
            int(given.get("minRecallCount", deep.min_recall_count)),
            int(given.get("minUniqueQueries", deep.min_unique_queries)),
            deep.recency_half_life_days, deep.max_age_days, deep.max_promoted_snippet_tokens,
            int(params.get("limit") or deep.limit),
        )  # fmt: skip
        phase = params.get("phase") or "all"
        phases = PHASES if phase == "all" else (str(phase),)
        config = self._house.live.config
        own = config.agents.find(agent)
        chars = (own.bootstrap_max_chars if own else None) or config.agents.defaults.bootstrap_max_chars or FILE_CHARS
        return Night(phases, bool(params.get("dryRun")), bar, chars, settings.apply == "auto")

    async def _ground(self, agent: str, *, think: bool = False) -> Ground:
        house = self._house
        config, memory = house.live.config, house.recalls.memory()
        zone = await self._zone(self.settings())
        files = Root(str(house.paths.workspace(agent, config)), house.paths.private)
        lock = self._locks.setdefault(agent, asyncio.Lock())
        return Ground(
            agent, house.db, memory.settings(agent).places, files, house.clock, zone, lambda: uuid.uuid4().hex, lock,
            partial(self._think, agent) if think else None,
        )  # fmt: skip

    async def _zone(self, settings: section.Dreaming) -> tzinfo:
        name = settings.timezone or self._house.live.config.time_zone or "UTC"
        return await asyncio.to_thread(stamps.zone, name)

    async def _think(self, agent: str, notes: str) -> Thought:
        """A model's two sentences on the day; paid for as the agent's, and not asked beyond a budget."""
        house = self._house
        model = house.models.resolve(self.settings().model or None, agent)
        payer = Payer("", "", "", agent)
        if (stop := await house.purse.refusal(payer)) is not None:
            raise stopped(stop)
        system = await asyncio.to_thread(instructions)
        told = wrap(notes, Mark("memory", "the diary"))
        message = User((Text(told),), house.clock.now_ms())
        asked = ModelRequest(model, system, (message,), max_tokens=WORDS, session=f"dream-{agent}", payer=payer)
        stream = house.models.stream(asked)
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await stream.result()
        except TimeoutError:
            raise UserError(f"{model.ref} took too long to reflect on the day") from None
        finally:
            stream.abort()
        usage = {"model": model.ref, "input": answer.usage.input, "output": answer.usage.output}
        return " ".join(answer.text.split())[: 4 * WORDS], usage


HELP: Final = (
    "/dreaming status: whether I look through my notes at night, and what I propose to keep. /dreaming on and "
    "/dreaming off switch it, for owners. What I propose is looked at and taken in with `garra memory dreams`."
)


def shown(told: Mapping[str, Any]) -> str:
    """The state of dreaming, for a chat. Reads the zone's file."""
    waiting = len(told["waiting"])
    more = (
        f" {waiting} proposal{'s wait' if waiting != 1 else ' waits'} for you (garra memory dreams)." if waiting else ""
    )
    if not told["enabled"]:
        return f"Dreaming: off.{more} /dreaming on switches it on."
    at = told["nextRunAtMs"]
    when = f", next {datetime.fromtimestamp(at / 1000, stamps.zone(told['zone'])):%Y-%m-%d %H:%M}" if at else ""
    by = told["model"] or "no model is asked"
    how = "clean lines come in at once" if told["apply"] == "auto" else "what I propose waits for you"
    return f"Dreaming: on, {told['frequency']} {told['zone']}{when}; {how}; {by}.{more}"


def stopped(failure: Failure) -> UserError:
    """A budget's stop as a fault."""
    return UserError(failure.message)


def _pages(ground: Ground) -> dict[str, Any]:
    for name in (dreaming.PAGES, "dreams.md"):
        stands = ground.files.stat(name)
        if stands is not None:
            text = ground.files.read(name, LARGEST).decode("utf-8", "replace")
            return {"found": True, "path": name, "content": text, "updatedAtMs": stands.modified}
    return {"found": False, "path": dreaming.PAGES}


@cache
def instructions() -> str:
    """What the model is told. Reads a file, once."""
    return (resources.files("garra.domains.memory") / "prompts" / "dream.md").read_text("utf-8").strip()
