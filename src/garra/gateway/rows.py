"""A session as a row of the list, and the facts about models that rows and answers repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from garra.config.sections import Config
from garra.core.errors import NotFound
from garra.core.keys import Key, parse
from garra.core.thinking import levels as core_levels
from garra.core.value import frozen, record
from garra.domains.sessions.session import Session
from garra.gateway.parts import ModelTable
from garra.runs.run import Run
from garra.sdk.model import Model

RUNTIME = {"id": "auto", "cloudPlacementSupported": False, "devicePlacementSupported": False, "source": "implicit"}
OWNER = {"identity": {"type": "profile", "id": "gateway-owner"}}
BACKGROUND = frozenset({"cron", "hook", "subagent"})
KINDS = {"group": "group", "channel": "group"}
DRAWN = 1_000
"""Rows kept from one list to the next."""


class Thinker(Protocol):
    @property
    def reasoning(self) -> bool: ...


def levels(model: Thinker | None) -> tuple[str, ...]:
    """The thinking levels a model knows; just `off` for one that does not think."""
    return core_levels(reasoning=model is not None and model.reasoning)


def thinking(model: Thinker | None, default: str | None = None) -> dict[str, Any]:
    """`thinkingLevels`, `thinkingOptions` and `thinkingDefault` of a model."""
    known = levels(model)
    chosen = default if default in known else ("low" if len(known) > 1 else "off")
    return {
        "thinkingLevels": [{"id": level, "label": level} for level in known],
        "thinkingOptions": list(known),
        "thinkingDefault": chosen,
    }


def model_of(models: ModelTable, ref: str | None, agent_id: str) -> Model | None:
    """The model that answers, None when there is none (that is told when a turn is tried, not here)."""
    try:
        return models.resolve(ref, agent_id)
    except NotFound:
        return None


def default_level(config: Config, agent_id: str) -> str | None:
    agent = config.agents.find(agent_id)
    return (agent.thinking_default if agent else None) or config.agents.defaults.thinking_default


def defaults(config: Config, models: ModelTable, agent_id: str) -> dict[str, Any]:
    """What a session has that sets nothing of its own."""
    model = model_of(models, None, agent_id)
    return {
        "modelProvider": model.provider if model else None,
        "model": model.id if model else None,
        "contextTokens": model.context_window if model else None,
        "agentRuntime": RUNTIME,
        **thinking(model, default_level(config, agent_id)),
        "modelSelectionTarget": "session",
    }


def title(session: Session) -> str | None:
    return session.label or session.display_name or session.title


@frozen
class _Drawn:
    """What of a row stays as long as the session, its model and the configuration do."""

    session: Session
    model: Model | None
    config: Config
    row: Mapping[str, Any]


@record
class Drawings:
    """What was drawn for earlier rows; kept from one request to the next."""

    rows: dict[str, _Drawn] = field(default_factory=dict)
    models: dict[tuple[str | None, str], Model | None] = field(default_factory=dict)


class Rows:
    """Builds rows; `runs` tells which sessions are busy."""

    def __init__(
        self, config: Config, models: ModelTable, runs: Sequence[Run], now_ms: int, *, drawings: Drawings
    ) -> None:
        self._config, self._models, self._now, self._drawings = config, models, now_ms, drawings
        self._busy: dict[str, list[str]] = {}
        self._known: dict[tuple[str | None, str], Model | None] = {}
        for run in runs:
            if run.state != "ended":
                self._busy.setdefault(run.session_key, []).append(run.run_id)

    def row(self, session: Session, *, titles: bool = True, last: bool = True) -> dict[str, Any]:
        """`titles` and `last`: whether the row tells the derived title and the last words."""
        busy = self._busy.get(session.key, [])
        now = {"snapshotAt": self._now, "hasActiveRun": bool(busy), "activeRunIds": busy}
        row: dict[str, Any] = {**self._drawn(session), **now}
        if titles and (name := title(session)):
            row |= {"displayName": name, "derivedTitle": session.title or name}
        if last and session.last_message:
            row["lastMessagePreview"] = session.last_message
        return row

    def _drawn(self, session: Session) -> Mapping[str, Any]:
        model, known = self._resolved(session), self._drawings.rows
        found = known.get(session.key)
        if (
            found is None
            or found.session is not session
            or found.model is not model
            or found.config is not self._config
        ):
            if len(known) >= DRAWN:
                known.clear()
                self._drawings.models.clear()
            found = known[session.key] = _Drawn(session, model, self._config, self._draw(session, model))
        return found.row

    def _draw(self, session: Session, model: Model | None) -> dict[str, Any]:
        return {
            "key": session.key,
            **self._place(session, parse(session.key)),
            "visibility": "shared",
            "sharingRole": "admin",
            "permissionModePending": False,
            "createdVia": session.created_via,
            "participants": [OWNER],
            "expandedParticipants": [OWNER],
            "participantCount": 1,
            "createdAt": session.created_at,
            "updatedAt": session.updated_at,
            "sessionId": session.session_id,
            "archived": session.archived,
            "pinned": session.pinned,
            "unread": bool(session.extra.get("unread")),
            **self._model(session, model),
            **_tokens(session),
            "runtimeSelectionLocked": False,
            "effectiveQueueMode": str(session.extra.get("queueMode") or "steer"),
            **_own(session),
        }

    def _place(self, session: Session, key: Key) -> dict[str, Any]:
        main = key.kind == "named" and key.id == self._config.session.main_key
        kind = "main" if main else key.kind
        place = {
            "kind": KINDS.get(kind, "direct"),
            "chatType": kind if kind in ("group", "channel") else "direct",
            "classification": "direct" if kind == "named" else kind,
            "agentId": session.agent_id,
            "isMain": kind == "main",
            "isBackground": kind in BACKGROUND,
        }
        return {**place, "channel": key.channel} if key.channel else place

    def _resolved(self, session: Session) -> Model | None:
        """The model that would answer; the same object as before where nothing changed."""
        wanted = (session.override, session.agent_id)
        if wanted not in self._known:
            model, before = model_of(self._models, *wanted), self._drawings.models.get(wanted)
            self._known[wanted] = self._drawings.models[wanted] = before if before == model else model
        return self._known[wanted]

    def _model(self, session: Session, model: Model | None) -> dict[str, Any]:
        return {
            "modelProvider": model.provider if model else session.provider,
            "model": model.id if model else session.model,
            "modelOverrideSource": "user" if session.override else None,
            "contextTokens": session.context_tokens or (model.context_window if model else None),
            "agentRuntime": RUNTIME,
            **thinking(model, default_level(self._config, session.agent_id)),
        }


OWN = {"label": "label", "thinking": "thinkingLevel", "verbose": "verboseLevel"}
PASSED = (
    "channel", "deliveryContext", "lastChannel", "lastTo", "lastAccountId", "lastThreadId",
    "status", "startedAt", "endedAt", "runtimeMs", "lastRunId", "lastRunError", "fastMode", "reasoningLevel",
    "elevatedLevel", "traceLevel", "responseUsage", "sendPolicy", "groupActivation", "color", "icon", "category",
    "spawnedBy", "spawnDepth", "lastReadAt", "abortedLastRun", "forkedFromParent", "parentSessionKey", "taint",
    "compactionCount",
)  # fmt: skip


def _own(session: Session) -> dict[str, Any]:
    """What the session itself sets; absent where it sets nothing."""
    row = {wire: value for name, wire in OWN.items() if (value := getattr(session, name)) is not None}
    return {**row, **{name: session.extra[name] for name in PASSED if name in session.extra}}


def _tokens(session: Session) -> dict[str, Any]:
    if session.totals is None:
        return {"totalTokensFresh": False}
    totals = session.totals
    return {
        "inputTokens": totals.input,
        "outputTokens": totals.output,
        "cacheRead": totals.cache_read,
        "cacheWrite": totals.cache_write,
        "totalTokens": totals.total,
        "totalTokensFresh": True,
        "estimatedCostUsd": totals.cost,
    }
