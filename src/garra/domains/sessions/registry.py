"""The registry in memory and in the database, and its mirror in each agent's `sessions.json`.

Memory is always right; what changes while a run goes on gathers for half a second before it is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import OrderedDict
from functools import partial
from pathlib import Path

from garra.core.errors import Conflict, UserError
from garra.domains.sessions import places, rows
from garra.domains.sessions.rows import Page, Query
from garra.domains.sessions.session import Session
from garra.io.files import atomic
from garra.io.store.db import Connection, Database
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

FLUSH_S = 0.5
"""How long changes gather before they are written."""

MIRROR_S = 0.4
"""How long after that the mirror is written; longer where writing it takes long."""

RETRY_S = 5.0
"""How long after a write that failed it is tried again."""

KEPT = 2_000
"""Sessions kept in memory."""


class Registry:
    """Sessions by key. `put` takes effect at once; `flush` returns when it is committed."""

    def __init__(self, db: Database, root: Path, clock: Clock) -> None:
        self._db = db
        self._root = root
        self._clock = clock
        self._rows: OrderedDict[str, Session] = OrderedDict()
        self._known = rows.Known()
        self._dirty: dict[str, Session] = {}
        self._writing = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stale: set[str] = set()
        self._mirror_timer: asyncio.TimerHandle | None = None
        self._mirroring: asyncio.Future[None] | None = None
        self._mirror_lock = threading.Lock()
        self._closed = False
        self._mirror_cost = 0.0

    async def get(self, key: str) -> Session | None:
        if (found := self.kept(key)) is not None:
            return found
        row = await self._db.read(lambda c: rows.get(c, key))
        return self.kept(key) or (self._keep(row) if row is not None else None)

    def kept(self, key: str) -> Session | None:
        """The session, if it is in memory (each one that has an open transcript is)."""
        found = self._rows.get(key)
        if found is not None:
            self._rows.move_to_end(key)
        return found

    async def find(self, session_id: str) -> Session | None:
        """The session whose current transcript is `session_id`."""
        await self.flush()
        return await self._db.read(lambda c: rows.by_id(c, session_id))

    async def page(self, query: Query) -> Page:
        await self.flush()
        return await self._db.read(lambda c: rows.page(c, query, self._known))

    async def every(self) -> list[Session]:
        await self.flush()
        return await self._db.read(rows.every)

    async def count(self) -> int:
        return await self._db.read(rows.count)

    async def check_label(self, session: Session) -> None:
        """Raises Conflict when another session of the agent has this label."""
        label = session.label
        if label is None:
            return
        await self.flush()
        taken = await self._db.read(lambda c: rows.labelled(c, session.agent_id, label))
        if taken not in (None, session.key):
            raise Conflict(f"label already in use: {label!r} names {taken}")

    def put(self, session: Session) -> Session:
        """Change or add a session; it is written soon, or with the next `flush`."""
        self._keep(session)
        self._dirty[session.key] = session
        self._stale.add(session.agent_id)
        self._soon()
        return session

    async def flush(self, *, durable: bool = False) -> None:
        """Return when all changes so far are committed. Raises Unavailable; they are then kept for the next time."""
        if not self._dirty and not self._writing:
            return
        dirty, committed = self._take(), False
        try:
            await self._db.write(lambda c: rows.put(c, dirty.values()), durable=durable)
            committed = True
        finally:
            self._settled(dirty, committed=committed)

    async def remove(self, session: Session) -> None:
        """Take a session out. Raises Unavailable; then it is still there."""
        self._forget(session)
        await self._db.write(lambda c: rows.remove(c, session.key), durable=True)
        self._forget(session)
        self._stale.add(session.agent_id)
        self._soon()

    def forget(self, key: str) -> None:
        """Have a session read from the database when it is asked for next. Call `flush` before."""
        if key not in self._dirty:
            self._rows.pop(key, None)

    async def close(self) -> None:
        """Write what is left, the mirrors too. What the disk refuses is logged; the transcripts hold it."""
        self._closed = True
        for timer in (self._timer, self._mirror_timer):
            if timer is not None:
                timer.cancel()
        try:
            await self.flush()
        except UserError as error:
            log.error("the newest changes of sessions are lost: %s", error)  # noqa: TRY400 - a line, not a traceback
        await asyncio.to_thread(self._write_mirrors, self._changed())

    def _keep(self, session: Session) -> Session:
        self._rows[session.key] = session
        self._rows.move_to_end(session.key)
        if len(self._rows) > KEPT:
            oldest = next((key for key in self._rows if key not in self._dirty), session.key)
            del self._rows[oldest]
        return session

    def _forget(self, session: Session) -> None:
        self._rows.pop(session.key, None)
        self._dirty.pop(session.key, None)

    def _soon(self, delay_s: float = FLUSH_S) -> None:
        if self._timer is None and not self._closed:
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._write_soon)

    def _take(self) -> dict[str, Session]:
        """The changes that are now being written."""
        dirty, self._dirty = self._dirty, {}
        self._writing += 1
        return dirty

    def _settled(self, dirty: dict[str, Session], *, committed: bool) -> None:
        """What could not be written is kept and tried again."""
        self._writing -= 1
        if not committed:
            self._dirty = {**dirty, **self._dirty}
            self._soon(RETRY_S)

    def _write_soon(self) -> None:
        """The timer's: start writing the rows, and the mirrors a little later."""
        self._timer = None
        dirty = self._take()
        loop = asyncio.get_running_loop()

        def settled(error: BaseException | None) -> None:
            if error is not None:
                log.error("sessions are not in the registry yet: %s", error)
            with contextlib.suppress(RuntimeError):  # the program has ended
                loop.call_soon_threadsafe(partial(self._settled, dirty, committed=error is None))

        def work(connection: Connection) -> None:
            rows.put(connection, dirty.values())

        self._db.post(work, settled)
        if self._mirror_timer is None:
            self._mirror_timer = loop.call_later(max(MIRROR_S, 20 * self._mirror_cost), self._mirror_soon)

    def _mirror_soon(self) -> None:
        self._mirror_timer = None
        self._mirroring = asyncio.get_running_loop().run_in_executor(None, self._write_mirrors, self._changed())

    def _changed(self) -> set[str]:
        """The agents whose mirrors are to be written now."""
        agents, self._stale = self._stale, set()
        return agents

    def _write_mirrors(self, agents: set[str]) -> None:
        """Write the `sessions.json` of each agent that changed; runs in a thread. One that cannot be is logged."""
        with self._mirror_lock:
            began = self._clock.monotonic()
            for agent in sorted(agents):
                try:
                    entries = self._db.read_now(partial(rows.mirror, agent_id=agent))
                    text = ",\n".join(f" {rows.quoted(key)}: {entry}" for key, entry in entries)
                    atomic.write(places.folder(self._root, agent) / "sessions.json", f"{{\n{text}\n}}\n".encode())
                except (OSError, UserError) as error:
                    log.warning("sessions.json of agent %s is not up to date: %s", agent, error)
            self._mirror_cost = self._clock.monotonic() - began
