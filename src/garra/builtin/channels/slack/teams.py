"""Of which workspace an envelope and its author are: an id of Slack names nobody without its workspace. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_AUTHOR: Final = ("user_team", "team", "source_team")
"""Where a message says the workspace of who wrote it; in a channel shared by Slack Connect they may differ."""


def told(said: Mapping[str, Any]) -> dict[str, Any]:
    """What it says of its author's workspace."""
    return {key: said[key] for key in _AUTHOR if said.get(key)}


def foreign(said: Mapping[str, Any], own: str) -> str:
    """The author's workspace where it is not `own`; empty where it is, or is not said."""
    return next((str(team) for team in told(said).values() if team != own), "")


def ours(kind: str, payload: Any, own: str) -> bool:
    """Whether an envelope is for the workspace `own`: by the installations it is for, by the workspace it came
    through, and, where neither is said, by where it happened.
    """
    if not isinstance(payload, Mapping):
        return True
    if kind == "events_api" and isinstance(listed := payload.get("authorizations"), list) and listed:
        return any(isinstance(one, Mapping) and one.get("team_id") == own for one in listed)
    return str(_place(kind, payload) or own) == own


def _place(kind: str, payload: Mapping[str, Any]) -> Any:
    """The workspace an envelope came through."""
    if kind == "interactive":
        team = payload.get("team")
        return team.get("id") if isinstance(team, Mapping) else None
    return payload.get("context_team_id") or payload.get("team_id")
