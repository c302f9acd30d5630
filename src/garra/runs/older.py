"""What conversations hold of model calls from before anybody counted: into the ledger, each once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from garra.core.errors import GarraError
from garra.core.messages import Assistant, Message
from garra.core.spending import Payer
from garra.core.transcript import Entry
from garra.domains.sessions.rows import Query
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.domains.spending.ledger import UNKNOWN, Ledger, Spent

log = logging.getLogger(__name__)

MOST: Final = 100_000


async def take(ledger: Ledger, sessions: Sessions) -> None:
    """Count them. A conversation that cannot be read now is counted another time."""
    if ledger.whole:
        return
    ledger.whole = True
    taken = await ledger.taken()
    page = await sessions.list(Query(archived=None, limit=MOST))
    for session in page.sessions:
        if session.created_at >= ledger.since_ms or session.session_id in taken:
            continue
        try:
            transcript = await sessions.transcript(session.key)
        except GarraError as error:
            log.info("%s is not counted yet: %s", session.key, error.message)
            ledger.whole = False
            continue
        found = await asyncio.to_thread(_read, session, transcript.entries(), ledger.since_ms)
        await ledger.take(session.session_id, found)


def _read(session: Session, entries: Sequence[Entry], before_ms: int) -> list[Spent]:
    """In a thread: reading ten thousand messages takes longer than anybody should wait for a turn."""
    return list(rows(session, (entry.message for entry in entries), before_ms))


def rows(session: Session, messages: Iterable[Message | None], before_ms: int) -> Iterable[Spent]:
    """The calls of one conversation before that moment. Who asked then is not known any more."""
    for message in messages:
        if not isinstance(message, Assistant) or message.timestamp >= before_ms or not message.provider:
            continue
        own = message.meta.get("__openclaw")
        run = str(own.get("runId", "")) if isinstance(own, dict) else ""
        yield Spent(
            message.timestamp,
            Payer(run, run, session.key, session.agent_id, UNKNOWN),
            message.provider,
            message.model,
            message.usage,
            bool(message.usage.cost) or not message.usage.total,
            message.stop in ("error", "aborted"),
            tuple(call.name for call in message.calls),
        )
