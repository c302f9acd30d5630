"""Files of memory as a conversation's prompt shows them: as they were when it began.

A provider keeps a prompt in its cache as long as its beginning stays the same, and agents write to their memory all
the time. So a conversation goes on with the text it began with, and what changed since is told behind the history. With
a new conversation, and after one was summed up, the prompt has the new text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from garra.core.budget import Document
from garra.core.ids import SessionId
from garra.core.value import frozen
from garra.sdk.recent import Recent

NAMES: Final = frozenset(("MEMORY.md", "USER.md"))
"""The files that agents write what they learn to."""
CONVERSATIONS: Final = 512
"""Of so many conversations it is known how they began, without looking it up."""
STORED: Final = 256
"""Of so many whose memory changed it outlasts a restart."""


class Shelf(Protocol):
    """As much of `io.store.shelf.Shelf` as is needed."""

    async def get(self, key: str) -> Any: ...

    async def items(self) -> dict[str, Any]: ...

    async def set(self, key: str, value: Any) -> None: ...

    async def remove(self, key: str) -> bool: ...


@frozen
class _Begun:
    """The files a conversation began with. `since`: when its history was last made smaller. `kept`: they are stored."""

    since: int
    files: Mapping[str, Document]
    kept: bool = False


class Held:
    """How conversations began; without a shelf, until the program ends."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self._shelf = shelf
        self._begun: Recent[SessionId, _Begun] = Recent(CONVERSATIONS)

    async def settle(
        self, session: SessionId, since: int, documents: tuple[Document, ...]
    ) -> tuple[tuple[Document, ...], tuple[str, ...]]:
        """The files as the prompt shows them, and what is to be said of those that changed."""
        begun = self._begun.get(session) or await self._stored(session, documents)
        if begun is None or begun.since != since:
            begun = _Begun(since, {each.name: each for each in documents if each.name in NAMES})
        held = tuple(begun.files.get(each.name, each) for each in documents)
        changed = [(old, new) for old, new in zip(held, documents, strict=True) if old is not new and old != new]
        if changed and not begun.kept:
            begun = replace(begun, kept=True)
            await self._store(session, begun)
        self._begun.put(session, begun, 1)
        return held, _notes(changed) if changed else ()

    async def _stored(self, session: SessionId, documents: Iterable[Document]) -> _Begun | None:
        found = await self._shelf.get(session) if self._shelf is not None else None
        if not isinstance(found, dict):
            return None
        paths = {each.name: each.path for each in documents}
        files = {
            name: Document(name, paths[name], text, blank=blank)
            for name, (text, blank) in found["files"].items()
            if name in paths
        }
        return _Begun(found["since"], files, kept=True)

    async def _store(self, session: SessionId, begun: _Begun) -> None:
        if self._shelf is None:
            return
        known = await self._shelf.items()
        for old in sorted(known, key=lambda key: known[key].get("at", 0))[: max(0, len(known) - STORED)]:
            await self._shelf.remove(old)
        at = 1 + max((row.get("at", 0) for row in known.values()), default=0)
        files = {name: (each.text, each.blank) for name, each in begun.files.items()}
        await self._shelf.set(session, {"at": at, "since": begun.since, "files": files})


def _notes(changed: Iterable[tuple[Document, Document]]) -> tuple[str, ...]:
    from garra.core import drift  # noqa: PLC0415 - it compares, which few conversations need

    notes = (drift.note(new.name, _text(old), _text(new)) for old, new in changed)
    return tuple(filter(None, notes))


def _text(document: Document) -> str | None:
    return None if document.blank else document.text
