"""Memory as it is asked: searched by words and by meaning, read by lines, brought up to date on the way.

The index of an agent is opened when it is first asked, and closed when nobody asked for a while. It is never the truth:
a damaged one is deleted and made again. What a turn may find is decided by `core.memory_sight` from what it is handed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from garra.core.errors import GarraError, Unavailable, UserError
from garra.core.memory_rank import by_meaning, by_words, chosen, citation, decayed, merged, snippet
from garra.core.memory_sight import Viewer, sees
from garra.core.memory_words import match, terms
from garra.core.taint import Mark
from garra.core.value import frozen
from garra.domains.memory import rows, sync
from garra.domains.memory.remote import Remote
from garra.domains.memory.rows import Asked, Counts, Row
from garra.domains.memory.settings import LOCAL, NONE, Settings
from garra.domains.memory.vectors import Near, Vectors
from garra.io.store.db import Database
from garra.sdk.ports import Children, Clock, Spawn

log = logging.getLogger(__name__)

INLINE: Final = 256 << 10
"""Bytes of new text that are read at once before a search; more is read by a child."""
PATIENCE_S: Final = 10.0
"""How long a search waits for such a child; then it finds what is there."""
NEAR_S: Final = 5.0
IDLE_S: Final = 120.0
LOOK_S: Final = 30.0
"""How long nobody is told that files have changed before they are looked at anyway."""
LOOKED: Final = 200
"""Rows that are looked at in each way at least: what both ways find is often first in neither."""
SNIPPET: Final = 700
LEAST_COSINE: Final = 0.75
"""What two texts have that have nothing in common, by the small model; others know it less well."""


@frozen
class Hit:
    """One result: `score` from 0 to 1, lines from 1, `text` at most 700 characters of the `whole` piece."""

    path: str
    first: int
    last: int
    text: str
    score: float
    source: str
    owner: str
    session: str
    created: int
    marks: tuple[Mark, ...] = ()
    whole: str = ""

    @property
    def citation(self) -> str:
        return citation(self.path, self.first, self.last)


@frozen
class Wanted:
    """A search: `limit` and `least` None are as set; no `sources` means all of them. `but` leaves out what was said
    in a session since a time, in milliseconds since 1970: the turn that asks would find its own question.
    """

    text: str
    limit: int | None = None
    least: float | None = None
    sources: tuple[str, ...] = ()
    but: tuple[str, int] | None = None


@frozen
class Answer:
    """What was found. `mode` is `hybrid` or `words`; `warning` says in a line why that may not be all."""

    hits: tuple[Hit, ...]
    mode: str
    provider: str
    model: str
    warning: str = ""


class Making(Protocol):
    """Makes vectors over the network, as `remote.Remote`."""

    async def query(self, text: str) -> bytes: ...


@frozen
class Ports:
    """What memory works with. `settings` are an agent's as they are now, `remote` who makes its vectors, None where it
    is the small model, or nobody. `installed`: whether the small model is there.
    """

    settings: Callable[[str], Settings]
    children: Children
    spawn: Spawn
    clock: Clock
    remote: Callable[[Settings], Any]
    installed: Callable[[], bool]


class Shelf:
    """One agent's index while it is open."""

    def __init__(self, ports: Ports, settings: Settings, db: Database) -> None:
        self.ports, self.settings, self.db = ports, settings, db
        self.vectors = Vectors(ports.children, ports.spawn, settings.index, settings.identity)
        self.used_at = self.looked_at = -1e9
        self.noticed = True
        self.warning = ""
        self._remote: Any = None
        self._making = False
        self._new = True

    async def fresh(self, *, force: bool = False, patience: float | None = PATIENCE_S) -> dict[str, Any]:
        """Bring the index up to date; a search has only so much patience. Gives what was done, where it is known."""
        now = self.ports.clock.monotonic()
        if not force and not self.noticed and now - self.looked_at < LOOK_S:
            return {}
        self.noticed, self.looked_at = False, now
        places, cut = self.settings.places, self.settings.cut
        waits, size = await asyncio.to_thread(sync.waiting, self.db, places, cut)
        if not force and size <= INLINE:
            done = await asyncio.to_thread(sync.sync, self.db, places, cut)
            self.warning = "; ".join(done.faults)
            self._new = self._new or bool(waits or done.gone)
            return dict(msgspec.to_builtins(done)) if waits or done.gone else {}
        body = msgspec.to_builtins(places), msgspec.to_builtins(cut)
        try:
            async with asyncio.timeout(patience):
                told = await self.vectors.sync(*body, force=force)
        except TimeoutError:
            self.noticed = True
            self.warning = "the index is still being made; more is found later"
            return {}
        self.warning = "; ".join(told.get("faults", ()))
        self._new = True
        return told

    async def meaning(self, text: str, asked: Asked) -> dict[int, float]:
        """Rows by how near they are in meaning; empty where no vectors are made. Raises Unavailable."""
        provider = self.settings.provider
        if provider == NONE:
            return {}
        near = Near(text, asked.owners, asked.sources, asked.limit)
        async with asyncio.timeout(NEAR_S):
            if provider != LOCAL:
                near = Near("", asked.owners, asked.sources, asked.limit, await self._network().query(text))
            found = await self.vectors.near(near)
        return by_meaning(found, LEAST_COSINE if provider == LOCAL else 0.0)

    async def more(self) -> None:
        """Vectors for what has none, in the background; nothing where nothing is new."""
        if not self._new or self.busy:
            return
        self._new = False
        if self.settings.provider == LOCAL:
            await self.vectors.work()
        elif self.settings.provider != NONE:
            self._making = True
            self.ports.spawn(self._filled(), "memory's embeddings")

    async def _filled(self) -> None:
        model = self.settings.identity
        try:
            while texts := await self.db.read(lambda connection: rows.pending(connection, model, 64)):
                made = await self._network().passages([text for _, text in texts])
                named = {key: vector for (key, _), vector in zip(texts, made, strict=True)}
                await self.db.write(partial(rows.store, model=model, vectors=named))
            await self.db.write(lambda connection: rows.sweep(connection, model))
        except GarraError as fault:
            log.warning("memory is searched by words alone: %s", fault.message)
            self.warning = fault.message
        finally:
            self._making = False

    @property
    def busy(self) -> bool:
        return self.vectors.busy or self._making

    def _network(self) -> Remote:
        if self._remote is None:
            self._remote = self.ports.remote(self.settings)
        found: Remote = self._remote
        return found

    async def close(self) -> None:
        await self.vectors.close()
        await self.db.close()


