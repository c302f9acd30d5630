"""`sessions.create`, `.patch`, `.reset`, `.delete`, `.fork`: what changes a conversation as a whole."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, structs

from garra.core.errors import Conflict, NotFound, UserError
from garra.core.ids import RunId, SessionKey
from garra.core.keys import is_main, single
from garra.core.messages import User
from garra.domains.sessions import changes
from garra.domains.sessions.session import Session, entry_json
from garra.gateway.host import Host
from garra.gateway.inbound import Said, images_of, level
from garra.gateway.ledgers import digest
from garra.gateway.method import ADMIN, WRITE, Caller, Method
from garra.gateway.methods.chat import say, stop
from garra.gateway.params import Attachment, Index, Limit, Name, Params
from garra.gateway.rows import RUNTIME
from garra.runs.renewal import wants_digest

Label = Annotated[str, Meta(min_length=1, max_length=512)]
Text = str | None | UnsetType


class SessionsCreate(Params, frozen=True):
    key: Name | None = None
    idempotency_key: Name | None = None
    agent_id: Name | None = None
    label: Label | None = None
    display_name: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    title_source: Annotated[str, Meta(max_length=1000)] | None = None
    category: Label | None = None
    model: Name | None = None
    context_window: Name | None = None
    thinking_level: Name | None = None
    visibility: Literal["shared"] | None = None
    parent_session_key: Name | None = None
    spawn_depth: Limit | None = None
    fork: bool = False
    emit_command_hooks: bool | None = None
    succeeds_parent: bool | None = None
    timeout_ms: Index | None = None
    task: str | None = None
    message: str | None = None
    mentions: tuple[Any, ...] = ()
    attachments: tuple[Attachment, ...] = ()


class SessionsPatch(Params, frozen=True):
    """What is UNSET stays as it is, null clears. The `expected…` fields are conditions."""

    key: Name
    agent_id: Name | None = None
    expected_session_id: Name | None = None
    expected_lifecycle_revision: Name | None = None
    expected_permission_mode: Text = UNSET
    expected_sandbox_mode: Text = UNSET
    expected_native_runtime_consent: Text = UNSET
    expected_tool_overrides: dict[str, Any] | UnsetType | None = UNSET
    expected_marked_unread_at: float | UnsetType | None = UNSET
    label: Text = UNSET
    auto_label: Text = UNSET
    icon: Text = UNSET
    color: Text = UNSET
    category: Text = UNSET
    board_face: Literal["chat", "dashboard"] | UnsetType = UNSET
    board_presentation: Literal["split", "expanded"] | UnsetType | None = UNSET
    status_note: Text = UNSET
    attention: Text = UNSET
    ttl_minutes: Annotated[int, Meta(ge=1, le=120)] | UnsetType = UNSET
    archived: bool | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    unread: bool | UnsetType = UNSET
    context_window: Text = UNSET
    thinking_level: Text = UNSET
    fast_mode: bool | Literal["auto"] | UnsetType | None = UNSET
    tool_overrides: dict[str, Any] | UnsetType | None = UNSET
    verbose_level: Text = UNSET
    trace_level: Text = UNSET
    reasoning_level: Text = UNSET
    response_usage: Literal["off", "tokens", "full", "on"] | UnsetType | None = UNSET
    elevated_level: Text = UNSET
    exec_host: Text = UNSET
    exec_security: Text = UNSET
    exec_ask: Text = UNSET
    exec_node: Text = UNSET
    permission_mode: Text = UNSET
    sandbox_mode: Text = UNSET
    native_runtime_consent: Text = UNSET
    model: Text = UNSET
    agent_runtime: Text = UNSET
    completion_owner_session_key: Text = UNSET
    inherited_tool_policy_version: Literal[1] | UnsetType | None = UNSET
    inherited_tool_allow: list[str] | UnsetType | None = UNSET
    inherited_tool_deny: list[str] | UnsetType | None = UNSET
    send_policy: Literal["allow", "deny"] | UnsetType | None = UNSET
    group_activation: Literal["mention", "always"] | UnsetType | None = UNSET


class SessionsReset(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    reason: Literal["new", "reset"] = "reset"
    expected_session_id: Name | None = None


class SessionsDelete(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    delete_transcript: bool = True
    expected_session_id: Name | None = None
    expected_lifecycle_revision: Name | None = None
    expected_session_updated_at: Annotated[float, Meta(ge=0)] | None = None
    emit_lifecycle_hooks: bool | None = None
    archived_only: bool = False


class SessionsFork(Params, frozen=True):
    session_key: Name
    entry_id: Name
    agent_id: Name | None = None


def resolved(host: Host, session: Session) -> dict[str, Any]:
    """What the session's choices come to."""
    row = host.rows().row(session)
    model = {"modelProvider": row["modelProvider"], "model": row["model"]}
    return {**model, "agentRuntime": {"id": RUNTIME["id"], "source": "implicit"}, "runtimeSelectionLocked": False}


