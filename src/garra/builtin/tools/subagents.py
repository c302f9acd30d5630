"""The sub-agents of this conversation: who they are, what they said; stop one, say something to one."""

from __future__ import annotations

from typing import Any

from garra.core.errors import ToolFailed
from garra.sdk.family import Family, Relative
from garra.sdk.tool import Call, Result, ToolInfo, Update

LINES = 20
STOPS = ("cancel", "stop", "kill")


class Subagents:
    """The tool `subagents`."""

    info = ToolInfo(
        "subagents",
        "Sub-agents",
        "Your sub-agents: list them; log, cancel (target `all`: every one) or steer (with message) one.",
        {
            "type": "object",
            "properties": {
                "action": {"enum": ["list", "log", "cancel", "stop", "kill", "steer"]},
                "target": {"type": "string"},
                "message": {"type": "string", "maxLength": 20_000},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200},
            },
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        family, given = call.context.family, call.arguments
        if family is None:
            raise ToolFailed("There are no sub-agents here.")
        action, target = given.get("action", "list"), given.get("target", "")
        if action == "list":
            return _listed(family)
        if not target:
            raise ToolFailed(f"Name the sub-agent as `target` to {action}; action list shows them.")
        if action in STOPS:
            stopped = await family.stop(target)
            names = ", ".join(child.label for child in stopped)
            return Result.of(f"Stopped: {names}." if stopped else "None was at work.", {"stopped": len(stopped)})
        if action == "steer":
            if not given.get("message"):
                raise ToolFailed("`message` says what to tell it.")
            child = await family.steer(target, given["message"], call.context.marks)
            return Result.of(f"{child.label} is told.", {"status": "steered", "childSessionKey": child.key})
        said = await family.log(target, given.get("limit", LINES))
        return Result.of(said.text, marks=said.marks)


def _listed(family: Family) -> Result:
    members = family.members()
    lines = [f"{at}. {line(child)}" for at, child in enumerate(members, 1)]
    return Result.of("\n".join(lines) or "No sub-agent.", {"count": len(lines), "subagents": [row(c) for c in members]})


def line(child: Relative) -> str:
    """One sub-agent in a line."""
    state = child.outcome if child.state in ("ended", "told") and child.outcome else child.state
    return f"{child.label}: {state} · {child.key}"


def row(child: Relative) -> dict[str, Any]:
    return {
        "runId": child.run_id,
        "childSessionKey": child.key,
        "label": child.label,
        "agentId": child.agent,
        "task": child.task,
        "execution": child.state,
        "status": child.outcome or child.state,
        "deliveryStatus": "delivered" if child.state == "told" else "pending",
        "createdAt": child.created_at,
        "startedAt": child.started_at,
        "endedAt": child.ended_at,
        "inputTokens": child.tokens_in,
        "outputTokens": child.tokens_out,
    }
