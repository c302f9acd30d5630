"""Two processes and one conversation: the second waits, then sees what the first has said."""

from __future__ import annotations

import asyncio
from pathlib import Path

from garra.app.turnstile import Turnstile
from garra.core.ids import SessionKey
from garra.core.messages import Assistant, Text, User
from garra.domains.sessions.store import Sessions
from garra.io.clock import SystemClock
from garra.io.store.db import Database

KEY = SessionKey("agent:main:main")


class Side:
    """What one of the processes has: a database connection, sessions, a turnstile."""

    def __init__(self, root: Path, name: str) -> None:
        ids = iter(range(1_000))
        self.db = Database(root / "state.db")
        self.sessions = Sessions(self.db, root / "agents", SystemClock(), lambda: f"{name}{next(ids)}")
        self.told: list[str] = []
        self.turnstile = Turnstile(root / "locks", self.sessions, SystemClock(), self.told.append)

    async def turn(self, text: str) -> None:
        await self.turnstile.enter(KEY)
        await self.sessions.ensure(KEY, agent_id="main", cwd="/")
        transcript = await self.sessions.transcript(KEY)
        await transcript.append(User((Text(text),), 1))
        await asyncio.sleep(0.05)
        await transcript.append(Assistant((Text(f"re: {text}"),), 2))
        await self.turnstile.leave(KEY)

    async def close(self) -> None:
        await self.sessions.close()
        await self.db.close()


async def test_turns_of_two_processes_follow_one_another_in_one_history(tmp_path: Path) -> None:
    one, two = Side(tmp_path, "a"), Side(tmp_path, "b")
    for number in range(3):
        await asyncio.gather(one.turn(f"one {number}"), two.turn(f"two {number}"))
    await one.turnstile.enter(KEY)
    said = [message.text for message in (await one.sessions.transcript(KEY)).messages()]
    assert sorted(said[0::2]) == sorted(f"{who} {number}" for who in ("one", "two") for number in range(3))
    assert said[1::2] == [f"re: {text}" for text in said[0::2]]
    assert len(list((tmp_path / "agents/main/sessions").glob("*.jsonl"))) == 1
    await one.turnstile.leave(KEY)
    await one.close()
    await two.close()


async def test_turns_of_one_process_share_its_place(tmp_path: Path) -> None:
    one, two = Side(tmp_path, "a"), Side(tmp_path, "b")
    await one.turnstile.enter(KEY)
    await one.turnstile.enter(KEY)
    await one.turnstile.leave(KEY)
    waiting = asyncio.ensure_future(two.turnstile.enter(KEY))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await one.turnstile.leave(KEY)
    await waiting
    await two.turnstile.leave(KEY)
    await one.close()
    await two.close()
