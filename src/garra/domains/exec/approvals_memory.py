"""What an answer lets pass from now on: an entry of the exec-approvals document, or a grant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from garra.core.approvals import Approval, Decided
from garra.core.execrules import Entry
from garra.core.value import frozen
from garra.domains.exec.approvals_grants import Grant, Grants
from garra.domains.exec.approvals_rules import Rulebook

DAY_MS = 86_400_000


@frozen
class Kept:
    """An answer that was accepted. `days` limit what it lets pass; 0: as the question says."""

    approval: Approval
    said: Decided
    days: int = 0

    @property
    def always(self) -> bool:
        return self.said.choice == "allow-always"

    @property
    def until_ms(self) -> int:
        """When it ends; 0 for never."""
        question = self.approval.question
        life_ms = (self.days * DAY_MS or question.always_ms) if self.always else question.once_ms
        return self.said.at + life_ms if life_ms else 0


async def remember(grants: Grants, rulebook: Rulebook, new_id: Callable[[], str], kept: Kept) -> None:
    """Keep it, on the disk, before the answer counts."""
    question = kept.approval.question
    if kept.said.choice == "deny" or not (kept.always or question.once_ms):
        return
    if kept.always and question.entries:
        entries = [named(entry, new_id(), kept.until_ms) for entry in question.entries]
        await rulebook.add(question.agent_id, entries)
    if question.covers:
        grant = Grant(
            new_id(),
            question.kind,
            question.agent_id,
            question.covers,
            question.remembers or question.subject,
            kept.said.by,
            kept.approval.id,
            kept.said.at,
            kept.until_ms,
        )
        await grants.add(grant)


def named(entry: Entry, name: str, until_ms: int) -> Entry:
    """An entry as it is stored: with an id, and with the sooner of its own end and the answer's."""
    ends = [each for each in (entry.until_ms, until_ms) if each]
    source = entry.source or "allow-always"
    return replace(entry, id=entry.id or name, source=source, until_ms=min(ends, default=0))
