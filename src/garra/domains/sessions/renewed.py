"""A session's row when its conversation begins anew, and when the one before is taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from garra.core import keys, resets, taint
from garra.core.errors import UserError
from garra.core.ids import SessionId
from garra.core.resets import undoable
from garra.core.transcript import Shown
from garra.domains.sessions.session import Session

DIGEST: Final = "garra:digest"
"""The entry that tells a new conversation of the one before."""
BEFORE: Final = "previous"
"""Under which name a row tells of the conversation before."""
OWN: Final = (
    taint.ROW, "previousSessionId", BEFORE, "compactionCount", "lastCompactedAt", "memoryFlushAt",
    "memoryFlushCompactionCount", "lastInteractionAt", "systemPromptReport",
)  # fmt: skip
"""What of a row belongs to one conversation and not to its key."""


def renewed(session: Session, fresh: SessionId, now: int, reason: str) -> Session:
    """The row of a new conversation that begins `now` under the same key."""
    return replace(
        session,
        session_id=fresh,
        started_at=now,
        updated_at=now,
        totals=None,
        title=None,
        last_message=None,
        extra={**_kept(session), "previousSessionId": session.session_id, BEFORE: _told(session, now, reason)},
    )


def restored(session: Session, now: int) -> Session:
    """The row when the conversation before goes on. Raises UserError where there is none to go back to."""
    before = session.extra.get(BEFORE)
    if not isinstance(before, Mapping) or not isinstance(before.get("sessionId"), str):
        raise UserError("There is no conversation before this one to go back to.")
    at = before.get("at")
    if not undoable(at if isinstance(at, int) else None, now):
        raise UserError("The conversation before this one ended more than a day ago; it is kept and can be exported.")
    own = before.get("own")
    started = before.get("startedAt")
    return replace(
        session,
        session_id=keys.session_id(before["sessionId"]),
        started_at=started if isinstance(started, int) else session.created_at,
        updated_at=now,
        totals=None,
        title=_text(before, "title"),
        last_message=_text(before, "lastMessage"),
        extra={
            **_kept(session),
            **(dict(own) if isinstance(own, Mapping) else {}),
            "lastInteractionAt": now,
            "previousSessionId": session.session_id,
            BEFORE: _told(session, now, "undo"),
        },
    )


def told(found: Shown) -> dict[str, Any] | None:
    """What a new conversation is told of the one before, as the body of the entry that tells it."""
    brief = resets.digest([message for _, message in found.rows], summed=found.summed)
    if brief is None:
        return None
    return {"customType": DIGEST, "content": brief.text, "display": True, **taint.stored(brief.marks)}


def _kept(session: Session) -> dict[str, Any]:
    return {name: value for name, value in session.extra.items() if name not in OWN}


def _told(session: Session, now: int, reason: str) -> dict[str, Any]:
    """What is needed to take a conversation up again."""
    own = {name: session.extra[name] for name in OWN if name in session.extra and name != BEFORE}
    own.pop("systemPromptReport", None)
    return {
        "sessionId": session.session_id,
        "startedAt": session.started_at,
        "at": now,
        "reason": reason,
        "title": session.title,
        "lastMessage": session.last_message,
        "own": own,
    }


def _text(before: Mapping[str, Any], name: str) -> str | None:
    value = before.get(name)
    return value if isinstance(value, str) else None
