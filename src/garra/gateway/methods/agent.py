"""`agent` and `agent.wait`: one turn, asked for and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from garra.core.errors import GarraError, Unavailable, UserError
from garra.core.events import RunEnded
from garra.core.ids import RunId, SessionKey
from garra.core.messages import Assistant, Message, User
from garra.core.value import replace
from garra.gateway import commands
from garra.gateway.host import Host
from garra.gateway.inbound import Said, asked, images_of, level
from garra.gateway.ledgers import Claim, user_key
from garra.gateway.method import WRITE, Caller, Method, Reply
from garra.gateway.methods.chat import turn
from garra.gateway.params import Attachment, Index, Limit, Name, Params
from garra.runs.report import attempts, blob
from garra.runs.run import Run


class Agent(Params, frozen=True):
    """`timeout` is in seconds, 0 means none. What this gateway has no use for is taken and ignored."""

    message: Name
    idempotency_key: Name
    agent_id: Name | None = None
    provider: str | None = None
    model: str | None = None
    to: str | None = None
    reply_to: str | None = None
    session_id: str | None = None
    session_key: str | None = None
    expected_existing_session_id: Name | None = None
    thinking: str | None = None
    deliver: bool = False
    attachments: tuple[Attachment, ...] = ()
    channel: str | None = None
    reply_channel: str | None = None
    account_id: str | None = None
    reply_account_id: str | None = None
    thread_id: str | None = None
    group_id: str | None = None
    group_channel: str | None = None
    group_space: str | None = None
    timeout: Index | None = None
    best_effort_deliver: bool | None = None
    lane: str | None = None
    cwd: Name | None = None
    cleanup_bundle_mcp_on_run_end: bool | None = None
    model_run: bool | None = None
    prompt_mode: Literal["full", "minimal", "none"] | None = None
    extra_system_prompt: str | None = None
    bootstrap_context_mode: Literal["full", "lightweight"] | None = None
    bootstrap_context_run_kind: Literal["default", "heartbeat", "cron"] | None = None
    acp_turn_source: str | None = None
    internal_runtime_handoff_id: Name | None = None
    internal_execution_identity_retry: bool | None = None
    internal_execution_identity_recovery_attempt: Limit | None = None
    exec_approval_followup_expected_session_id: Name | None = None
    internal_events: tuple[Any, ...] = ()
    input_provenance: dict[str, Any] | None = None
    suppress_prompt_persistence: bool | None = None
    session_effects: Literal["visible", "internal"] | None = None
    source_reply_delivery_mode: Literal["automatic", "message_tool_only"] | None = None
    disable_message_tool: bool | None = None
    swarm_collector: bool | None = None
    swarm_output_schema: dict[str, Any] | None = None
    force_restart_safe_tools: bool | None = None
    force_code_mode_tools: bool | None = None
    voice_wake_trigger: str | None = None
    label: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class AgentWait(Params, frozen=True):
    run_id: Name
    timeout_ms: Index = 30_000


async def agent(host: Host, caller: Caller, params: Agent) -> dict[str, Any] | Reply:
    """Two answers: that it was taken, and how it ended. The same key again gives the same end, and starts nothing."""
    if params.deliver:
        raise Unavailable("deliver: no channel is connected here; ask without it and read the answer")
    said = await _said(host, params)
    claim, new = host.ledgers.agent.claim(said.run_id, asked(said))
    if not new:
        return await _again(host, caller, said, claim)
    try:
        answer = await _recall(host, said) or await _told(host, caller, said, params)
    except BaseException:
        host.ledgers.agent.release(claim)
        raise
    host.ledgers.agent.settle(claim, answer)
    return answer


async def _said(host: Host, params: Agent) -> Said:
    model = f"{params.provider}/{params.model}" if params.provider and params.model else params.model
    return Said(
        await _key(host, params),
        params.message.replace("\x00", ""),
        RunId(params.idempotency_key),
        images_of(params.attachments),
        model=model or None,
        thinking=level(params.thinking),
        timeout_s=None if params.timeout is None else float(params.timeout),
        extra_system=params.extra_system_prompt or "",
    )


async def _key(host: Host, params: Agent) -> SessionKey:
    if params.session_key:
        return host.key(params.session_key, params.agent_id)
    if params.session_id:
        if known := await host.sessions.by_id(params.session_id):
            return known.key
        return host.key(f"explicit:{params.session_id}", params.agent_id)
    return host.key("main", params.agent_id)


async def _told(host: Host, caller: Caller, said: Said, params: Agent) -> dict[str, Any] | Reply:
    left, answer = await _obeyed(host, caller, said, params)
    return await _run(host, caller, left, params) if answer is None else answer


async def _obeyed(host: Host, caller: Caller, said: Said, params: Agent) -> tuple[Said, dict[str, Any] | None]:
    """What is left to be asked, and what came of a command such as `/status`, kept nowhere, as in a chat; None for
    words. Behind `/new` words are the first of the new conversation.
    """
    bare = params.model_run or params.prompt_mode == "none"
    typed = None if bare or said.images else commands.parse(said.text)
    if typed is None:
        return said, None
    session = await host.ensure(said.key, "run")
    if rest := await commands.begun(host, session, typed, caller):
        return replace(said, text=rest), None
    accepted(host, caller, said)
    payloads = [{"text": await commands.answer(host, session, typed, caller), "mediaUrl": None}]
    meta = {"agentMeta": {"sessionId": session.session_id}, "aborted": False}
    result = {"payloads": payloads, "meta": meta}
    return said, {"runId": said.run_id, "status": "ok", "summary": "completed", "result": result}


async def _run(host: Host, caller: Caller, said: Said, params: Agent) -> dict[str, Any] | Reply:
    session = await host.ensure(said.key, "run")
    if params.label and session.label is None:
        session = await host.sessions.patch(said.key, {"label": params.label})
    with host.show.expected(said.run_id, caller, phases=False):
        run = await host.runs.submit(turn(said, session, caller))
        accepted(host, caller, said)
    return final(run, await run.wait())


def accepted(host: Host, caller: Caller, said: Said) -> None:
    taken = {"runId": said.run_id, "status": "accepted", "sessionKey": said.key, "acceptedAt": host.clock.now_ms()}
    caller.respond_early(taken)


async def _again(host: Host, caller: Caller, said: Said, claim: Claim) -> dict[str, Any] | Reply:
    if claim.answer is None:
        accepted(host, caller, said)
        await claim.over.wait()
    if claim.answer is None:
        raise Unavailable("the first request with this idempotencyKey failed; ask again", retryable=True)
    answer: dict[str, Any] | Reply = claim.answer
    return answer


def final(run: Run, ended: RunEnded) -> dict[str, Any] | Reply:
    """How a run ended, as its asker is told."""
    if ended.ending == "ok":
        return {"runId": run.run_id, "status": "ok", "summary": "completed", "result": blob(run)}
    line = ended.failure.message if ended.failure else ended.reply or ended.ending
    status = "timeout" if ended.ending == "timeout" else "error"
    payload = {"runId": run.run_id, "status": status, "summary": line}
    return Reply(payload, fault(ended, line, run))


def fault(ended: RunEnded, line: str, run: Run | None = None) -> GarraError:
    """Why a run failed, with each call that was tried in vain."""
    failure = ended.failure
    details: dict[str, Any] | None = None
    if failure is not None:
        details = {"kind": failure.kind.value}
        if run is not None and len(run.trace.attempts) > 1:
            details["attempts"] = attempts(run)
        if failure.retry_after_ms is not None:
            details["retryAfterMs"] = failure.retry_after_ms
    return Unavailable("run aborted" if ended.ending == "aborted" else line, details=details)


async def _recall(host: Host, said: Said) -> dict[str, Any] | None:
    """The end of a run of before a restart, from what is stored; None when it is new."""
    session = await host.sessions.get(said.key)
    if session is None:
        return None
    transcript = await host.sessions.transcript(said.key)
    messages = transcript.messages()
    if host.ledgers.keys.find(transcript.session_id, messages, user_key(said.run_id)) is None:
        return None
    answer = _answer(messages, user_key(said.run_id))
    if answer is None:
        line = "this run was interrupted by a restart of the gateway; ask again with a new idempotencyKey"
        raise UserError(line, details={"reason": "interrupted"})
    about = {"sessionId": session.session_id, "provider": answer.provider, "model": answer.model}
    result = {"payloads": [{"text": answer.text, "mediaUrl": None}], "meta": {"agentMeta": about, "aborted": False}}
    return {"runId": said.run_id, "status": "ok", "summary": "completed", "result": result}


def _answer(messages: Sequence[Message], key: str) -> Assistant | None:
    """The last words of the turn that the message of `key` began."""
    at = next(i for i, m in enumerate(messages) if isinstance(m, User) and m.meta.get("idempotencyKey") == key)
    found: Assistant | None = None
    for message in messages[at + 1 :]:
        if isinstance(message, User):
            break
        if isinstance(message, Assistant) and message.stop in ("stop", "length"):
            found = message
    return found


async def wait(host: Host, caller: Caller, params: AgentWait) -> dict[str, Any]:
    """Until a run ends, or the time is over; a run that is unknown may still come."""
    until = host.clock.monotonic() + params.timeout_ms / 1000
    while (run := host.runs.find(params.run_id)) is None:
        left = until - host.clock.monotonic()
        if left <= 0:
            return {"runId": params.run_id, "status": "timeout"}
        await host.clock.sleep(min(left, 1.0))
    try:
        ended = await run.wait(max(0.0, until - host.clock.monotonic()))
    except TimeoutError:
        return {"runId": params.run_id, "status": "timeout", "startedAt": run.started_at}
    return _waited(run, ended)


def _waited(run: Run, ended: RunEnded) -> dict[str, Any]:
    status = {"ok": "ok", "timeout": "timeout"}.get(ended.ending, "error")
    answer: dict[str, Any] = {
        "runId": run.run_id,
        "status": status,
        "startedAt": ended.started_at,
        "endedAt": ended.ended_at,
        "terminalReply": {"disposition": "silent" if ended.silent else "visible", "text": ended.reply},
        "terminalReceipt": {"runId": run.run_id, "sessionId": run.session_id, "turnId": run.run_id},
    }
    if status != "ok":
        answer["error"] = ended.failure.message if ended.failure else ended.reply or ended.ending
    return answer


METHODS: tuple[Method, ...] = (
    Method("agent", WRITE, Agent, agent, startup=True, twice=True),
    Method("agent.wait", WRITE, AgentWait, wait, startup=True),
)
