"""What may be changed of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Conflict, NotFound, UserError
from garra.core.messages import Usage
from garra.domains.sessions.session import Session, entry_from, entry_json
from tests.domains.sessions.test_store import KEY, begin, sessions_in


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        ({"label": " mine "}, {"label": "mine"}),
        ({"displayName": "Mine"}, {"displayName": "Mine"}),
        ({"model": "openai/gpt-5"}, {"providerOverride": "openai", "modelOverride": "gpt-5"}),
        ({"model": "openrouter/a/b"}, {"providerOverride": "openrouter", "modelOverride": "a/b"}),
        ({"model": "gpt-5"}, {"modelOverride": "gpt-5"}),
        ({"thinkingLevel": "HIGH"}, {"thinkingLevel": "high"}),
        ({"verboseLevel": "full"}, {"verboseLevel": "full"}),
        ({"archived": True, "pinned": True}, {"archived": True, "pinned": True}),
        ({"reasoningLevel": "stream", "unread": False}, {"reasoningLevel": "stream", "unread": False}),
        ({"contextTokens": 5, "lastReadAt": 6}, {"contextTokens": 5, "lastReadAt": 6}),
        ({"systemPromptReport": {"chars": 1}}, {"systemPromptReport": {"chars": 1}}),
    ],
)
async def test_a_change_is_kept_and_null_takes_it_back(
    tmp_path: Path, change: dict[str, Any], entry: dict[str, Any]
) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions)
        before = entry_json(await sessions.need(KEY))
        changed = entry_json(await sessions.patch(KEY, change))
        assert changed == {**before, **entry}
    async with sessions_in(tmp_path) as sessions:
        assert entry_json(await sessions.need(KEY)) == changed
        assert entry_json(await sessions.patch(KEY, dict.fromkeys(change))) == before


@pytest.mark.parametrize(
    "change",
    [
        {"label": ""}, {"label": 5}, {"label": "x" * 513}, {"model": ""}, {"model": "/x"}, {"model": "x/"},
        {"model": 5}, {"thinkingLevel": "deep"}, {"thinkingLevel": 1}, {"archived": "yes"},
        {"contextTokens": -1},
        {"contextTokens": True}, {"lastReadAt": "now"}, {"delivery": []}, {"sessionId": "other"}, {"nonsense": 1},
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_refused_whole(tmp_path: Path, change: dict[str, Any]) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions)
        before = await sessions.need(KEY)
        with pytest.raises(UserError, match=r"^sessions\.patch: "):
            await sessions.patch(KEY, {"displayName": "x", **change})
        assert await sessions.need(KEY) == before


async def test_a_label_names_one_session(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions)
        await sessions.ensure("agent:main:b", agent_id="main", cwd="/")
        await sessions.patch(KEY, {"label": "mine"})
        await sessions.patch(KEY, {"label": "mine"})
        with pytest.raises(Conflict, match="label already in use: 'mine' names agent:main:main"):
            await sessions.patch("agent:main:b", {"label": "mine"})
        assert (await sessions.need("agent:main:b")).label is None
        with pytest.raises(NotFound):
            await sessions.patch("agent:main:none", {"label": "x"})


async def test_what_a_run_records_is_kept(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions)
        await sessions.record(KEY, totals=Usage(1, 2, 3, 4, 0.5), extra={"lastRunId": "r1"})
        await sessions.record(KEY, extra={"status": "done"})
    async with sessions_in(tmp_path) as sessions:
        session = await sessions.need(KEY)
        assert session.totals == Usage(1, 2, 3, 4, 0.5)
        assert session.extra == {"lastRunId": "r1", "status": "done"}


def test_an_entry_is_read_as_it_was_written() -> None:
    full = {
        "sessionId": "s-1", "createdAt": 1, "updatedAt": 3, "sessionStartedAt": 2, "createdVia": "run", "label": "l",
        "displayName": "d", "modelProvider": "p", "model": "m", "providerOverride": "po", "modelOverride": "mo",
        "thinkingLevel": "low", "verboseLevel": "on", "archived": True, "pinned": True, "derivedTitle": "t",
        "lastMessagePreview": "w", "contextTokens": 9, "inputTokens": 1, "outputTokens": 2, "cacheRead": 3,
        "cacheWrite": 4, "totalTokens": 10, "estimatedCostUsd": 0.5, "skillsSnapshot": {"x": 1},
    }  # fmt: skip
    session = entry_from(KEY, "main", full)
    assert entry_json(session) == full
    assert session.override == "po/mo"
    bare = entry_from(KEY, "main", {"sessionId": "s-1", "updatedAt": "soon"})
    assert bare == Session(session.key, session.session_id, session.agent_id, 0, 0, 0)
    assert bare.override is None
