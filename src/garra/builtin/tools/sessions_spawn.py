"""A sub-agent for one piece of work: it works beside this conversation, and its report comes as a message."""

from __future__ import annotations

from typing import Any

from garra.core.errors import ToolFailed
from garra.sdk.family import Relative, Wanted
from garra.sdk.tool import Call, Result, ToolInfo, Update

TASK = 100_000
"""Characters of a task at most."""


class SessionsSpawn:
    """The tool `sessions_spawn`. It takes no chat, thread or person: a report goes where its parent was asked."""

    info = ToolInfo(
        "sessions_spawn",
        "Sub-agent",
        "Start a sub-agent for a large or separate task. It sees only `task` (context fork: this conversation too), "
        "works meanwhile, and its report comes to you as a message: do not poll.",
        {
            "type": "object",
            "properties": {
                "task": {"type": "string", "minLength": 1, "maxLength": TASK},
                "label": {"type": "string", "maxLength": 80},
                "agentId": {"type": "string"},
                "model": {"type": "string"},
                "thinking": {"type": "string"},
                "runTimeoutSeconds": {"type": "integer", "minimum": 0},
                "context": {"enum": ["isolated", "fork"]},
                "cleanup": {"enum": ["keep", "delete"]},
            },
            "required": ["task"],
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        family = call.context.family
        if family is None:
            raise ToolFailed("No sub-agent can be started from here.")
        given = call.arguments
        child = await family.start(
            Wanted(
                given["task"],
                given.get("label", ""),
                given.get("agentId", ""),
                given.get("model", ""),
                given.get("thinking", ""),
                given.get("runTimeoutSeconds"),
                fork=given.get("context") == "fork",
                forget=given.get("cleanup") == "delete",
            ),
            call.context.marks,
        )
        return Result.of(said(child), accepted(child))


def said(child: Relative) -> str:
    note = f" {child.note}" if child.note else ""
    return f"Started: {child.key}.{note} Its report will come as a message; go on, or end your turn."


def accepted(child: Relative) -> dict[str, Any]:
    note = {"note": child.note} if child.note else {}
    return {"status": "accepted", "runId": child.run_id, "childSessionKey": child.key, **note}
