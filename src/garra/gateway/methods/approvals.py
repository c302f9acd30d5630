"""`exec.approval.*`, `approval.*`, `plugin.approval.*`: what waits for a person, answering it, and what was answered.

`exec.approvals.*` is the document of what may run unasked.
"""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Annotated, Any, Literal

from msgspec import Meta

from garra.core.approvals import CHOICES, Kind, Question
from garra.core.errors import Conflict, NotFound, UserError
from garra.core.execplan import filled
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.showing import shown
from garra.domains.exec.approvals import Change, Decision, Verdict
from garra.gateway import approvals as wire
from garra.gateway import own
from garra.gateway.approvals import register
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, APPROVALS, Caller, Method
from garra.gateway.params import Name, Nothing, Params

Days = Annotated[int, Meta(ge=1, le=3650)]


class Named(Params, frozen=True):
    id: Name


class Resolved(Params, frozen=True):
    """`whole`: the client has shown all of it to who decides, however long."""

    id: Name
    decision: Name
    kind: str | None = None
    reviewer: dict[str, Any] | None = None
    grant_expires_in_days: Days | None = None
    reason: str | None = None
    whole: bool = False


class Asking(Params, frozen=True, kw_only=True):
    """A question of a program of the operator's own. `two_phase`: it is answered once it is registered, and again.

    What the gateway finds out by itself is let in and not believed.
    """

    id: Annotated[str, Meta(pattern="^[A-Za-z0-9:._-]{1,64}$")] | None = None
    agent_id: str | None = None
    session_key: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    tool_call_id: str | None = None
    scope: Any = None
    turn_source_channel: str | None = None
    turn_source_to: str | None = None
    turn_source_account_id: str | None = None
    turn_source_thread_id: str | int | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=1_800_000)] = 1_800_000
    two_phase: bool = False


class Requested(Asking, frozen=True, kw_only=True):
    """Whether a command may run."""

    command: Annotated[str, Meta(min_length=1, max_length=100_000)]
    command_argv: list[str] | None = None
    env: dict[str, str] | None = None
    cwd: str | None = None
    host: str | None = None
    node_id: str | None = None
    security: str | None = None
    ask: str | None = None
    warning_text: str | None = None
    resolved_path: str | None = None
    command_spans: Any = None
    unavailable_decisions: Any = None
    system_run_plan: Any = None


class PluginRequested(Asking, frozen=True, kw_only=True):
    """Whether a plugin may do what it says."""

    title: Annotated[str, Meta(min_length=1, max_length=80)]
    description: Annotated[str, Meta(min_length=1, max_length=512)]
    detail: Annotated[str, Meta(max_length=16_384)] | None = None
    plugin_id: str | None = None
    severity: str | None = None
    tool_name: str | None = None
    mcp_tool: Any = None
    allowed_decisions: list[str] | None = None


class History(Params, frozen=True):
    cursor: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 50
    kind: Literal["exec", "plugin", "system-agent"] | None = None


