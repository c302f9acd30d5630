"""`sessions.send`, `.steer`, `.abort`: say something in a conversation from outside, or stop it."""

from __future__ import annotations

from typing import Any

from garra.core.errors import NotFound, UserError
from garra.core.ids import RunId
from garra.gateway.host import Host
from garra.gateway.inbound import Said, images_of, level
from garra.gateway.method import WRITE, Caller, Method
from garra.gateway.methods.chat import say, stop
from garra.gateway.params import Attachment, Index, Name, Params
from garra.runs.run import QueueMode


class SessionsSend(Params, frozen=True):
    """Without an `idempotency_key` every call is a message of its own."""

    key: Name
    message: str
    agent_id: Name | None = None
    mentions: tuple[Any, ...] = ()
    thinking: str | None = None
    attachments: tuple[Attachment, ...] = ()
    timeout_ms: Index | None = None
    idempotency_key: Name | None = None


class SessionsAbort(Params, frozen=True):
    key: Name | None = None
    run_id: Name | None = None
    agent_id: Name | None = None
    clear_queued: bool = False


async def send(host: Host, caller: Caller, params: SessionsSend) -> dict[str, Any]:
    """Behind what runs already."""
    return await _say(host, caller, params, "followup")


async def steer(host: Host, caller: Caller, params: SessionsSend) -> dict[str, Any]:
    """Stop what runs and go on with this."""
    active = host.runs.active(host.key(params.key, params.agent_id))
    answer = await _say(host, caller, params, "interrupt")
    return {**answer, "interruptedActiveRun": active is not None}


async def _say(host: Host, caller: Caller, params: SessionsSend, queue: QueueMode) -> dict[str, Any]:
    key = host.key(params.key, params.agent_id)
    if await host.sessions.get(key) is None:
        raise NotFound(f"session not found: {params.key}")
    if not params.message.strip() and not params.attachments:
        raise UserError("invalid sessions.send params: message or attachment required")
    said = Said(
        key,
        params.message.replace("\x00", ""),
        RunId(params.idempotency_key or host.new_id()),
        images_of(params.attachments),
        thinking=level(params.thinking),
        queue=queue,
        timeout_s=None if params.timeout_ms is None else params.timeout_ms / 1000,
    )
    return await say(host, caller, said)


async def abort(host: Host, caller: Caller, params: SessionsAbort) -> dict[str, Any]:
    """By session, or by run alone. Nothing to stop is no error."""
    if params.key:
        key = host.key(params.key, params.agent_id)
    elif params.run_id:
        run = host.runs.find(params.run_id)
        if run is None:
            return {"ok": True, "abortedRunId": None, "status": "no-active-run"}
        key = run.session_key
    else:
        raise UserError("invalid sessions.abort params: key or runId is needed")
    runs = await stop(host, key, params.run_id)
    if runs:
        host.show.changed(key, params.agent_id or "", reason="abort")
    return {"ok": True, "abortedRunId": runs[0] if runs else None, "status": "aborted" if runs else "no-active-run"}


METHODS: tuple[Method, ...] = (
    Method("sessions.send", WRITE, SessionsSend, send, startup=True),
    Method("sessions.steer", WRITE, SessionsSend, steer, advertised=False),
    Method("sessions.abort", WRITE, SessionsAbort, abort, startup=True),
)
