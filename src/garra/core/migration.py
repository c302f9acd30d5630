"""Taking over from another agent program: what is found there, and what becomes of each piece.

Sources are only read. A plan is made first and shown; what stands here already is left as it is, unless the owner says
`--overwrite`, and then it is kept aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final, Literal

from garra.core.value import frozen

Kind = Literal[
    "config", "workspace", "memory", "skill", "session", "archive", "pairing", "approvals", "auth", "cron", "manual"
]
"""What a piece is. An `archive` is a conversation that was ended before; `manual` is for a person to look at."""
State = Literal["planned", "conflict", "skipped", "manual", "done", "failed"]

ORDER: Final[tuple[Kind, ...]] = (
    "config", "auth", "workspace", "memory", "skill", "pairing", "approvals", "session", "archive", "cron", "manual",
)  # fmt: skip


@frozen
class File:
    """One file to be copied: `source` is absolute, `target` stands below the agent's workspace."""

    source: str
    target: str


@frozen
class Words:
    """Text for a file below the agent's workspace; `behind` what stands in it already, or as the whole of it."""

    target: str
    text: str
    behind: bool = False


@frozen
class Chat:
    """One conversation: its session's row, as the original has it, and the lines of its transcript.

    `current` is false for one that was ended by a reset: its file is kept, and no key leads to it.
    """

    key: str
    agent: str
    entry: Mapping[str, Any]
    lines: tuple[bytes, ...]
    current: bool = True

    @property
    def session_id(self) -> str:
        return str(self.entry.get("sessionId", ""))


@frozen
class Item:
    """One piece. `label` names it for a person, `content` is what is to be written: it depends on the kind.

    config: a mapping to merge, or the whole text; workspace, memory, skill: a tuple of `File` and `Words`;
    session, archive: a `Chat`; pairing: mappings {channel, account, sender}; approvals, auth, cron: the document.
    """

    id: str
    kind: Kind
    label: str
    content: Any = None
    agent: str = "main"
    state: State = "planned"
    note: str = ""
    secret: bool = False

    def shown(self) -> dict[str, Any]:
        """As JSON, without its content."""
        row = {"id": self.id, "kind": self.kind, "label": self.label, "status": self.state, "agent": self.agent}
        return row | ({"note": self.note} if self.note else {}) | ({"sensitive": True} if self.secret else {})


@frozen
class Found:
    """What a source holds. `warnings` are lines for the person, `running` says that its program is still at work."""

    provider: str
    source: str
    items: tuple[Item, ...] = ()
    warnings: tuple[str, ...] = ()
    running: bool = False


@frozen
class Wanted:
    """What the owner asked for. `only` names items by id or kind; empty means all of them."""

    secrets: bool = False
    overwrite: bool = False
    only: frozenset[str] = frozenset()


@frozen
class Here:
    """What stands in this installation already."""

    configured: bool = False
    sessions: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    """Ids of the items whose files are here already, with other words."""
    same: frozenset[str] = frozenset()
    """Ids of the items that are here already, word for word."""
    documents: frozenset[Kind] = frozenset()


@frozen
class Plan:
    """What is to become of each piece, in the order in which it is done."""

    found: Found
    items: tuple[Item, ...] = field(default_factory=tuple)

    @property
    def conflicts(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.state == "conflict")

    def counts(self) -> dict[str, int]:
        """How many items are in which state."""
        return dict(Counter(item.state for item in self.items))

    def shown(self) -> dict[str, Any]:
        """As JSON: no content, so no secret."""
        return {
            "providerId": self.found.provider,
            "source": self.found.source,
            "summary": {"total": len(self.items), **self.counts()},
            "items": [item.shown() for item in self.items],
            "warnings": list(self.found.warnings),
        }


def plan(found: Found, here: Here, wanted: Wanted) -> Plan:
    """Decide each piece's lot."""
    ordered = sorted(found.items, key=lambda item: ORDER.index(item.kind))
    return Plan(found, tuple(_decided(item, here, wanted) for item in ordered))


def _decided(item: Item, here: Here, wanted: Wanted) -> Item:
    if item.state != "planned" or item.kind == "manual":
        return replace(item, state=item.state if item.state != "planned" else "manual")
    if wanted.only and not wanted.only & {item.id, item.kind}:
        return replace(item, state="skipped", note="not asked for")
    if item.secret and not wanted.secrets:
        return replace(item, state="skipped", note="holds keys; take it over with --include-secrets")
    if item.id in here.same:
        return replace(item, state="skipped", note="is here already")
    if _stands(item, here) and not wanted.overwrite:
        return replace(item, state="conflict", note="something else stands here; --overwrite keeps that aside")
    return item


def _stands(item: Item, here: Here) -> bool:
    match item.kind:
        case "config":
            return here.configured
        case "session":
            return isinstance(item.content, Chat) and item.content.key in here.sessions
        case "approvals" | "cron" | "auth":
            return item.kind in here.documents
        case _:
            return item.id in here.files
