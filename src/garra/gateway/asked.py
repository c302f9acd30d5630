"""A run that waits for a person, as its watchers see it."""

from __future__ import annotations

from typing import Any

from garra.core.events import PersonAnswered, PersonAsked


def told(body: PersonAsked | PersonAnswered) -> list[tuple[str, dict[str, Any]]]:
    """Streams of `agent` events, with what each says."""
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
