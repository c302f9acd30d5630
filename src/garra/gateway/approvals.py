"""Approvals as the gateway's clients see them: their rows on the wire, the events, and who of the clients is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from garra.core.approvals import CHOICES, Answer, Approval, Phase, doing
from garra.core.errors import Unavailable
from garra.core.scopes import APPROVALS, reaches
from garra.core.showing import measured, shown
from garra.core.value import frozen
from garra.domains.exec.approvals import Approvals, Change
from garra.gateway.host import Host
from garra.gateway.method import Link

WHERE: Final = "approvals"
"""Where the questions stand in `Host.more`."""

TITLE, DESCRIPTION, DETAIL = 80, 512, 16_384
"""Characters that a card of a tool's question holds in each of its parts."""

CAPS: Final[Mapping[str, frozenset[str]]] = {
    "exec": frozenset({"approvals", "exec-approvals"}),
    "plugin": frozenset({"approvals", "plugin-approvals"}),
}
"""What a client says of itself that answers questions of a family."""

STATUS: Final[Mapping[Phase, str]] = {
    "registering": "pending",
    "pending": "pending",
    "allowed": "allowed",
    "denied": "denied",
    "expired": "expired",
    "withdrawn": "cancelled",
}


def register(host: Host) -> Approvals:
    """Raises Unavailable where nobody is asked anything."""
    found = host.more.get(WHERE)
    if not isinstance(found, Approvals):
        raise Unavailable("approvals are not ready yet; try again in a moment")
    return found


def pending(host: Host) -> list[Approval]:
    """What waits; nothing where nobody is asked anything."""
    found = host.more.get(WHERE)
    return found.pending() if isinstance(found, Approvals) else []


def family(approval: Approval) -> str:
    """The kind on the wire: commands are `exec`, all else is asked as `plugin`."""
    return "exec" if approval.question.kind == "exec" else "plugin"


def topic(session_key: str) -> str:
    """What a connection watches to see the questions of a session."""
    return f"approvals:{session_key}"


@frozen
class Operators:
    """The route to clients that answer questions. They are told by the events."""

    host: Host

    async def reaches(self, approval: Approval) -> bool:
        caps = CAPS[family(approval)]
        return self.host.hub.anybody(lambda link: answers(link, caps))

    async def show(self, approval: Approval) -> None:
        """The event is out already."""


def answers(link: Link, caps: frozenset[str]) -> bool:
    who = link.who
    return who.role == "operator" and reaches(who.scopes, APPROVALS) and not who.caps.isdisjoint(caps)


def watch(host: Host) -> Callable[[], None]:
    """Tell the clients of every question and its end. The call ends it."""

    def changed(change: Change) -> None:
        approval, answer = change.approval, change.answer
        now, key, kind = host.clock.now_ms(), approval.question.session_key, family(approval)
        state = snapshot(approval)
        event = {
            "sessionKey": key,
            "sourceSessionKey": key,
            "updatedAtMs": now,
            "phase": "pending" if answer is None else "terminal",
            "approval": state,
        }
        host.hub.publish("session.approval", event, scope=APPROVALS, where=lambda link: topic(key) in link.watching)
        if answer is None:
            host.hub.publish(f"{kind}.approval.requested", row(approval), scope=APPROVALS)
        else:
            host.hub.publish(f"{kind}.approval.resolved", resolved(approval, answer, now), scope=APPROVALS)

    return register(host).subscribe(changed)


def row(approval: Approval) -> dict[str, Any]:
    """A question that waits, as lists and events have it."""
    return {
        "approvalKind": family(approval),
        "id": approval.id,
        "request": request(approval),
        "createdAtMs": approval.asked_at,
        "expiresAtMs": approval.expires_at,
    }


def request(approval: Approval) -> dict[str, Any]:
    """What is asked."""
    question, source = approval.question, approval.source
    offered = [choice for choice in CHOICES if choice in question.choices]
    common = {
        "allowedDecisions": offered,
        "agentId": question.agent_id,
        "sessionKey": question.session_key,
        "sessionId": None,
        "runId": question.run_id or None,
        "toolCallId": question.call_id or None,
        "turnSourceChannel": source.channel or "webchat",
        "turnSourceTo": source.chat or question.session_key,
        "turnSourceAccountId": source.account or None,
        "turnSourceThreadId": source.thread or None,
    }
    if question.kind == "exec":
        return {**_command(approval), **common}
    return {**card(approval), **common}


