"""The branches of a conversation: each end that a person may go back to, and what stands there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from garra.core.messages import Assistant, User
from garra.core.transcript import Entry, branch
from garra.core.value import frozen

HEADLINE = 120
"""Characters of a branch's last words."""


@frozen
class Branch:
    """One way through the conversation, by the entry at its end. `updated_at` is that entry's stored time."""

    leaf: str
    headline: str
    count: int
    updated_at: str
    active: bool


def listed(entries: Iterable[Entry], leaf: str | None) -> tuple[Branch, ...]:
    """The branches that end in a message, the newest first; `leaf` is behind which entry the conversation goes on.

    An end on the active branch is no branch of its own.
    """
    said = {entry.id: entry for entry in entries if entry.type != "leaf"}
    active = {entry.id for entry in branch(said, leaf)}
    parents = {entry.parent for entry in said.values()}
    ends = [entry for entry in said.values() if entry.id not in parents and entry.id not in active]
    found = [_branch(branch(said, entry.id), active=False) for entry in reversed(ends)]
    own = _branch(branch(said, leaf), active=True) if leaf in said else None
    return tuple(each for each in (own, *found) if each is not None)


def _branch(way: Sequence[Entry], *, active: bool) -> Branch | None:
    spoken = [(entry, message) for entry in way if (message := entry.message) is not None]
    if not spoken:
        return None
    last = next(
        (said for _, said in reversed(spoken) if isinstance(said, User | Assistant) and said.text.strip()), None
    )
    words = " ".join(last.text.split()) if last is not None else ""
    end = spoken[-1][0]
    return Branch(way[-1].id, words[:HEADLINE], len(spoken), str(end.body.get("timestamp", "")), active)
