"""The ledger when a person is forgotten: the sums stay, under no name, and nobody else's rows are touched."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from garra.app.forgetting import forget
from garra.config.paths import resolve
from garra.core.forgetting import Person
from garra.core.messages import Text, User
from garra.domains.sessions.store import Sessions
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.store.db import Connection, Database

KEY = "agent:main:matrix:direct:@a_b:x.org"
CHILD, OTHER = "agent:main:subagent:1", "agent:main:matrix:direct:@acb:x.org"
ROWS = (
    ("d", KEY, "matrix:default:@a_b:x.org"), ("d", KEY, "matrix:work:@a_b:x.org"),
    ("d", CHILD, "matrix:default:@a_b:x.org"), ("d", OTHER, "matrix:default:@acb:x.org"),
)  # fmt: skip


def booked(connection: Connection) -> None:
    for row in ROWS:
        connection.execute("INSERT INTO usage_days VALUES (?,?,?,'main','','p','m',1,10,5,0,0,0.5,0,0)", row)


async def test_what_one_person_used_stays_as_sums_under_no_name(tmp_path: Path) -> None:
    env = Environment({"GARRA_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)})
    paths = resolve(env)
    db = Database(paths.db)
    ids = iter(f"id-{at}" for at in range(9))
    sessions = Sessions(db, paths.agents, SystemClock(), lambda: next(ids))
    await sessions.ensure(KEY, agent_id="main", cwd=str(tmp_path))
    await sessions.ensure(CHILD, agent_id="main", cwd=str(tmp_path), extra={"spawnedBy": KEY})
    await db.write(booked)
    await sessions.close()
    await db.close()
    done = await asyncio.to_thread(forget, paths, env, Person("matrix", "@a_b:x.org"), dry=False)
    assert set(done.conversations) == {KEY, CHILD}
    left = Database(paths.db)
    rows = await left.read(lambda c: c.execute("SELECT session, sender, calls FROM usage_days").fetchall())
    await left.close()
    assert len(rows) == 4
    assert ROWS[3][1:] in {row[:2] for row in rows}
    assert not any("@a_b" in session + sender or session == CHILD for session, sender, _ in rows)


async def test_what_cannot_be_removed_is_named_and_the_next_try_goes_on_with_it(tmp_path: Path) -> None:
    env = Environment({"GARRA_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)})
    paths, ann = resolve(env), Person("matrix", "@a_b:x.org")
    db = Database(paths.db)
    sessions = Sessions(db, paths.agents, SystemClock(), lambda: "id-1")
    await sessions.ensure(KEY, agent_id="main", cwd=str(tmp_path))
    await (await sessions.transcript(KEY)).append(User((Text("zanzibar"),), 1))
    await sessions.close()
    await db.close()
    own = paths.sessions("main") / "id-1.jsonl"
    theirs = {"role": "user", "content": "sumatra", "__openclaw": {"senderId": ann.sender}}
    shared = own.with_name(f"{'long' * 61}.jsonl")  # no draft may be called so: it cannot be written anew
    shared.write_text(json.dumps({"type": "message", "id": "a", "message": theirs}) + "\n")
    first = await asyncio.to_thread(forget, paths, env, ann, dry=False)
    assert first.conversations == ()
    assert [line.rpartition(": ")[2] for line in first.left] == ["File name too long", "it is removed when the rest is"]
    assert str(shared) in first.left[0]
    assert KEY in first.left[1]
    assert "zanzibar" in own.read_text()
    shared = shared.rename(own.with_name("short.jsonl"))
    second = await asyncio.to_thread(forget, paths, env, ann, dry=False)
    assert (second.conversations, second.lines, second.left) == ((KEY,), 1, ())
    assert not own.exists()
    assert "sumatra" not in shared.read_text()
