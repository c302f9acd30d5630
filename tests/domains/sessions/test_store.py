"""Sessions on real files and a real database."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from garra.core.messages import Assistant, Text, ToolCall, Usage, User
from garra.domains.sessions.store import Sessions
from garra.io.store.db import Database
from garra.testing.clock import ManualClock

KEY = "agent:main:main"
START = 1_796_044_636_255


def user(text: str) -> User:
    return User((Text(text),), START)


def assistant(text: str, *calls: ToolCall) -> Assistant:
    return Assistant((Text(text), *calls), START, provider="fake", model="fake-1", usage=Usage(100, 5))


def ids() -> Callable[[], str]:
    count = itertools.count(1)
    return lambda: f"id-{next(count)}"


@asynccontextmanager
async def sessions_in(state: Path, names: Callable[[], str] | None = None) -> AsyncIterator[Sessions]:
    db = Database(state / "state.db")
    sessions = Sessions(db, state / "agents", ManualClock(START), names or ids())
    try:
        yield sessions
    finally:
        await sessions.close()
        await db.close()


@pytest.mark.req("SESS-01", "SESS-02")
async def test_a_turn_leaves_a_transcript_and_a_mirror(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session = await sessions.ensure(KEY, agent_id="main", cwd="/work")
        transcript = await sessions.transcript(KEY)
        await transcript.append(user("hello"))
        await transcript.append(assistant("hi"))
    lines = (tmp_path / "agents/main/sessions" / f"{session.session_id}.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {
        "type": "session", "version": 4, "id": session.session_id,
        "timestamp": "2026-11-30T13:17:16.255Z", "cwd": "/work",
    }  # fmt: skip
    assert [json.loads(line)["message"]["content"] for line in lines[2:]] == [
        "hello",
        [{"type": "text", "text": "hi"}],
    ]
    entry = json.loads((tmp_path / "agents/main/sessions/sessions.json").read_text())[KEY]
    assert entry["sessionId"] == session.session_id
    assert (entry["model"], entry["totalTokens"], entry["derivedTitle"]) == ("fake-1", 105, "hello")
