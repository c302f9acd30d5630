"""A question of an agent as the chat's lines show it: whole, with what to type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.core.approvals import called, doing, short
from garra.core.characters import escaped

OWN = "openclaw-tui"
"""The name of this very client: who answers here need not be told so."""


def told(event: str, payload: Mapping[str, Any]) -> str:
    """What a line says of an event of approvals; empty for any other event."""
    kind, _, what = event.partition(".approval.")
    if kind not in ("exec", "plugin") or what not in ("requested", "resolved"):
        return ""
    request = payload.get("request") or {}
    if what == "resolved":
        who = str(payload.get("resolvedBy") or "")
        by = f" by {called(who)}" if who and who != OWN else ""
        return f"{short(str(payload.get('id', '')))}: {payload.get('decision')}{by}"
    return _asked(str(payload.get("id", "")), request)


def _asked(name: str, request: Mapping[str, Any]) -> str:
    subject = str(request.get("command") or request.get("detail") or request.get("description") or "")
    what = str(request.get("title") or "")
    if request.get("command"):
        what = f"May it {doing('exec')}?"
    elif tool := str(request.get("toolName") or ""):
        what = f"May it {doing('tool', tool)}?"
    lines = [f"The agent {request.get('agentId')} asks: {what}", subject]
    if request.get("cwd"):
        lines.append(f"in {escaped(str(request['cwd']))}")
    if request.get("command") and request.get("warningText"):
        lines.append(str(request["warningText"]))
    choices = [each for each in request.get("allowedDecisions") or () if each != "deny"]
    lines += [f"/approve {short(name)} {choice}" for choice in choices]
    return "\n".join((*lines, f"/deny {short(name)}"))
