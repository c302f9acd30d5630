"""The document of exec approvals on the disk: what may run unasked, and what is asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from garra.core import execdocument, execrules
from garra.core.errors import Conflict, UserError
from garra.core.execrules import Entry, Policy, Rules
from garra.io.store.shelf import Shelf

log = logging.getLogger(__name__)

SPACE = "exec-approvals"
_KEY = "document"
CLOSED: Final = Rules(Policy("deny", "always", "deny"))


class Rulebook:
    """The one document. `load` before anything else; `rules` are what it says now."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self.document: Mapping[str, Any] = execdocument.EMPTY
        self.rules = Rules()
        self.exists = False

    @property
    def hash(self) -> str:
        return execdocument.digest(self.document)

    async def load(self) -> None:
        """Where it cannot be read as such a document no command runs until it is mended."""
        stored = await self._shelf.get(_KEY)
        if stored is None:
            return
        self.document, self.exists = stored, True
        try:
            self.rules = execrules.parse(stored)
        except UserError as error:
            self.rules = CLOSED
            log.warning("no command runs until `garra approvals set` mends this: %s", error.message)

    async def set(self, document: Any, base_hash: str | None = None) -> None:
        """Replace it. Raises UserError with each fault, Conflict when it is no longer what the caller saw."""
        if base_hash is not None and base_hash != self.hash:
            raise Conflict("the exec approvals were changed meanwhile: get them again, then set")
        await self._put(execdocument.check(document))

    async def add(self, agent_id: str, entries: Sequence[Entry]) -> None:
        """Let one more thing pass for an agent."""
        document: Mapping[str, Any] = self.document
        for entry in entries:
            document = execrules.with_entry(document, agent_id, entry)
        await self._put(document)

    async def _put(self, document: Mapping[str, Any]) -> None:
        rules = execrules.parse(document)
        await self._shelf.set(_KEY, dict(document), durable=True)
        self.document, self.rules, self.exists = document, rules, True
