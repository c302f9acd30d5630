"""How a conversation stands: model, tokens, whether it is at work, and what time it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from garra.sdk.tool import Call, Result, ToolInfo, Update


class SessionStatus:
    """The tool `session_status`."""

    info = ToolInfo(
        "session_status",
        "Session status",
        "How a session stands: model, tokens, at work or not; the time now.",
        {
            "type": "object",
            "properties": {"sessionKey": {"type": "string", "description": "default: this one"}},
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
        declared=True,
    )

    async def execute(self, call: Call, _: Update) -> Result:
        answer = await call.context.grants.ask("session.status", call.arguments)
        return Result.of("\n".join(_lines(answer)), answer)


def _lines(answer: Mapping[str, Any]) -> list[str]:
    window = answer.get("contextWindow")
    share = f" of {window}" if window else ""
    work = "at work" if answer.get("run") else "idle"
    outside = [f"Read from outside: {answer['outside']}"] if answer.get("outside") else []
    return [
        *outside,
        f"Session {answer['key']} ({work}), agent {answer['agentId']}, Garra {answer['version']}",
        f"Model {answer.get('model') or 'none'}, thinking {answer['thinking']}",
        f"Context {answer['contextTokens']}{share} tokens",
        f"Last used {_time(answer['updatedAt'], answer['timeZone'])}, now {_time(answer['now'], answer['timeZone'])}",
    ]


def _time(at_ms: int, zone: str) -> str:
    place = UTC if zone in ("", "UTC") else ZoneInfo(zone)
    return datetime.fromtimestamp(at_ms / 1000, place).strftime("%Y-%m-%d %H:%M %Z")
