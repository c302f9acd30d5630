"""The end of a turn that waits for its sub-agents: the next report goes on with it."""

from __future__ import annotations

from garra.core.errors import ToolFailed
from garra.sdk.tool import Call, Result, ToolInfo, Update


class SessionsYield:
    """The tool `sessions_yield`."""

    info = ToolInfo(
        "sessions_yield",
        "Wait for sub-agents",
        "End this turn now; your sub-agents' next report begins another. `message` is a note to yourself, "
        "`acknowledgment` what the person is told meanwhile.",
        {
            "type": "object",
            "properties": {
                "message": {"type": "string", "maxLength": 4000},
                "acknowledgment": {"type": "string", "maxLength": 1000},
            },
            "additionalProperties": False,
        },
        mode="sequential",
        source="openclaw",
        groups=("group:sessions",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        family = call.context.family
        if family is None:
            raise ToolFailed("There is nothing to wait for here.")
        waiting = await family.rest(call.arguments.get("acknowledgment", ""))
        rows = [{"sessionKey": child.key, "label": child.label, "state": child.state} for child in waiting]
        note = call.arguments.get("message", "")
        lines = [f"This turn ends here; {len(rows)} at work: {', '.join(child.label for child in waiting)}."]
        return Result.of(
            "\n".join([*lines, *([f"Note: {note}"] if note else [])]), {"status": "yielded", "waiting": rows}
        )
