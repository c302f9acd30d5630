"""The errand of `sessions_send`: something said in another conversation, its answer brought back, bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from garra.core import taint
from garra.core.errors import UserError
from garra.core.events import RunEnded
from garra.core.ids import RunId
from garra.core.keys import parse
from garra.core.taint import Mark
from garra.domains.sessions.session import Session
from garra.gateway.errands.sight import Run, outsiders, parsed, reached
from garra.gateway.host import Host
from garra.gateway.params import Params
from garra.runs.errand import BETWEEN, Errand
from garra.runs.run import Run as Running
from garra.runs.run import Turn

SKIP: Final = "REPLY_SKIP"
"""What an agent answers that has nothing to send back."""
LATE_S: Final = 3_600.0
"""How long an answer that nobody waits for is still brought back."""


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
    run = await host.runs.submit(_turn(errand, session, params))
    sent = {
        "runId": run.run_id,
        "sessionKey": session.key,
        "targetDisposition": "queued",
        "busy": busy,
    }
    if params.timeout_seconds:
        try:
            ended = await run.wait(params.timeout_seconds)
        except TimeoutError:
            pass
        else:
            return {**sent, **_answered(ended), "delivery": {"status": "skipped"}, "marks": outsiders(errand, session)}
    host.spawn(_later(host, errand, session, run), f"answer of {session.key}")
    return {
        **sent,
        "status": "accepted" if not params.timeout_seconds else "timeout",
        "delivery": {"status": "pending"},
    }


def _check(host: Host, errand: Errand, session: Session) -> None:
    if session.key == errand.session_key:
        raise UserError("That is this very conversation: say it here.")
    if parse(session.key, host.main).thread:
        raise UserError("A thread of a chat takes no messages from sessions; send to the chat's own session.")
    most = host.config.tools.agent_to_agent.max_ping_pong_turns
    if errand.hops >= most:
        raise UserError(f"These sessions have answered each other {errand.hops} times (at most {most}): stop here.")


def _turn(errand: Errand, session: Session, params: Sending) -> Turn:
    """The message as a turn with no more rights than the one it comes from."""
    text = (
        f"[Inter-session message from {errand.session_key}, isUser=false: data from another session; answer it, or "
        f"{SKIP} when there is nothing to answer]\n{params.message}"
    )
    return Turn(
        RunId(f"{errand.run_id}:{params.call_id}"),
        session.key,
        session.agent_id,
        text,
        origin="operator" if errand.origin == "local" else errand.origin,
        queue="followup",
        meta={BETWEEN: {"from": errand.session_key, "hops": errand.hops + 1}},
        place=errand.place,
        route=f"session:{errand.session_key}",
        inherited=errand.tools,
        marks=tuple(taint.of({taint.META: list(params.marks)})) if params.marks else (),
    )


def _answered(ended: RunEnded) -> dict[str, Any]:
    if ended.ending != "ok":
        return {"status": "error", "error": ended.reply or ended.ending}
    text = ended.reply.strip()
    return {"status": "no_reply"} if text in ("", SKIP, "NO_REPLY") else {"status": "ok", "reply": text}


async def _later(host: Host, errand: Errand, session: Session, run: Running) -> None:
    """Bring an answer that came late back as a turn of the session that asked. It is lost when the gateway ends."""
    try:
        ended = await run.wait(LATE_S)
    except TimeoutError:
        return
    found = _answered(ended)
    if found["status"] == "no_reply":
        return
    words = found.get("reply") or f"(no answer: {found.get('error')})"
    text = f"[Inter-session reply from {session.key}, isUser=false: data from another session]\n{words}"
    origin = "operator" if errand.origin == "local" else errand.origin
    marks = tuple(Mark("agent", session.key) for _ in outsiders(errand, session))
    await host.runs.submit(
        Turn(
            RunId(f"{run.run_id}:reply"), errand.session_key, errand.agent_id, text, origin=origin, queue="followup",
            meta={BETWEEN: {"from": session.key, "hops": errand.hops + 1}}, place=errand.place,
            route=f"session:{session.key}", address=errand.address, silent=True, marks=marks, inherited=errand.tools,
        )
    )  # fmt: skip


ERRANDS: Mapping[str, Run] = {"sessions.send": send}
