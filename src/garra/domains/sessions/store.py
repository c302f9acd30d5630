"""All sessions: the registry, the open transcripts, and what can be done with them."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from garra.core import keys, transcript
from garra.core.blots import NONE, Blots
from garra.core.errors import Conflict, NotFound
from garra.core.ids import AgentId, SessionId, SessionKey
from garra.core.messages import Message
from garra.core.transcript import Entry
from garra.domains.sessions import changes as patches
from garra.domains.sessions import places, reading, restore
from garra.domains.sessions.reading import Hit, Line
from garra.domains.sessions.registry import Registry
from garra.domains.sessions.renewed import renewed, restored, told
from garra.domains.sessions.rows import Page, Query
from garra.domains.sessions.session import Session, entry_json, said, touched
from garra.domains.sessions.transcript import Transcript
from garra.io.store.db import Database
from garra.io.store.lines import Lines
from garra.sdk.ports import Clock
from garra.sdk.recent import Recent

__all__ = ["BORN", "Page", "Query", "Session", "Sessions", "Transcript", "entry_json"]

log = logging.getLogger(__name__)

OPEN_BYTES = 16 << 20
"""How much of transcripts stays in memory while nobody uses them, about; as much again, and more, of long ones."""

LARGE = 65_536
"""Bytes of a transcript from which on it is read in a thread."""

BORN = restore.BORN


class Sessions:
    """`root` is the folder of all agents; `<root>/<agent>/sessions/<id>.jsonl` are the transcripts, by `lines`."""

    def __init__(
        self,
        db: Database,
        root: Path,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        open_bytes: int = OPEN_BYTES,
        lines: Lines | None = None,
        blots: Callable[[], Blots] = lambda: NONE,
    ) -> None:
        self._root = root
        self._clock = clock
        self._new_id = new_id
        self._registry = Registry(db, root, clock)
        self._lines = lines or Lines()
        self._blots = blots
        self._open: Recent[str, Transcript] = Recent(open_bytes)
        self._alive: weakref.WeakValueDictionary[str, Transcript] = weakref.WeakValueDictionary()
        self._locks: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._looking = asyncio.Lock()  # one search at a time: others need the threads as well
        self._ready = False

    async def open(self) -> None:
        """Restore the registry from mirrors and transcripts where it is empty. Done by the first use at the latest."""
        if self._ready:
            return
        if await self._registry.count() == 0:
            found = await asyncio.to_thread(restore.scan, self._root)
            for session in found:
                self._registry.put(session)
            await self._registry.flush(durable=True)
            if found:
                log.warning("the session registry was empty: %d sessions restored from their transcripts", len(found))
        self._ready = True

    async def close(self) -> None:
        """Write everything; the database stays open, it is another's."""
        await self._registry.close()
        await self._lines.close()

    async def flush(self) -> None:
        """Return when all changes so far are in the database. Raises Unavailable."""
        await self._registry.flush()

    async def renew(self, key: str) -> None:
        """Forget what memory says of a session: another process may have gone on with it. It is read anew when used."""
        await self._registry.flush()
        async with self._lock(key):
            self._registry.forget(key)
            self._open.pop(key)
            self._alive.pop(key, None)

    async def get(self, key: str) -> Session | None:
        await self.open()
        return await self._registry.get(key)

    async def by_id(self, session_id: str) -> Session | None:
        """The session whose current transcript has this id."""
        await self.open()
        return await self._registry.find(session_id)

    async def need(self, key: str) -> Session:
        """Raises NotFound."""
        session = await self.get(key)
        if session is None:
            raise NotFound(f"there is no session {key}")
        return session

    async def ensure(
        self,
        key: str,
        *,
        agent_id: str,
        cwd: str,
        created_via: str = "run",
        session_id: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Session:
        """The session of `key`, made where there is none; its transcript's header is then on the disk."""
        if (found := await self.get(key)) is not None:
            return found
        lock = self._lock(key)
        waited = lock.locked()
        async with lock:
            if waited and (found := await self._registry.get(key)) is not None:
                return found
            now = self._clock.now_ms()
            chosen = keys.session_id(session_id or self._new_id())
            agent = keys.agent_id(agent_id)
            session = Session(SessionKey(key), chosen, agent, now, now, now, created_via, extra=dict(extra or {}))
            opened = await self._begin(session, cwd)
            self._registry.put(session)
            await self._registry.flush(durable=True)
            self._keep(key, opened)
            return session

    async def list(self, query: Query | None = None) -> Page:
        """Newest first."""
        await self.open()
        return await self._registry.page(query or Query())

    async def patch(self, key: str, changes: Mapping[str, Any]) -> Session:
        """Change a session by the wire's names. Raises NotFound, Conflict (a label in use), UserError (a bad value)."""
        session = await self.need(key)
        if changes.get("label") is not None:
            await self._registry.check_label(patches.apply(session, changes))
        changed = self._registry.put(touched(patches.apply(self._now(session), changes), self._clock.now_ms()))
        await self._registry.flush()
        return changed

    async def record(self, key: str, **fields: Any) -> Session:
        """Set fields of `Session` that are ours to know; `extra` is merged. Written soon, not at once."""
        session = self._now(await self.need(key))
        extra = {**session.extra, **fields.pop("extra", {})}
        return self._registry.put(touched(session, self._clock.now_ms(), extra=extra, **fields))

    async def reset(self, key: str, reason: str = "reset", *, cwd: str | None = None, digest: bool = False) -> Session:
        """Begin anew under the same key: a new session id and file; the old file stays as it is, and `undo` takes it up
        again. `digest`: the new one is told in brief of the old one.
        """
        session = await self.need(key)
        brief = told(await (await self.transcript(key)).read()) if digest else None
        async with self._lock(key):
            folder = cwd if cwd is not None else await self._folder(session)
            now = self._clock.now_ms()
            fresh = renewed(self._now(session), keys.session_id(self._new_id()), now, reason)
            opened = await self._begin(fresh, folder, reason=reason, previous=session.session_id)
            if brief is not None:
                await opened.note("custom_message", brief)
            self._registry.put(fresh)
            await self._registry.flush(durable=True)
            self._keep(key, opened)
        return fresh

    async def undo(self, key: str) -> Session:
        """Take up again the conversation before the last reset, within a day; the one that ends is kept, and a second
        `undo` goes back to it. Raises UserError where there is none.
        """
        session = await self.need(key)
        async with self._lock(key):
            former = restored(self._now(session), self._clock.now_ms())
            if not await asyncio.to_thread((await self._path(former)).is_file):
                raise NotFound("The conversation before this one is gone.")
            self._open.pop(key)
            self._alive.pop(key, None)
            self._registry.put(former)
            await self._registry.flush(durable=True)
        return former

    async def delete(self, key: str) -> Path | None:
        """Take the session away; its transcript is kept under a new name, which is given back.

        Raises NotFound. A run that still holds the transcript cannot write to it any more.
        """
        session = await self.need(key)
        async with self._lock(key):
            held = self._alive.pop(key, None)
            self._open.pop(key)
            if held is not None:
                held.retire("was deleted")
            kept: Path | None = None
            path = await self._path(session)
            stamp = transcript.stamp(self._clock.now_ms()).replace(":", "-")
            try:
                kept = path.with_name(f"{path.name}.deleted.{stamp}")
                await self._lines.rename(path, kept)
            except NotFound:
                kept = None
            await self._registry.remove(session)
        return kept

    async def fork(
        self,
        key: str,
        new_key: str,
        entry_id: str | None = None,
        *,
        created_via: str = "fork",
        extra: Mapping[str, Any] | None = None,
    ) -> Session:
        """Copy the active branch, up to `entry_id` where given, into a new session. Raises NotFound and Conflict.

        `extra` takes the place of what else the old session has.
        """
        source = await self.need(key)
        opened = await self.transcript(key)
        if await self.get(new_key) is not None:
            raise Conflict(f"there is a session {new_key} already")
        branch = opened.entries() if entry_id is None else opened.branch_to(entry_id)
        now = self._clock.now_ms()
        forked = replace(
            source,
            key=SessionKey(new_key),
            session_id=keys.session_id(self._new_id()),
            agent_id=AgentId(keys.agent_of(new_key, source.agent_id)),
            created_at=now,
            updated_at=now,
            started_at=now,
            created_via=created_via,
            label=None,
            archived=False,
            pinned=False,
            extra={
                **(source.extra if extra is None else extra),
                "forkedFrom": {"key": key, "sessionId": source.session_id},
            },
        )
        header = transcript.header(
            forked.session_id, str(opened.header.get("cwd", "")), now, parentSession=source.session_id
        )
        lines = [transcript.encode(header), *(entry.raw for entry in branch)]
        async with self._lock(new_key):
            await self._lines.create(places.fresh(self._root, forked.agent_id, forked.session_id), lines)
            self._registry.put(forked)
            await self._registry.flush(durable=True)
        return forked

    async def adopt(self, session: Session, lines: Sequence[bytes], *, current: bool = True) -> None:
        """Take over a conversation that was written elsewhere; one that is not `current` is only kept as a file.

        Raises Conflict where its transcript is here already.
        """
        await self.open()
        async with self._lock(session.key):
            await self._lines.create(places.fresh(self._root, session.agent_id, session.session_id), list(lines))
            if current:
                self._alive.pop(session.key, None)
                self._open.pop(session.key)
                self._registry.put(session)
                await self._registry.flush(durable=True)

    async def transcript(self, key: str) -> Transcript:
        """The open transcript of a session; everybody who asks at the same time gets the same one. Raises NotFound."""
        session = await self.need(key)
        found = self._alive.get(key)
        if found is None:
            async with self._lock(key):
                found = self._alive.get(key) or await self._load(await self.need(key))
        self._keep(key, found)
        self._now(session)
        return found

    async def preview(self, key: str, limit: int = 12, chars: int = 240) -> tuple[Line, ...]:
        """The last words of a session, oldest first. Raises NotFound."""
        session = await self.need(key)
        return await asyncio.to_thread(reading.tail, self._root, session, limit, chars)

    async def search(
        self,
        text: str,
        *,
        agent_id: str | None = None,
        limit: int = 20,
        keep: Callable[[Session], bool] = lambda _: True,
        ended: bool = False,
    ) -> tuple[Hit, ...]:
        """Messages that hold `text`, in whichever case, of the newest sessions first, of those that `keep` picks.

        `ended` looks into what was said before a session began anew, too.
        """
        await self.open()
        page = await self._registry.page(Query(agent_id=agent_id, archived=None, limit=reading.SEARCHED))
        kept = tuple(filter(keep, page.sessions))
        async with self._looking:
            return await asyncio.to_thread(reading.search, self._root, kept, text, limit, ended=ended)

    async def read(self, key: str) -> tuple[Session, tuple[Entry, ...]]:
        """A session and its active branch, read without opening it: another process may be writing. Raises NotFound."""
        session = await self.need(key)
        return session, await asyncio.to_thread(reading.branch, self._root, session)

    async def export(self, key: str, form: str = "jsonl") -> bytes:
        """The transcript as it lies on the disk (`jsonl`) or to be read (`md`). Raises NotFound and UserError."""
        session = await self.need(key)
        return await asyncio.to_thread(reading.export, self._root, session, form)

    def _lock(self, key: str) -> asyncio.Lock:
        """One opening, making or removing of a session at a time."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def _now(self, session: Session) -> Session:
        """`session` as it is at this moment: others may have changed it since it was read."""
        return self._registry.kept(session.key) or session

    async def _path(self, session: Session) -> Path:
        """Raises UserError or Forbidden for an id that leads out of the agent's folder."""
        return await asyncio.to_thread(places.transcript, self._root, session.agent_id, session.session_id)

    def _keep(self, key: str, opened: Transcript) -> None:
        self._alive[key] = opened
        self._open.put(key, opened, opened.size)

    async def _begin(self, session: Session, cwd: str, **why: Any) -> Transcript:
        """Write the head of a new transcript. Raises Conflict where there is such a file."""
        now = session.started_at
        told = {"key": session.key, "agentId": session.agent_id, "createdVia": session.created_via, **why}
        born = transcript.entry(
            "custom", {"customType": BORN, "data": told}, id_=self._new_id(), parent=None, now_ms=now
        )
        path = places.fresh(self._root, session.agent_id, session.session_id)
        lines = [transcript.encode(transcript.header(session.session_id, cwd, now)), born.raw]
        await self._lines.create(path, lines)
        return self._opened(session, path, b"".join(line + b"\n" for line in lines))

    async def _folder(self, session: Session) -> str:
        opened = await self._load(session)
        return str(opened.header.get("cwd", ""))

    async def _load(self, session: Session) -> Transcript:
        path = await self._path(session)
        try:
            data = await self._lines.load(path)
        except NotFound:
            log.warning("the transcript %s is gone: session %s goes on with an empty one", path, session.key)
            return await self._begin(session, "")
        if len(data) > LARGE:
            opened = await asyncio.to_thread(self._opened, session, path, data)
        else:
            opened = self._opened(session, path, data)
        if opened.skipped:
            log.warning("%s: %d lines cannot be read and are left out", path, opened.skipped)
        return opened

    def _opened(self, session: Session, path: Path, data: bytes) -> Transcript:
        """A transcript with all its messages read; may run in a thread, for nobody else has it yet."""
        opened = Transcript(
            session.session_id,
            path,
            transcript.load(data),
            lines=self._lines,
            clock=self._clock,
            new_id=self._new_id,
            stored=partial(self._stored, session.key, session.session_id),
            blots=self._blots,
        )
        opened.messages()
        return opened

    def _stored(self, key: SessionKey, session_id: SessionId, _entry: Entry, message: Message | None) -> None:
        """An entry is on the disk: the registry shows it."""
        if (grown := self._open.get(key)) is not None:
            self._open.put(key, grown, grown.size)
        session = self._registry.kept(key)
        if session is None or session.session_id != session_id or message is None:
            return
        self._registry.put(said(session, message, self._clock.now_ms()))
