"""Where the logins of model providers are kept: in the state database, which only its owner may read, beside what each
agent's `auth-profiles.json` brings. Of the same login in both, the database's counts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from garra.core import cooldowns, profiles
from garra.core.cooldowns import Health
from garra.core.errors import NotFound
from garra.core.profiles import Document, Profile
from garra.core.secret import Secret
from garra.core.value import frozen
from garra.io.store.db import Connection, Database
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

MOST_BYTES: Final = 4 << 20
PINS_MS: Final = 90 * 86_400_000
Owned = tuple[str, str]
"""Whose, and the id; of an order: whose, and the provider."""


Look = Callable[[str, str, str], str]


def _nowhere(source: str, provider: str, name: str) -> str:
    raise NotFound(f"{source}:{provider}:{name} cannot be looked up here")


@frozen
class Kept:
    """All that is kept. `files` are those that could be read, with the moment of their last change."""

    profiles: Mapping[Owned, Profile]
    health: Mapping[Owned, Health]
    orders: Mapping[Owned, tuple[str, ...]]
    problems: tuple[str, ...] = ()


class Logins:
    """`agents` is the folder that has `<id>/agent/auth-profiles.json`; None where no files are read. `borrowed` reads
    the logins of other programs, `look` what a key refers to (source, provider, id), raising NotFound; both may block.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        agents: Path | None = None,
        borrowed: Callable[[], Iterable[Profile]] = tuple,
        *,
        look: Look = _nowhere,
    ) -> None:
        self._look = look
        self._db, self._clock, self._agents, self._borrowed = db, clock, agents, borrowed

    async def load(self) -> Kept:
        """Everything, as it stands now; a database is not made for it. Raises what the store raises."""
        if not await asyncio.to_thread(self._db.path.exists):
            return await asyncio.to_thread(self.read_by, None)
        return await self._db.read(self.read_by)

    def read_by(self, connection: Connection | None) -> Kept:
        """`load` by a connection that is there, or without a database."""
        files = {} if self._agents is None else documents(self._agents)
        found: dict[Owned, Profile] = {("", each.id): each for each in self._borrowed()}
        health: dict[Owned, Health] = {}
        orders: dict[Owned, tuple[str, ...]] = {}
        problems: list[str] = []
        for agent, document in files.items():
            found |= {(agent, each.id): each for each in document.profiles}
            health |= {(agent, id_): Health(at) for id_, at in document.used.items()}
            orders |= {(agent, provider): ids for provider, ids in document.order.items()}
            problems += [f"agents/{agent}/agent/{NAME}: {problem}" for problem in document.problems]
        if connection is not None:
            own = _stored(connection)
            found, health, orders = found | dict(own.profiles), health | dict(own.health), orders | dict(own.orders)
        return Kept({owned: self._looked_up(each) for owned, each in found.items()}, health, orders, tuple(problems))

    def _looked_up(self, profile: Profile) -> Profile:
        """With its secret, where that stands elsewhere."""
        at = profiles.referred(profile)
        if at is None:
            return profile
        try:
            return replace(profile, secret=Secret(self._look(*at)))
        except NotFound as fault:
            return replace(profile, secret=Secret("", missing=f"{profile.id}: {fault.message}"))

    async def get(self, agent: str, id_: str) -> Profile | None:
        """One login as it stands in the database or its file now."""
        return (await self.load()).profiles.get((agent, id_))

    async def put(self, profile: Profile) -> Profile:
        """Keep a login, whatever was kept under its id; its faults of before are forgotten. It is on disk then."""

        def work(connection: Connection) -> Profile:
            connection.execute("DELETE FROM auth_health WHERE agent=? AND id=?", (profile.agent, profile.id))
            return self._put(connection, profile)

        return await self._db.write(work, durable=True)

    def _put(self, connection: Connection, profile: Profile) -> Profile:
        key = (profile.agent, profile.id)
        row = connection.execute("SELECT version FROM auth_profiles WHERE agent=? AND id=?", key).fetchone()
        new = replace(profile, version=(row[0] if row else 0) + 1)
        connection.execute(
            "INSERT OR REPLACE INTO auth_profiles VALUES (?,?,?,?,?,?,?)",
            (*key, new.provider, new.kind, _json(profiles.written(new)), new.version, self._clock.now_ms()),
        )
        return new

    async def swap(self, old: Profile, new: Profile) -> Profile | None:
        """Keep `new` where `old` is what is kept still; None where somebody else changed it meanwhile."""

        def work(connection: Connection) -> Profile | None:
            query = "SELECT version FROM auth_profiles WHERE agent=? AND id=?"
            row = connection.execute(query, (old.agent, old.id)).fetchone()
            return self._put(connection, new) if (row[0] if row else 0) == old.version else None

        return await self._db.write(work, durable=True)

    async def remove(self, agent: str, id_: str) -> bool:
        """Whether the database had it. One of a file stays there."""

        def work(connection: Connection) -> bool:
            connection.execute("DELETE FROM auth_health WHERE agent=? AND id=?", (agent, id_))
            query = "DELETE FROM auth_profiles WHERE agent=? AND id=?"
            return connection.execute(query, (agent, id_)).rowcount > 0

        return await self._db.write(work, durable=True)

    async def order(self, agent: str, provider: str, ids: tuple[str, ...] | None) -> None:
        """Set the order of a provider's logins; None forgets it."""
        query = "DELETE FROM auth_orders WHERE agent=? AND provider=?"
        await self._db.write(lambda c: c.execute(query, (agent, provider)))
        if ids is not None:
            row = (agent, provider, _json(list(ids)))
            await self._db.write(lambda c: c.execute("INSERT OR REPLACE INTO auth_orders VALUES (?,?,?)", row))

    def note(self, owned: Owned, health: Health) -> None:
        """Keep how a login is, with whatever else is written next; nobody waits for it."""
        row = (*owned, _json(cooldowns.health_json(health)))
        self._post(lambda c: c.execute("INSERT OR REPLACE INTO auth_health VALUES (?,?,?)", row))

    def _post(self, work: Any) -> None:
        self._db.post(work, _settled)

    async def pin(self, session: str, provider: str) -> str:
        """The login that a conversation stays with; empty where there is none."""
        query = "SELECT profile FROM auth_pins WHERE session=? AND provider=?"
        row = await self._db.read(lambda c: c.execute(query, (session, provider)).fetchone())
        return "" if row is None else str(row[0])

    def keep_pin(self, session: str, provider: str, id_: str) -> None:
        """Stay with a login from now on; nobody waits for it. Pins that are very old go."""
        now = self._clock.now_ms()

        def work(connection: Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO auth_pins VALUES (?,?,?,?)", (session, provider, id_, now))
            connection.execute("DELETE FROM auth_pins WHERE at<?", (now - PINS_MS,))

        self._post(work)


def kept(path: Path, agents: Path, clock: Clock) -> Kept:
    """What is kept in the database at `path` and in the agents' files, for programs without a loop. Raises what the
    store raises. Blocks.
    """
    db = Database(path)
    try:
        return db.read_now(Logins(db, clock, agents).read_by)
    finally:
        db.close_now()


def _stored(connection: Connection) -> Kept:
    """What the database has."""
    found, health, orders = {}, {}, {}
    for agent, id_, body, version in connection.execute("SELECT agent, id, body, version FROM auth_profiles"):
        profile = profiles.read(id_, msgspec.json.decode(body), agent, version)
        if profile is not None:
            found[agent, id_] = profile
    for agent, id_, body in connection.execute("SELECT agent, id, body FROM auth_health"):
        health[agent, id_] = cooldowns.health_from(msgspec.json.decode(body))
    for agent, provider, ids in connection.execute("SELECT agent, provider, ids FROM auth_orders"):
        orders[agent, provider] = tuple(msgspec.json.decode(ids))
    return Kept(found, health, orders)


NAME: Final = "auth-profiles.json"


def documents(agents: Path) -> dict[str, Document]:
    """What each agent's file says. One that others may read is closed to them. Blocks."""
    found = {}
    for path in sorted(agents.glob(f"*/agent/{NAME}")):
        agent = path.parent.parent.name
        found[agent] = _document(path, agent)
    return found


def _document(path: Path, agent: str) -> Document:
    try:
        state = path.stat()
        if state.st_size > MOST_BYTES:
            return Document(problems=("it is too large",))
        if stat.S_IMODE(state.st_mode) & 0o077:
            log.warning("%s could be read by others; now only by its owner", path)
            path.chmod(0o600)
        return profiles.parse(json.loads(path.read_text("utf-8")), agent)
    except (OSError, ValueError) as error:
        return Document(problems=(f"it cannot be read: {error}",))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _settled(error: BaseException | None) -> None:
    if error is not None:
        log.warning("how a provider's login is could not be written: %s", error)
