"""Conversations that begin anew by policy, on real sessions and a clock that is set."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.config.live import Live
from garra.config.load import load
from garra.config.paths import resolve
from garra.config.sections.session import Session as Settings
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Text, User
from garra.core.resets import Policies, Policy
from garra.domains.sessions.store import Sessions
from garra.io.env import Environment
from garra.io.store.db import Database
from garra.runs.renewal import Renewal, policies, wants_digest
from garra.runs.run import Run, Turn
from garra.testing.clock import ManualClock

KEY = SessionKey("agent:main:telegram:direct:1001")
EVENING = 1_796_058_000_000
"""2026-11-30 17:00 UTC."""


def test_what_the_configuration_says() -> None:
    assert policies(Settings()) == Policies()
    said = {"reset": {"mode": "daily"}, "resetByType": {"dm": {"mode": "idle"}}, "resetByChannel": {"irc": {}}}
    found = policies(Settings.model_validate(said))
    assert found.usual == Policy("daily")
    assert found.of("direct", "telegram").mode == "idle"
    assert found.of("direct", "irc").mode == "none"
    assert policies(Settings.model_validate({"idleMinutes": 30})).usual == Policy("idle", idle_minutes=30)
    off = Settings.model_validate({"idleMinutes": 30, "reset": {"mode": "none"}})
    assert policies(off).usual.mode == "none"


def test_a_digest_is_for_what_began_by_itself_unless_told_otherwise() -> None:
    wanted = {
        each: [wants_digest(Settings.model_validate({"digest": each}), by_hand=by_hand) for by_hand in (False, True)]
        for each in ("auto", "always", "off")
    }
    assert wanted == {"auto": [True, False], "always": [True, True], "off": [False, False]}


def configured(root: Path, session: dict[str, Any]) -> tuple[Live, Path]:
    state = root / "state"
    state.mkdir()
    told = {"session": session, "agents": {"defaults": {"userTimezone": "UTC"}}}
    (state / "garra.json").write_text(json.dumps(told))
    env = Environment({"HOME": str(root), "GARRA_STATE_DIR": str(state)})
    paths = resolve(env)
    return Live(paths, env, load(paths, env)), state


@asynccontextmanager
async def house(root: Path, session: dict[str, Any]) -> AsyncIterator[tuple[Sessions, Renewal, ManualClock]]:
    live, state = await asyncio.to_thread(configured, root, session)
    clock, ids, db = ManualClock(EVENING), itertools.count(), Database(state / "state.db")
    sessions = Sessions(db, state / "agents", clock, lambda: f"id-{next(ids)}")
    try:
        await sessions.ensure(KEY, agent_id="main", cwd="/w")
        await (await sessions.transcript(KEY)).append(User((Text("My boat is called Petrel."),), EVENING))
        yield sessions, Renewal(sessions, live, clock, lambda _: root), clock
    finally:
        await sessions.close()
        await db.close()


def turn() -> Turn:
    return Turn(RunId("r1"), KEY, AgentId("main"), "hello", origin="channel")


@pytest.mark.req("SESS-11")
async def test_a_day_later_a_conversation_is_new_and_knows_what_the_old_one_was(tmp_path: Path) -> None:
    async with house(tmp_path, {"reset": {"mode": "daily"}}) as (sessions, renewal, clock):
        first = (await sessions.need(KEY)).session_id
        await renewal.begin(turn())
        assert (await sessions.need(KEY)).session_id == first
        await clock.advance(12 * 3_600)
        await asyncio.gather(renewal.begin(turn()), renewal.begin(turn()))
        second = await sessions.need(KEY)
        assert second.session_id != first
        assert second.extra["previousSessionId"] == first
        messages = (await sessions.transcript(KEY)).messages()
        assert "Petrel" in messages[0].text
        run = Run(turn(), SessionId(second.session_id), 1)
        assert "/undo" in renewal.told(run)
        assert renewal.told(run) == ""
        old = tmp_path / "state" / "agents" / "main" / "sessions" / f"{first}.jsonl"
        assert "Petrel" in await asyncio.to_thread(old.read_text)


async def test_without_a_policy_nothing_begins_anew(tmp_path: Path) -> None:
    async with house(tmp_path, {}) as (sessions, renewal, clock):
        await clock.advance(90 * 24 * 3_600)
        await renewal.begin(turn())
        assert (await sessions.need(KEY)).session_id == "id-0"


async def test_a_group_has_a_policy_of_its_own(tmp_path: Path) -> None:
    said = {"reset": {"mode": "daily"}, "resetByType": {"group": {"mode": "none"}}}
    async with house(tmp_path, said) as (sessions, renewal, clock):
        group = SessionKey("agent:main:telegram:group:-5")
        await sessions.ensure(group, agent_id="main", cwd="/w")
        await (await sessions.transcript(group)).append(User((Text("hi"),), EVENING))
        first = (await sessions.need(group)).session_id
        await clock.advance(48 * 3_600)
        await renewal.begin(Turn(RunId("r2"), group, AgentId("main"), "hello", origin="channel"))
        assert (await sessions.need(group)).session_id == first