def _command(approval: Approval) -> dict[str, Any]:
    question = approval.question
    always = "allow-always" in question.choices
    return {
        "command": shown(question.subject),
        "commandArgv": [shown(each) for each in question.argv] or None,
        "systemRunBinding": None,
        "systemRunPlan": None,
        "cwd": question.cwd or None,
        "envKeys": list(question.env),
        "nodeId": None,
        "host": question.host or "gateway",
        "security": None,
        "ask": None,
        "warningText": warning(approval) or None,
        "scope": None,
        "remembers": question.remembers if always else None,
        "unavailableDecisions": [] if always else ["allow-always"],
        "resolvedPath": question.argv[0] if question.argv else None,
        "cronExecutionSource": None,
        "cronOperationBinding": None,
    }


def warning(approval: Approval) -> str:
    """How long it is, why it is asked, and what `always` would let pass, a line each."""
    question = approval.question
    size = measured(question.subject)
    length = [f"{size[0].upper()}{size[1:]}"] if size else []
    always = [f"Allow always: {question.remembers}"] if "allow-always" in question.choices else []
    return "\n".join((*length, *question.why, *always))


def card(approval: Approval) -> dict[str, Any]:
    """A tool's question in the parts of a card; what does not fit into them whole is said to be longer."""
    question = approval.question
    whole = "\n".join(part for part in (shown(question.subject), warning(approval)) if part)
    asks = f"{question.tool} asks for approval" if question.tool else f"May it {doing(question.kind)}?"
    title = asks[:TITLE]
    return {
        "pluginId": None,
        "title": title,
        "description": whole
        if len(whole) <= DESCRIPTION
        else f"{whole[: DESCRIPTION - 40]}… (all of it is in the detail)",
        "detail": whole[:DETAIL] if len(whole) > DESCRIPTION else None,
        "severity": "warning",
        "toolName": question.tool or None,
    }


def fits(approval: Approval) -> bool:
    """Whether a client's card holds all of it. What does not is allowed at the command line only."""
    question = approval.question
    return question.kind == "exec" or len(shown(question.subject)) + len(warning(approval)) < DETAIL


def snapshot(approval: Approval) -> dict[str, Any]:
    """A question with what became of it."""
    state = {
        "id": approval.id,
        "status": STATUS[approval.phase],
        "presentation": presentation(approval),
        "urlPath": f"/approve/{approval.id}",
        "createdAtMs": approval.asked_at,
        "expiresAtMs": approval.expires_at,
    }
    if approval.open:
        return state
    answer = approval.answer or Answer("deny")
    ended = {**state, "resolvedAtMs": approval.ended_at, "reason": _reason(approval, answer)}
    if approval.phase in ("allowed", "denied"):
        ended["decision"] = answer.choice
    return ended


def presentation(approval: Approval) -> dict[str, Any]:
    question = approval.question
    offered = [choice for choice in CHOICES if choice in question.choices]
    about = {"agentId": question.agent_id, "allowedDecisions": offered}
    if question.kind != "exec":
        shape = {name: value for name, value in card(approval).items() if value is not None}
        return {"kind": "plugin", **shape, **about}
    return {
        "kind": "exec",
        "commandText": shown(question.subject),
        "commandPreview": None,
        "warningText": warning(approval) or None,
        "host": question.host or "gateway",
        "nodeId": None,
        **about,
    }


def _reason(approval: Approval, answer: Answer) -> str:
    if approval.phase == "expired":
        return "timeout"
    if approval.phase == "withdrawn":
        return "cancelled"
    return "no-route" if answer.by == "askFallback" else "user"


def historic(approval: Approval) -> dict[str, Any]:
    """An answered question, with who asked and who answered."""
    answer = approval.answer or Answer("deny")
    system = answer.by in ("", "askFallback", "reviewer")
    channel = ":" in answer.by
    resolver = {
        "kind": "system" if system else "channel" if channel else "runtime",
        "id": "no-approval-route" if _reason(approval, answer) == "no-route" else answer.by or "system",
    }
    source = {"agentId": approval.question.agent_id, "sessionKey": approval.question.session_key}
    return {**snapshot(approval), "source": source, "resolver": resolver}


def resolved(approval: Approval, answer: Answer, now: int) -> dict[str, Any]:
    return {
        "id": approval.id,
        "decision": answer.choice,
        "resolvedBy": answer.by or None,
        "ts": now,
        "request": request(approval),
    }


def replay(host: Host, session_key: str) -> list[dict[str, Any]]:
    """The questions of a session that wait, for a client that begins to watch it; none where nobody is asked."""
    return [snapshot(each) for each in pending(host) if each.question.session_key == session_key]