async def create(host: Host, caller: Caller, params: SessionsCreate) -> dict[str, Any]:
    """Make a session; with `message` (or `task`) its first turn starts at once."""
    if params.idempotency_key is None:
        return await _create(host, caller, params)
    claim, new = host.ledgers.other.claim(f"create:{params.idempotency_key}", digest(structs.astuple(params)))
    if not new:
        if claim.answer is None:
            raise Conflict("this sessions.create is under way", retryable=True)
        return dict(claim.answer)
    try:
        answer = await _create(host, caller, params)
    except BaseException:
        host.ledgers.other.release(claim)
        raise
    host.ledgers.other.settle(claim, answer)
    return answer


async def _create(host: Host, caller: Caller, params: SessionsCreate) -> dict[str, Any]:
    agent = host.agent(params.agent_id)
    key = host.key(params.key, agent) if params.key else single(agent, "dashboard", host.new_id())
    if params.model:
        host.models.resolve(params.model, agent)
    if params.fork and params.parent_session_key:
        await host.sessions.fork(host.key(params.parent_session_key, agent), key)
    session = await host.ensure(key)
    if wanted := _wanted(params):
        session = await host.sessions.patch(key, wanted)
    if params.parent_session_key:
        parent = host.key(params.parent_session_key, agent)
        session = await host.sessions.record(key, extra={"parentSessionKey": parent})
    host.show.changed(key, session.agent_id, reason="create")
    answer: dict[str, Any] = {"ok": True, "key": key, "sessionId": session.session_id}
    started: dict[str, Any] = {"runStarted": False}
    if _words(params).strip() or params.attachments:
        started = await _first(host, caller, params, key)
    return {**answer, "entry": entry_json(session), **started, "resolved": resolved(host, session)}


def _wanted(params: SessionsCreate) -> dict[str, Any]:
    given = {
        "label": params.label,
        "displayName": params.display_name,
        "model": params.model,
        "thinkingLevel": params.thinking_level,
        "category": params.category,
    }
    return {name: value for name, value in given.items() if value is not None}


def _words(params: SessionsCreate) -> str:
    return params.message or params.task or ""


async def _first(host: Host, caller: Caller, params: SessionsCreate, key: SessionKey) -> dict[str, Any]:
    """The first turn; a refusal is told beside the session, which stands."""
    run_id = RunId(params.idempotency_key or host.new_id())
    text, timeout = _words(params), None if params.timeout_ms is None else params.timeout_ms / 1000
    try:
        images = images_of(params.attachments)
        await say(
            host, caller, Said(key, text, run_id, images, thinking=level(params.thinking_level), timeout_s=timeout)
        )
    except UserError as refused:
        return {"runStarted": False, "runError": {"code": refused.code, "message": refused.message}}
    return {"runStarted": True, "runId": run_id}


async def patch(host: Host, caller: Caller, params: SessionsPatch) -> dict[str, Any]:
    """Change what a session sets for itself; it is made when there is none, for settings may come before words."""
    key = host.key(params.key, params.agent_id)
    session = await host.ensure(key)
    expect(session, params.expected_session_id)
    wanted = _changes(params)
    if isinstance(model := wanted.get("model"), str):
        wanted["model"] = host.models.resolve(model, session.agent_id).ref
    if wanted:
        session = await host.sessions.patch(key, wanted)
        host.show.changed(key, session.agent_id, reason="patch")
    answer = {"ok": True, "path": str(host.paths.db), "key": key, "entry": entry_json(session)}
    return {**answer, "resolved": resolved(host, session)}