class Memory:
    """All agents' memories."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._open: dict[str, Shelf] = {}
        self._lock = asyncio.Lock()
        self._watching = False

    async def search(self, wanted: Wanted, *, agent_id: str, viewer: Viewer) -> Answer:
        """What `viewer` may find, best first. Raises UserError where memory is switched off."""
        try:
            return await self._searched(wanted, agent_id, viewer)
        except UserError as fault:
            if not damaged(fault):
                raise
        await self.forget(agent_id)
        return await self._searched(wanted, agent_id, viewer)

    async def index(self, agent_id: str, *, force: bool = False) -> dict[str, Any]:
        """Bring an index up to date and wait for it; vectors follow in the background. Gives what was done."""
        shelf = await self._shelf(agent_id)
        shelf.noticed = True
        done = await shelf.fresh(force=force, patience=None)
        await self._more(shelf)
        return done

    async def settled(self, agent_id: str) -> None:
        """Return when all vectors are made."""
        shelf = await self._shelf(agent_id)
        while shelf.busy:
            await self._ports.clock.sleep(1.0)

    async def counts(self, agent_id: str) -> tuple[Counts, str]:
        """How much is indexed, and what is amiss."""
        shelf = await self._shelf(agent_id)
        model = shelf.settings.identity
        return await shelf.db.read(lambda connection: rows.counts(connection, model)), shelf.warning

    def notice(self, agent_id: str) -> None:
        """Something that is remembered has changed."""
        if (shelf := self._open.get(agent_id)) is not None:
            shelf.noticed = True

    async def forget(self, agent_id: str) -> None:
        """Delete an index; it is made anew when it is next asked."""
        settings = self._ports.settings(agent_id)
        async with self._lock:
            if (shelf := self._open.pop(agent_id, None)) is not None:
                await shelf.close()
            await asyncio.to_thread(sync.removed, Path(settings.index))

    async def close(self) -> None:
        async with self._lock:
            while self._open:
                await self._open.popitem()[1].close()

    async def _searched(self, wanted: Wanted, agent_id: str, viewer: Viewer) -> Answer:
        shelf = await self._shelf(agent_id)
        settings = shelf.settings
        await shelf.fresh()
        owned = tuple(owner for owner in await shelf.db.read(rows.owners) if sees(viewer, owner))
        limit = wanted.limit or settings.most
        many = max(limit * settings.weights.many, LOOKED)
        asked = Asked(match(wanted.text), owned, wanted.sources or settings.places.kinds, many)
        words = by_words(await shelf.db.read(partial(rows.search, asked=asked)))
        meaning, warning = {}, shelf.warning
        try:
            meaning = await shelf.meaning(wanted.text, asked) if owned else {}
        except (GarraError, TimeoutError) as fault:
            warning = "searched by words alone: " + (str(fault) or "it took too long")
        await self._more(shelf)
        scored = merged(words, meaning, settings.weights)
        picked = await shelf.db.read(partial(rows.pick, ids=tuple(scored), owned=owned)) if scored else {}
        hits = self._ranked(wanted, settings, picked, scored)
        return Answer(hits, "hybrid" if meaning else "words", settings.provider, settings.model, warning)

    def _ranked(
        self, wanted: Wanted, settings: Settings, picked: dict[int, Row], scored: dict[int, float]
    ) -> tuple[Hit, ...]:
        now, weights = self._ports.clock.now_ms(), settings.weights
        told = [row for row in picked.values() if not _own(row, wanted.but)]
        aged = [(row.found, decayed(scored[row.id], row.found, now, weights.half_life)) for row in told]
        least = settings.least if wanted.least is None else wanted.least
        best = chosen([each for each in aged if each[1] >= least], wanted.limit or settings.most, weights.mmr)
        sought = terms(wanted.text)
        return tuple(_hit(picked[found.id], score, sought) for found, score in best)

    async def _more(self, shelf: Shelf) -> None:
        try:
            await shelf.more()
        except GarraError as fault:
            shelf.warning = fault.message

    async def _shelf(self, agent_id: str) -> Shelf:
        settings = self._ports.settings(agent_id)
        if not settings.enabled:
            raise Unavailable("memory is switched off (memory.search.enabled, plugins.slots.memory)")
        async with self._lock:
            shelf = self._open.get(agent_id)
            if shelf is not None and shelf.settings != settings:
                await self._open.pop(agent_id).close()
                shelf = None
            if shelf is None:
                db = await asyncio.to_thread(sync.opened, Path(settings.index))
                shelf = self._open[agent_id] = Shelf(self._ports, settings, db)
            shelf.used_at = self._ports.clock.monotonic()
        if not self._watching:
            self._watching = True
            self._ports.spawn(self._watched(), "memory closed when idle")
        return shelf

    async def _watched(self) -> None:
        """Close what nobody asked for a while; ends with the last."""
        while self._open:
            await self._ports.clock.sleep(IDLE_S / 4)
            now = self._ports.clock.monotonic()
            async with self._lock:
                idle = [name for name, each in self._open.items() if now - each.used_at > IDLE_S and not each.busy]
                for name in idle:
                    await self._open.pop(name).close()
        self._watching = False


def damaged(fault: GarraError) -> bool:
    """Whether an index is to be made anew."""
    return "is damaged" in fault.message


def _own(row: Row, but: tuple[str, int] | None) -> bool:
    return but is not None and row.source == "sessions" and row.session == but[0] and row.created >= but[1]


def _hit(row: Row, score: float, sought: tuple[str, ...]) -> Hit:
    text = snippet(row.text, sought, SNIPPET)
    return Hit(
        row.path, row.first, row.last, text, round(score, 4), row.source, row.owner, row.session, row.created,
        row.marks, row.text,
    )  # fmt: skip
