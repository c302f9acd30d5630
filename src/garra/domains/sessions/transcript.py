"""One open transcript: its tree in memory, its lines on the disk. What `append` has returned is on the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from garra.core import transcript
from garra.core.blots import NONE, Blots
from garra.core.errors import NotFound
from garra.core.ids import SessionId
from garra.core.messages import Message, ToolCall
from garra.core.transcript import Entry, Loaded, Shown
from garra.io.store.lines import Lines
from garra.sdk.ports import Clock

Stored = Callable[[Entry, Message | None], None]
"""Told of each new entry, with its message where it is one, when it is on the disk."""

ENTRY_BYTES = 520
"""What an entry weighs in memory beside its text, about (measured over 10,000 short ones)."""
TREE_BYTES = 4_096
"""What a transcript without entries weighs."""


def _weight(entry: Entry) -> int:
    """What an entry weighs in memory, about: its line, the message that was read from it, and what holds both."""
    return 2 * len(entry.raw) + ENTRY_BYTES


class Transcript:
    """One session's file. Appends go one behind another in the order they were called."""

    def __init__(
        self,
        session_id: SessionId,
        path: Path,
        loaded: Loaded,
        *,
        lines: Lines,
        clock: Clock,
        new_id: Callable[[], str],
        stored: Stored | None = None,
        blots: Callable[[], Blots] = lambda: NONE,
    ) -> None:
        self.session_id = session_id
        self.path = path
        self.header: Mapping[str, Any] = loaded.header
        self.leaf: str | None = transcript.tip(loaded.entries)
        self.size = TREE_BYTES + sum(map(_weight, loaded.entries))
        self.skipped = loaded.skipped
        self._lines = lines
        self._clock = clock
        self._new_id = new_id
        self._stored = stored
        self._blots = blots
        self._index = {entry.id: entry for entry in loaded.entries}
        self._tip = self.leaf
        self._retired = ""
        self._branch: list[Entry] | None = None
        self._spoken = 0
        self._told: list[Message] | None = None
        self._entries_cache: tuple[Entry, ...] | None = None
        self._messages_cache: tuple[Message, ...] | None = None
        self.since = 0
        """When what a model is shown was last made smaller, as far as `messages` was read; 0 for never."""

    def entries(self) -> tuple[Entry, ...]:
        """The active branch from its root to its leaf."""
        if self._entries_cache is None:
            self._entries_cache = tuple(self._way())
        return self._entries_cache

    def messages(self) -> tuple[Message, ...]:
        """What a model is shown of the active branch."""
        if self._messages_cache is None:
            if self._told is None:
                found = transcript.shown(self._way())
                self._told, self.since = [message for _, message in found.rows], found.since
            self._messages_cache = tuple(self._told)
        return self._messages_cache

    def shown(self) -> Shown:
        """The same with the ids of the entries; costs work for each of them."""
        return transcript.shown(self._way())

    async def read(self) -> Shown:
        """`shown`, read in a thread; `messages` has it then, too."""
        entries = self.entries()
        found = await asyncio.to_thread(transcript.shown, entries)
        if self.entries() is entries and self._told is None:
            self._told, self.since = [message for _, message in found.rows], found.since
            self._messages_cache = None
        return found

    def every(self) -> tuple[Entry, ...]:
        """All entries in the order they were written, abandoned branches too."""
        return tuple(self._index.values())

    def get(self, entry_id: str) -> Entry | None:
        return self._index.get(entry_id)

    def interrupted(self) -> tuple[ToolCall, ...]:
        """Calls that the last answer asked for and that never ended; a request to a model says so of each."""
        return transcript.unanswered(self.messages())

    def number(self, entry_id: str) -> int | None:
        """Which message of the active branch it is, counting from 1; quick for the newest ones."""
        after = 0
        for entry in reversed(self._way()):
            if entry.type == "message":
                if entry.id == entry_id:
                    return self._spoken - after
                after += 1
        return None

    def branch_to(self, entry_id: str) -> tuple[Entry, ...]:
        """The entries from the root to `entry_id`. Raises NotFound."""
        if entry_id not in self._index:
            raise NotFound(f"session {self.session_id} has no entry {entry_id}")
        return transcript.branch(self._index, entry_id)

    def retire(self, why: str) -> None:
        """Nothing can be stored any more: the session `why`."""
        self._retired = why

    async def append(self, message: Message) -> Entry:
        """Store a message at the end of the active branch, without the secrets that are known.

        Raises TypeError or ValueError for what cannot be stored and Unavailable when the disk refuses; then nothing is.
        """
        message = self._blots().message(message)
        entry = transcript.message_entry(message, id_=self._new_id(), parent=self._tip, now_ms=self._clock.now_ms())
        return await self._store(entry, message)

    async def note(self, kind: str, body: Mapping[str, Any]) -> Entry:
        """Store an entry that is no message, such as `model_change` or `compaction`. Raises as `append`."""
        body = self._blots().value(body)
        entry = transcript.entry(kind, body, id_=self._new_id(), parent=self._tip, now_ms=self._clock.now_ms())
        return await self._store(entry, None)

    async def branch(self, entry_id: str | None) -> Entry:
        """Go on behind `entry_id` (`None`: the very beginning); what came after it stays stored, but is not active.

        Raises NotFound when there is no such entry.
        """
        if entry_id is not None:
            self.branch_to(entry_id)
        entry = transcript.leaf_entry(entry_id, id_=self._new_id(), now_ms=self._clock.now_ms())
        return await self._store(entry, None)

    async def _store(self, entry: Entry, message: Message | None) -> Entry:
        """Write it, even when whoever waits is cancelled: the tree in memory is never another than the file's."""
        if self._retired:
            raise NotFound(f"session {self.session_id} {self._retired}: nothing can be added to it")
        before, self._tip = self._tip, transcript.after(entry)
        written = self._lines.post(self.path, [entry.raw])
        written.add_done_callback(lambda done: self._landed(done, entry, message, before))
        await asyncio.shield(written)
        return entry

    def _landed(self, done: asyncio.Future[object], entry: Entry, message: Message | None, before: str | None) -> None:
        if not done.cancelled() and done.exception() is None:
            self._add(entry, message)
        elif self._tip == transcript.after(entry):
            self._tip = before

    def _add(self, entry: Entry, message: Message | None) -> None:
        self._index[entry.id] = entry
        self.size += _weight(entry)
        straight = entry.type != "leaf" and entry.parent == self.leaf
        self.leaf = transcript.after(entry)
        self._entries_cache = self._messages_cache = None
        if straight and self._branch is not None:
            self._branch.append(entry)
            self._spoken += entry.type == "message"
        else:
            self._branch = None
        if not straight or transcript.shrinks(entry):
            self._told = None
        elif self._told is not None and (said := message or transcript.told(entry)) is not None:
            self._told.append(said)
        if self._stored is not None:
            self._stored(entry, message)

    def _way(self) -> list[Entry]:
        if self._branch is None:
            self._branch = list(transcript.branch(self._index, self.leaf))
            self._spoken = sum(entry.type == "message" for entry in self._branch)
        return self._branch
