"""Conversations made smaller, for the gateway's methods and commands."""

from __future__ import annotations

from garra.core.errors import UserError
from garra.core.ids import RunId
from garra.domains.sessions.session import Session
from garra.gateway.host import Host
from garra.runs import chore


async def summed(host: Host, session: Session, focus: str = "") -> tuple[int, int]:
    """Sum a conversation up; its tokens before and after. Raises UserError with why not."""
    run_id = f"compact-{host.new_id()}"
    await done(host, session, chore.COMPACT, focus=focus, run_id=run_id)
    run = host.runs.find(RunId(run_id))
    return run.trace.context if run is not None else (0, 0)


async def done(host: Host, session: Session, kind: str, *, focus: str = "", run_id: str = "") -> str:
    """Submit a chore and wait for its end; its words. Raises UserError with why it was not done."""
    asked = chore.turn(kind, session.key, session.agent_id, run_id or f"compact-{host.new_id()}", focus=focus)
    try:
        ended = await chore.done(host.runs, asked)
    finally:
        host.show.changed(session.key, session.agent_id, reason="compact")
    if not ended.reply:
        raise UserError("The conversation was not summed up.")
    return ended.reply
