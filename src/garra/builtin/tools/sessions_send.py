"""Something said in another conversation of this gateway, and what was answered there."""

from __future__ import annotations

from garra.sdk.marked import marks, told
from garra.sdk.tool import Call, Effect, Result, ToolInfo, Update


class SessionsSend:
    """The tool `sessions_send`."""

    info = ToolInfo(
        "sessions_send",
        "Session send",
        "Say something in another session and wait for its answer. timeoutSeconds 0: do not wait; a late answer comes "
        "as a message.",
        {
            "type": "object",
            "properties": {
                "sessionKey": {"type": "string"},
                "message": {"type": "string", "minLength": 1},
                "timeoutSeconds": {"type": "number", "minimum": 0, "maximum": 600, "description": "default 30"},
            },
            "required": ["sessionKey", "message"],
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
        effects=("sends",),
        declared=True,
    )

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """What goes to one's own sub-agent stays in the house. Nobody is asked about a session that is not seen."""
        found = await call.context.grants.ask("session.status", {"sessionKey": call.arguments["sessionKey"]})
        return () if found.get("spawnedBy") == call.context.session_key else ("sends",)

    async def execute(self, call: Call, _: Update) -> Result:
        asked = {**call.arguments, "callId": call.id, "marks": told(call.context.marks)}
        answer = await call.context.grants.ask("sessions.send", asked)
        words = {
            "ok": answer.get("reply", ""),
            "no_reply": "It was taken, and nothing was answered.",
            "error": f"It was taken, and not answered: {answer.get('error', '')}",
            "timeout": "It was taken; the answer is not there yet and comes as a message. Do not send it again.",
        }
        line = words.get(answer["status"], "It was taken; an answer comes as a message.")
        return Result.of(line, answer, marks(answer))