CONDITIONS = ("key", "agent_id", "expected_")


def _changes(params: SessionsPatch) -> dict[str, Any]:
    """The wire's names and values to store. Raises UserError for a setting that would be stored and not kept."""
    wanted: dict[str, Any] = {}
    for field in structs.fields(SessionsPatch):
        value = getattr(params, field.name)
        if value is UNSET or field.name.startswith(CONDITIONS):
            continue
        if field.encode_name in changes.NAMES:
            wanted[field.encode_name] = value
        elif value is not None:
            raise UserError(f"sessions.patch: {field.encode_name} is nothing this gateway can set")
    return wanted


def expect(session: Session, session_id: str | None) -> None:
    """Raises Conflict when the caller saw another session under the key."""
    if session_id is not None and session_id != session.session_id:
        details = {"reason": "session-changed", "sessionId": session.session_id}
        raise Conflict(f"session {session.key} has begun anew: reload it", details=details)


async def reset(host: Host, caller: Caller, params: SessionsReset) -> dict[str, Any]:
    """Begin anew under the same key; the old transcript is kept. What runs is stopped first."""
    key = host.key(params.key, params.agent_id)
    session = await host.ensure(key)
    expect(session, params.expected_session_id)
    await stop(host, key, reason="reset")
    digest = wants_digest(host.config.session, by_hand=True)
    fresh = await host.sessions.reset(key, params.reason, digest=digest)
    host.show.changed(key, fresh.agent_id, reason=params.reason)
    return {"ok": True, "key": key, "entry": entry_json(fresh), "resolved": resolved(host, fresh)}


async def delete(host: Host, caller: Caller, params: SessionsDelete) -> dict[str, Any]:
    """Take a session away; its transcript is kept under another name. An agent's own conversation stays."""
    key = host.key(params.key, params.agent_id)
    if is_main(key, host.main):
        raise UserError(f"Cannot delete the main session ({key}); sessions.reset begins it anew.")
    session = await host.sessions.get(key)
    if session is None:
        return {"ok": True, "key": key, "deleted": False, "archived": []}
    expect(session, params.expected_session_id)
    if params.archived_only and not session.archived:
        raise Conflict(f"session {key} is not archived")
    await stop(host, key, reason="delete")
    kept = await host.sessions.delete(key)
    about = {"sessionKey": key, "sessionId": session.session_id, "agentId": session.agent_id}
    host.show.gone({**about, "reason": "delete", "ts": host.clock.now_ms()})
    return {"ok": True, "key": key, "deleted": True, "archived": [str(kept)] if kept else []}


async def fork(host: Host, caller: Caller, params: SessionsFork) -> dict[str, Any]:
    """A new session with everything up to an entry; a user's message is not copied but given back, to be edited."""
    key = host.key(params.session_key, params.agent_id)
    session = await host.session(key)
    entry = (await host.sessions.transcript(key)).get(params.entry_id)
    if entry is None:
        raise NotFound(f"session {key} has no entry {params.entry_id}")
    said = entry.message
    target = entry.parent if isinstance(said, User) else entry.id
    new = single(session.agent_id, "dashboard", host.new_id())
    await host.sessions.fork(key, new, target)
    host.show.changed(new, session.agent_id, reason="create")
    return {"sessionKey": new, "editorText": said.text} if isinstance(said, User) else {"sessionKey": new}


METHODS: tuple[Method, ...] = (
    Method("sessions.create", WRITE, SessionsCreate, create, startup=True),
    Method("sessions.patch", WRITE, SessionsPatch, patch),
    Method("sessions.reset", ADMIN, SessionsReset, reset),
    Method("sessions.delete", ADMIN, SessionsDelete, delete),
    Method("sessions.fork", WRITE, SessionsFork, fork),
)
