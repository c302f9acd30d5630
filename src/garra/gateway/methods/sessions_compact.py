"""`sessions.compact`: a conversation is summed up, or its oldest part is no longer shown to the model."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from garra.core.errors import UserError
from garra.core.ids import RunId
from garra.domains.sessions.session import Session
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, Caller, Method
from garra.gateway.params import Name, Params
from garra.runs import chore


class SessionsCompact(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    max_lines: Annotated[int, Meta(ge=1)] | None = None


async def compact(host: Host, caller: Caller, params: SessionsCompact) -> dict[str, Any]:
    """Waits until it is done, behind what runs. Without a summary (`maxLines`) nothing is taken from the transcript
    either: the last so many messages are what the model is shown.
    """
    session = await host.session(host.key(params.key, params.agent_id))
    answer: dict[str, Any] = {"ok": True, "key": session.key}
    if params.max_lines is not None:
        kept = int(await _done(host, session, f"{chore.KEEP}{params.max_lines}"))
        return {**answer, "compacted": True, "kept": kept}
    before, after = await summed(host, session)
    return {**answer, "compacted": True, "result": {"tokensBefore": before, "tokensAfter": after}}


async def summed(host: Host, session: Session, focus: str = "") -> tuple[int, int]:
    """Sum a conversation up; its tokens before and after. Raises UserError with why not."""
    run_id = f"compact-{host.new_id()}"
    await _done(host, session, chore.COMPACT, focus, run_id=run_id)
    run = host.runs.find(RunId(run_id))
    return run.trace.context if run is not None else (0, 0)


async def _done(host: Host, session: Session, kind: str, focus: str = "", *, run_id: str = "") -> str:
    asked = chore.turn(kind, session.key, session.agent_id, run_id or f"compact-{host.new_id()}", focus)
    try:
        ended = await chore.done(host.runs, asked)
    finally:
        host.show.changed(session.key, session.agent_id, reason="compact")
    if not ended.reply:
        raise UserError("The conversation was not summed up.")
    return ended.reply


METHODS: tuple[Method, ...] = (Method("sessions.compact", ADMIN, SessionsCompact, compact),)
