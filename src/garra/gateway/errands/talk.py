"""The errand of `sessions_send`: something said in another conversation, its answer brought back, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from garra.core.errors import GarraError, UserError
from garra.core.keys import parse
from garra.domains.sessions.session import Session
from garra.gateway.errands.letters import Letter, Letters, answered, letters, passing
from garra.gateway.errands.sight import Run, outsiders, parsed, reached
from garra.gateway.host import Host
from garra.gateway.params import Params
from garra.runs.errand import Errand


class Sending(Params, frozen=True):
    """`marks` are what the asking turn has read from outside."""

    session_key: Annotated[str, Meta(min_length=1, max_length=512)]
    message: Annotated[str, Meta(min_length=1, max_length=100_000)]
    call_id: str
    timeout_seconds: Annotated[float, Meta(ge=0, le=600)] = 30.0
    marks: tuple[dict[str, str], ...] = ()


async def send(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    params = parsed(raw, Sending)
    session = await reached(host, errand, params.session_key)
    _check(host, errand, session)
    busy = host.runs.active(session.key) is not None
    now = host.clock.now_ms()
    letter = Letter(errand, session.key, session.agent_id, params.message, params.call_id, now, params.marks)
    sent = {"runId": letter.run_id, "sessionKey": session.key, "targetDisposition": "queued", "busy": busy}
    if (found := await _asked(letters(host), letter, params.timeout_seconds)) is not None:
        return {**sent, **found, "delivery": {"status": "skipped"}, "marks": outsiders(errand, session.key)}
    status = "accepted" if not params.timeout_seconds else "timeout"
    return {**sent, "status": status, "delivery": {"status": "pending"}}


async def _asked(known: Letters, letter: Letter, timeout_s: float) -> dict[str, Any] | None:
    """What was answered in time; None where it comes later."""
    await known.put(letter)
    try:
        run = await known.submit(letter.turn())
    except GarraError:
        await known.done(letter)
        raise
    try:
        ended = await run.wait(timeout_s) if timeout_s else None
    except TimeoutError:
        ended = None
    except asyncio.CancelledError:
        await known.dropped(letter)
        raise
    if ended is None or passing(run, ended):
        known.follow(letter, run)
        return None
    await known.done(letter)
    return answered(ended)


def _check(host: Host, errand: Errand, session: Session) -> None:
    if session.key == errand.session_key:
        raise UserError("That is this very conversation: say it here.")
    if parse(session.key, host.main).thread:
        raise UserError("A thread of a chat takes no messages from sessions; send to the chat's own session.")
    most = host.config.tools.agent_to_agent.max_ping_pong_turns
    if errand.hops >= most:
        raise UserError(f"These sessions have answered each other {errand.hops} times (at most {most}): stop here.")


ERRANDS: Mapping[str, Run] = {"sessions.send": send}
