"""The conversations of this gateway that the caller may see: from a chat only its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.sdk.tool import Call, Result, ToolInfo, Update

MOST = 50


class SessionsList:
    """The tool `sessions_list`."""

    info = ToolInfo(
        "sessions_list",
        "Sessions",
        "List conversations, newest first.",
        {
            "type": "object",
            "properties": {"limit": {"type": "integer", "minimum": 1}, "search": {"type": "string"}},
            "additionalProperties": False,
        },
        source="openclaw",
        groups=("group:sessions",),
    )

    async def execute(self, call: Call, _: Update) -> Result:
        asked = {"limit": min(call.arguments.get("limit", MOST), MOST)}
        search = {"search": call.arguments["search"]} if call.arguments.get("search") else {}
        answer = await call.context.grants.ask("sessions.list", {**asked, **search})
        here = call.context
        seen = [s for s in answer.get("sessions", ()) if here.origin != "channel" or s.get("key") == here.session_key]
        rows = [row(session) for session in seen]
        lines = [f"{r['key']} {r['label']}".rstrip() for r in rows]
        return Result.of("\n".join(lines) or "No session.", {"count": len(rows), "sessions": rows})


def row(session: Mapping[str, Any]) -> dict[str, Any]:
    label = session.get("label") or session.get("displayName") or session.get("derivedTitle") or ""
    return {"key": session.get("key"), "label": label, "updatedAt": session.get("updatedAt")}
