"""A run that waits for a person, has its history made smaller, or says a line of its own, as its watchers see it."""

from __future__ import annotations

from typing import Any

from garra.core.events import Compacting, Noticed, PersonAnswered, PersonAsked


def told(body: PersonAsked | PersonAnswered | Compacting | Noticed) -> list[tuple[str, dict[str, Any]]]:
    """Streams of `agent` events, with what each says."""
    if isinstance(body, Compacting):
        return [("compaction", _smaller(body))]
    if isinstance(body, Noticed):
        return [("notice", {"text": body.text})]
    about = {"approvalId": body.approval, "toolCallId": body.call_id}
    if isinstance(body, PersonAsked):
        return [("lifecycle", {"phase": "waiting-approval", **about})]
    command = body.kind == "exec"
    line = {
        "phase": "resolved",
        "kind": "exec" if command else "plugin",
        "status": "approved" if body.allowed else "denied",
        "title": "Command approval resolved" if command else "Approval resolved",
        "itemId": f"{'command' if command else 'tool'}:{body.call_id}",
        "toolCallId": body.call_id,
        "message": body.subject,
    }
    return [("lifecycle", {"phase": "approval-resolved", **about}), ("approval", line)]


def _smaller(body: Compacting) -> dict[str, Any]:
    """The original's clients know `phase`, `completed` and `willRetry`; the rest says what was done."""
    told: dict[str, Any] = {"phase": body.phase, "reason": body.why}
    if body.phase == "end":
        told |= {"completed": bool(body.step), "willRetry": body.why == "overflow" and bool(body.step)}
        told |= {"step": body.step, "tokensBefore": body.before, "tokensAfter": body.after}
    return told