class GrantsList(Params, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class GrantRevoked(Params, frozen=True):
    grant_id: Name


class DocumentSet(Params, frozen=True):
    file: Any
    base_hash: Name | None = None


class NodeNamed(Params, frozen=True):
    node_id: Name
    file: Any = None
    native: Any = None
    base_hash: str | None = None


# ---- what waits


def exec_list(host: Host, caller: Caller, params: Nothing) -> list[dict[str, Any]]:
    return [wire.row(each) for each in wire.pending(host) if wire.family(each) == "exec"]


def plugin_list(host: Host, caller: Caller, params: Nothing) -> list[dict[str, Any]]:
    return [wire.row(each) for each in wire.pending(host) if wire.family(each) == "plugin"]


def nothing(host: Host, caller: Caller, params: Nothing) -> list[dict[str, Any]]:
    """The original's own agent asks nobody here."""
    return []


async def exec_get(host: Host, caller: Caller, params: Named) -> dict[str, Any]:
    """One that waits, of any kind, whole: `subject` is all that is asked."""
    found = await register(host).find(params.id)
    if not found.open:
        raise NotFound("unknown or expired approval id", details={"reason": "APPROVAL_NOT_FOUND"})
    return {**wire.row(found), "subject": shown(found.question.subject), "warningText": wire.warning(found) or None}


async def get(host: Host, caller: Caller, params: Named) -> dict[str, Any]:
    """One, whatever became of it."""
    return {"approval": wire.snapshot(await register(host).find(params.id))}


async def history(host: Host, caller: Caller, params: History) -> dict[str, Any]:
    """What was answered, newest first."""
    before = _cursor(params.cursor) if params.cursor else None
    found = await register(host).history(params.limit, before)
    page: dict[str, Any] = {
        "items": [wire.historic(each) for each in found if params.kind in (None, wire.family(each))]
    }
    if len(found) == params.limit:
        page["nextCursor"] = f"{found[-1].ended_at}.{found[-1].id}"
    return page


def _cursor(text: str) -> tuple[int, str]:
    at, _, name = text.partition(".")
    if not at.isdigit():
        raise UserError("cursor: it is none that approval.history gave")
    return int(at), name


# ---- answering


async def resolve(host: Host, caller: Caller, params: Resolved) -> dict[str, Any]:
    await _decide(host, caller, params)
    return {"ok": True}


async def unified(host: Host, caller: Caller, params: Resolved) -> dict[str, Any]:
    """The first answer counts; who comes later with the same is told so, with another one is refused."""
    made = await _decide(host, caller, params)
    return {"applied": not made.again, "approval": wire.historic(made.approval)}


async def _decide(host: Host, caller: Caller, params: Resolved) -> Decision:
    book = register(host)
    if params.decision not in CHOICES:
        raise UserError(f"decision: {params.decision[:40]!r} is none of {', '.join(CHOICES)}")
    choice = params.decision
    if choice != "deny":
        await own.refuse(caller)
    found = await book.find(params.id)
    if choice != "deny" and found.open and not params.whole and not wire.fits(found):
        words = (
            "it is too long to be shown whole there: read it with `garra approvals show`, and answer it with `approve`"
        )
        raise Conflict(words, details={"reason": "APPROVAL_UNAVAILABLE"})
    days = params.grant_expires_in_days or 0
    return await book.decide(found.id, Verdict(choice, by(caller), params.reason or "", days))


def by(caller: Caller) -> str:
    """Who answered, for the record."""
    return caller.client.id or "operator"


# ---- asking, for the operator's programs


async def request(host: Host, caller: Caller, params: Requested) -> dict[str, Any]:
    """Ask people whether a command may run."""
    question = asked(host, params, "exec", params.command)
    question = changed(
        question,
        why=tuple(line for line in (params.warning_text or "").splitlines() if line),
        argv=tuple(params.command_argv or ()),
        cwd=params.cwd or "",
        host=params.host or "gateway",
        env=tuple(sorted(params.env or {})),
    )
    return await _ask(host, caller, params, question)


async def plugin_request(host: Host, caller: Caller, params: PluginRequested) -> dict[str, Any]:
    """Ask people whether a plugin may do something."""
    subject = "\n".join(part for part in (params.title, params.description, params.detail or "") if part)
    question = asked(host, params, "tool", subject)
    return await _ask(host, caller, params, changed(question, tool=params.tool_name or ""))


async def _ask(host: Host, caller: Caller, params: Asking, question: Question) -> dict[str, Any]:
    """`decision` is null when nobody answered."""
    book, name = register(host), (params.id or host.new_id()).lower()

    def registered(change: Change) -> None:
        found = change.approval
        if found.id == name and change.answer is None:
            times = {"createdAtMs": found.asked_at, "expiresAtMs": found.expires_at}
            caller.respond_early({"status": "accepted", "id": name, **times})

    end = book.subscribe(registered) if params.two_phase else None
    try:
        answer = await book.ask(question, name)
    finally:
        if end is not None:
            end()
    decision = None if answer.by in ("", "askFallback") else answer.choice
    return {"id": name, "decision": decision, "resolvedBy": answer.by or None, "reason": answer.reason or None}


def asked(host: Host, params: Asking, kind: Kind, subject: str) -> Question:
    agent = host.agent(params.agent_id)
    key = host.key(params.session_key or host.main, agent)
    return Question(
        kind,
        subject,
        "",
        SessionKey(key),
        AgentId(agent),
        RunId(params.run_id or ""),
        params.tool_call_id or "",
        life_ms=params.timeout_ms,
    )


async def wait(host: Host, caller: Caller, params: Named) -> dict[str, Any]:
    """The decision on one, once there is one; null when it ended without."""
    ended = await register(host).ended(params.id)
    return {
        "id": ended.id,
        "decision": ended.answer.choice if ended.answer and ended.phase in ("allowed", "denied") else None,
        "createdAtMs": ended.asked_at,
        "expiresAtMs": ended.expires_at,
    }


# ---- what was allowed for longer


def grants(host: Host, caller: Caller, params: GrantsList) -> dict[str, Any]:
    rows = register(host).grants.all()[: params.limit]
    return {
        "grants": [
            {
                "grantId": each.id,
                "mintedByApprovalId": each.approval,
                "agentId": each.agent_id,
                "kind": each.kind,
                "covers": each.covers,
                "command": each.about[:512],
                "cwd": None,
                "cronJobId": each.kind,  # clients of the original want a text here
                "cronJobName": None,
                "createdAtMs": each.created_at,
                "expiresAtMs": each.expires_at or None,
                "revokedAtMs": each.revoked_at or None,
                "revokedBy": each.revoked_by or None,
                "lastUsedAtMs": each.used_at or None,
                "useCount": each.uses,
            }
            for each in rows
        ]
    }


async def revoke(host: Host, caller: Caller, params: GrantRevoked) -> dict[str, Any]:
    done = await register(host).revoke(params.grant_id, by(caller))
    return {"outcome": "revoked" if done else "already-revoked", "grantId": params.grant_id}


# ---- the document


def document(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    book = register(host).rulebook
    return {
        "path": f"{host.paths.db}#exec_approvals_config",
        "exists": book.exists,
        "file": dict(book.document),
        "hash": book.hash,
        "resolvedDefaults": resolved_defaults(host),
    }


def resolved_defaults(host: Host) -> dict[str, Any]:
    """What the document alone says of a command on the machine itself, for an agent that it does not name."""
    found = filled(register(host).rulebook.rules.defaults, shut_in=False)
    return {
        "security": found.security,
        "ask": found.ask,
        "askFallback": found.fallback or "deny",
        "autoAllowSkills": False,
    }


async def replace(host: Host, caller: Caller, params: DocumentSet) -> dict[str, Any]:
    await own.refuse(caller)
    await register(host).rulebook.set(params.file, params.base_hash)
    return document(host, caller, Nothing())


def of_node(host: Host, caller: Caller, params: NodeNamed) -> dict[str, Any]:
    raise UserError("no node keeps approvals of its own here: commands run on this machine (exec.approvals.get, set)")


METHODS: tuple[Method, ...] = (
    Method("exec.approval.request", APPROVALS, Requested, request, twice=True),
    Method("exec.approval.get", APPROVALS, Named, exec_get),
    Method("exec.approval.list", APPROVALS, Nothing, exec_list),
    Method("exec.approval.resolve", APPROVALS, Resolved, resolve),
    Method("exec.approval.waitDecision", APPROVALS, Named, wait),
    Method("exec.approval.grants.list", APPROVALS, GrantsList, grants),
    Method("exec.approval.grants.revoke", APPROVALS, GrantRevoked, revoke),
    Method("exec.approvals.get", ADMIN, Nothing, document),
    Method("exec.approvals.set", ADMIN, DocumentSet, replace),
    Method("exec.approvals.node.get", ADMIN, NodeNamed, of_node),
    Method("exec.approvals.node.set", ADMIN, NodeNamed, of_node),
    Method("approval.get", APPROVALS, Named, get),
    Method("approval.history", APPROVALS, History, history),
    Method("approval.resolve", APPROVALS, Resolved, unified),
    Method("plugin.approval.request", APPROVALS, PluginRequested, plugin_request, twice=True),
    Method("plugin.approval.list", APPROVALS, Nothing, plugin_list),
    Method("plugin.approval.resolve", APPROVALS, Resolved, resolve),
    Method("plugin.approval.waitDecision", APPROVALS, Named, wait),
    Method("openclaw.approval.list", APPROVALS, Nothing, nothing),
)
