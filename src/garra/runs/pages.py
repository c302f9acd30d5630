"""A stored conversation as a context engine may put it in order: by a new branch, never by writing over anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from garra.core.errors import UserError
from garra.core.messages import Message
from garra.core.transcript import Entry
from garra.domains.sessions.transcript import Transcript

MOVED = "the conversation has gone on meanwhile: ask for its rows again"


class StoredPages:
    """`sdk.context.Pages` over one transcript, while nothing else is stored in it."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._leaf: str | None = None
        self._known: frozenset[str] = frozenset()

    def rows(self) -> Sequence[tuple[str, Message]]:
        rows = self._transcript.shown().rows
        self._leaf, self._known = self._transcript.leaf, frozenset(id_ for id_, _ in rows)
        return rows

    async def rewrite(self, changed: Mapping[str, Message | None]) -> int:
        entries = self._checked(changed)
        at = next((index for index, entry in enumerate(entries) if entry.id in changed), None)
        if at is None:
            return 0
        await self._transcript.branch(entries[at - 1].id if at else None)
        moved: dict[str, str] = {}
        for entry in entries[at:]:
            if entry.id not in changed:
                moved[entry.id] = (await self._again(entry, moved)).id
            elif (message := changed[entry.id]) is not None:
                moved[entry.id] = (await self._transcript.append(message)).id
        return len(moved)

    async def summarise(self, summary: str, first_kept: str) -> None:
        self._checked({first_kept: None})
        await self._transcript.note("compaction", {"summary": summary, "firstKeptEntryId": first_kept})

    def _checked(self, changed: Mapping[str, Message | None]) -> tuple[Entry, ...]:
        if self._leaf != self._transcript.leaf:
            raise UserError(MOVED)
        entries = self._transcript.entries()
        places = {entry.id for entry in entries if entry.type == "message"} & self._known
        if foreign := next((id_ for id_ in changed if id_ not in places), None):
            raise UserError(f"{foreign!r} is no message of this conversation")
        return entries

    async def _again(self, entry: Entry, moved: Mapping[str, str]) -> Entry:
        """The same once more, at the end of the new branch; what it says of entries it says of those in their place."""
        body = {name: value for name, value in entry.body.items() if name not in HEAD}
        return await self._transcript.note(entry.type, body if entry.type == "message" else _renamed(body, moved))


HEAD: Final = frozenset(("type", "id", "parentId", "timestamp"))
"""What each entry gets when it is stored."""


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case str():
            return names.get(value, value)
        case Mapping():
            return {name: _renamed(each, names) for name, each in value.items()}
        case list():
            return [_renamed(each, names) for each in value]
        case _:
            return value
