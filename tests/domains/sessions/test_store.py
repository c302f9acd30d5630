"""Sessions on real files and a real database."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from garra.core import requests
from garra.core.errors import Conflict, Forbidden, NotFound, Unavailable, UserError
from garra.core.messages import Assistant, Text, ToolCall, ToolResult, Usage, User
from garra.domains.sessions.store import Query, Sessions
from garra.io.store.db import Database
from garra.sdk.model import Model
from garra.testing.clock import ManualClock

KEY = "agent:main:main"
START = 1_796_044_636_255
MODEL = Model("fake", "fake-1", "openai-completions", "http://127.0.0.1")


def user(text: str) -> User:
    return User((Text(text),), START)


def assistant(text: str, *calls: ToolCall) -> Assistant:
    return Assistant((Text(text), *calls), START, provider="fake", model="fake-1", usage=Usage(100, 5))


def counted(prefix: str = "id") -> Callable[[], str]:
    count = itertools.count(1)
    return lambda: f"{prefix}-{next(count)}"


@asynccontextmanager
async def sessions_in(
    state: Path, names: str = "id", clock: ManualClock | None = None, open_bytes: int = 1 << 20
) -> AsyncIterator[Sessions]:
    db = Database(state / "state.db")
    sessions = Sessions(db, state / "agents", clock or ManualClock(START), counted(names), open_bytes=open_bytes)
    try:
        yield sessions
    finally:
        await sessions.close()
        await db.close()


def folder(state: Path) -> Path:
    return state / "agents" / "main" / "sessions"


async def begin(sessions: Sessions, key: str = KEY, *texts: str) -> str:
    """A session in which `texts` were said; gives its session id."""
    session = await sessions.ensure(key, agent_id="main", cwd="/work")
    transcript = await sessions.transcript(key)
    for text in texts:
        await transcript.append(user(text))
    return session.session_id


@pytest.mark.req("SESS-01", "SESS-02")
async def test_a_turn_leaves_a_transcript_and_a_mirror(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "hello")
        await (await sessions.transcript(KEY)).append(assistant("hi"))
    lines = [json.loads(line) for line in (folder(tmp_path) / f"{session_id}.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "type": "session", "version": 4, "id": session_id, "timestamp": "2026-11-30T13:17:16.255Z", "cwd": "/work",
    }  # fmt: skip
    assert [line["message"]["content"] for line in lines[2:]] == ["hello", [{"type": "text", "text": "hi"}]]
    entry = json.loads((folder(tmp_path) / "sessions.json").read_text())[KEY]
    assert (entry["sessionId"], entry["totalTokens"]) == (session_id, 105)
    assert (entry["modelProvider"], entry["model"]) == ("fake", "fake-1")
    assert (entry["derivedTitle"], entry["lastMessagePreview"]) == ("hello", "hi")


async def test_the_mirror_follows_while_the_program_runs(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "hello")
        mirror = folder(tmp_path) / "sessions.json"
        for _ in range(100):
            await asyncio.sleep(0.05)
            if await asyncio.to_thread(mirror.exists):
                break
        assert KEY in json.loads(mirror.read_text())


async def test_a_session_is_the_same_after_a_restart(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "one", "two")
    async with sessions_in(tmp_path, "again") as sessions:
        assert (await sessions.ensure(KEY, agent_id="main", cwd="/x")).session_id == session_id
        transcript = await sessions.transcript(KEY)
        assert [message.text for message in transcript.messages()] == ["one", "two"]
        await transcript.append(user("three"))
    async with sessions_in(tmp_path, "third") as sessions:
        transcript = await sessions.transcript(KEY)
        assert [message.text for message in transcript.messages()] == ["one", "two", "three"]
        parents = [entry.parent for entry in transcript.entries()]
        assert parents == [None, *[entry.id for entry in transcript.entries()[:-1]]]


async def test_everybody_who_asks_at_once_gets_one_session_and_one_transcript(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        made = await asyncio.gather(*(sessions.ensure(KEY, agent_id="main", cwd="/") for _ in range(20)))
        assert len({session.session_id for session in made}) == 1
        opened = await asyncio.gather(*(sessions.transcript(KEY) for _ in range(20)))
        assert len({id(transcript) for transcript in opened}) == 1
        await asyncio.gather(*(opened[0].append(user(str(number))) for number in range(50)))
        assert [m.text for m in opened[0].messages()] == [str(number) for number in range(50)]


@pytest.mark.req("SESS-04")
async def test_what_cannot_be_stored_raises_and_writes_nothing(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "hello")
        path = folder(tmp_path) / f"{session_id}.jsonl"
        transcript = await sessions.transcript(KEY)
        before = path.read_bytes(), transcript.messages()
        with pytest.raises(TypeError):
            await transcript.append(ToolResult("c1", "exec", (), START, details=object()))
        with pytest.raises(TypeError):
            await transcript.note("custom", {"data": {"when": object()}})
        assert (path.read_bytes(), transcript.messages()) == before
        await transcript.append(user("still fine"))
        assert [m.text for m in transcript.messages()] == ["hello", "still fine"]


@pytest.mark.req("SESS-05")
async def test_going_back_keeps_every_old_line_and_makes_the_new_branch_active(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "one", "two", "three")
        path = folder(tmp_path) / f"{session_id}.jsonl"
        before = path.read_bytes()
        transcript = await sessions.transcript(KEY)
        two = transcript.entries()[-2]
        assert two.message == user("two")
        await transcript.branch(two.id)
        assert [m.text for m in transcript.messages()] == ["one", "two"]
        await transcript.append(user("other"))
        assert [m.text for m in transcript.messages()] == ["one", "two", "other"]
        assert path.read_bytes().startswith(before)
        with pytest.raises(NotFound):
            await transcript.branch("nowhere")
        assert len(transcript.every()) == 6
    async with sessions_in(tmp_path) as sessions:
        transcript = await sessions.transcript(KEY)
        assert [m.text for m in transcript.messages()] == ["one", "two", "other"]
        await transcript.branch(None)
        assert (transcript.entries(), transcript.messages()) == ((), ())


@pytest.mark.req("SESS-03")
@pytest.mark.parametrize("session_id", ["../x", "/etc/passwd", "x" * 129, "A", "a/b", ""])
async def test_no_session_id_leads_out_of_the_folder(tmp_path: Path, session_id: str) -> None:
    async with sessions_in(tmp_path) as sessions:
        if session_id:
            with pytest.raises(UserError):
                await sessions.ensure(KEY, agent_id="main", cwd="/", session_id=session_id)
        with pytest.raises(UserError):
            await sessions.ensure(KEY, agent_id=f"..{session_id}", cwd="/")
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.req("SESS-03")
async def test_a_transcript_that_is_a_link_is_refused(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions)
    secret = tmp_path / "secret"
    secret.write_text('{"private":1}\n')
    path = folder(tmp_path) / f"{session_id}.jsonl"
    path.unlink()
    path.symlink_to(secret)
    async with sessions_in(tmp_path) as sessions:
        for attempt in (sessions.transcript, sessions.export, sessions.delete, sessions.preview):
            with pytest.raises(Forbidden):
                await attempt(KEY)
    assert secret.read_text() == '{"private":1}\n'


async def test_a_crash_in_the_middle_of_a_line_and_of_a_call_is_mended(tmp_path: Path) -> None:
    call = ToolCall("c1", "exec", {"command": "sleep 9"})
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "run it")
        await (await sessions.transcript(KEY)).append(assistant("", call))
    path = folder(tmp_path) / f"{session_id}.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"message","id":"torn","mess')
    async with sessions_in(tmp_path) as sessions:
        transcript = await sessions.transcript(KEY)
        assert path.read_bytes() == whole
        assert transcript.interrupted() == (call,)
        sent = requests.valid(transcript.messages(), MODEL)
        assert sent[-1].text == requests.INTERRUPTED


async def test_a_reset_begins_a_new_file_and_leaves_the_old_one_alone(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        old = await begin(sessions, KEY, "one")
        await sessions.patch(KEY, {"model": "a/b", "label": "mine"})
        before = (folder(tmp_path) / f"{old}.jsonl").read_bytes()
        fresh = await sessions.reset(KEY, "new")
        assert fresh.session_id != old
        assert (fresh.label, fresh.override, fresh.title, fresh.totals) == ("mine", "a/b", None, None)
        transcript = await sessions.transcript(KEY)
        assert transcript.messages() == ()
        assert transcript.header["cwd"] == "/work"
        await transcript.append(user("two"))
        assert (folder(tmp_path) / f"{old}.jsonl").read_bytes() == before
        assert (await sessions.need(KEY)).title == "two"


async def test_a_deleted_session_is_gone_and_its_words_are_kept(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "one")
        held = await sessions.transcript(KEY)
        kept = await sessions.delete(KEY)
        assert kept == folder(tmp_path) / f"{session_id}.jsonl.deleted.2026-11-30T13-17-16.255Z"
        assert b"one" in kept.read_bytes()
        assert await sessions.get(KEY) is None
        assert (await sessions.list()).total == 0
        with pytest.raises(NotFound, match="was deleted"):
            await held.append(user("two"))
        with pytest.raises(NotFound):
            await sessions.delete(KEY)
        again = await sessions.ensure(KEY, agent_id="main", cwd="/")
        assert again.session_id != session_id
    async with sessions_in(tmp_path) as sessions:
        assert (await sessions.transcript(KEY)).messages() == ()


async def test_a_fork_goes_its_own_way(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "one", "two", "three")
        two = (await sessions.transcript(KEY)).entries()[-2]
        fork = await sessions.fork(KEY, "agent:main:side", two.id)
        whole = await sessions.fork(KEY, "agent:main:whole")
        await (await sessions.transcript(fork.key)).append(user("other"))
        texts = {
            key: [m.text for m in (await sessions.transcript(key)).messages()] for key in (KEY, fork.key, whole.key)
        }
        assert texts == {
            KEY: ["one", "two", "three"],
            fork.key: ["one", "two", "other"],
            whole.key: ["one", "two", "three"],
        }
        assert (await sessions.transcript(fork.key)).header["parentSession"] == (await sessions.need(KEY)).session_id
        with pytest.raises(Conflict):
            await sessions.fork(KEY, "agent:main:side")
        with pytest.raises(NotFound):
            await sessions.fork(KEY, "agent:main:other", "nowhere")


async def test_the_list_is_newest_first_in_pages(tmp_path: Path) -> None:
    clock = ManualClock(START)
    async with sessions_in(tmp_path, clock=clock) as sessions:
        for number in range(5):
            await sessions.ensure(f"agent:main:s{number}", agent_id="main", cwd="/")
            await clock.advance(1)
        await sessions.ensure("agent:work:x", agent_id="work", cwd="/")
        await sessions.patch("agent:main:s0", {"displayName": "100% Groceries"})
        page = await sessions.list(Query(agent_id="main", limit=2))
        assert [session.key for session in page.sessions] == ["agent:main:s0", "agent:main:s4"]
        assert (page.total, page.next_offset) == (5, 2)
        last = await sessions.list(Query(agent_id="main", limit=2, offset=4))
        assert [session.key for session in last.sessions] == ["agent:main:s1"]
        assert last.next_offset is None
        for words, count in (
            ("grocer", 1),
            ("100%", 1),
            ("%", 1),
            ("main s1", 1),
            ("s_", 0),
            ("updatedAt", 0),
            ("", 6),
        ):
            assert (await sessions.list(Query(search=words))).total == count
        assert (await sessions.list(Query(since=START + 4_500))).total == 2
        await sessions.patch("agent:main:s1", {"archived": True})
        assert (await sessions.list()).total == 5
        assert (await sessions.list(Query(archived=True))).total == 1
        assert (await sessions.list(Query(archived=None))).total == 6
        found = await sessions.by_id((await sessions.need("agent:main:s3")).session_id)
        assert found is not None
        assert found.key == "agent:main:s3"


async def test_transcripts_nobody_uses_leave_memory(tmp_path: Path) -> None:
    async with sessions_in(tmp_path, open_bytes=200_000) as sessions:
        for number in range(10):
            await begin(sessions, f"agent:main:s{number}", "x" * 10_000)
        assert 1 < len(sessions._open) < 9, "a line and the message read from it are both in memory"
        held = await sessions.transcript("agent:main:s0")
        for number in range(1, 10):
            await sessions.transcript(f"agent:main:s{number}")
        assert await sessions.transcript("agent:main:s0") is held


async def test_a_message_that_the_disk_refuses_is_not_in_the_tree_and_the_next_one_is(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "one")
        transcript = await sessions.transcript(KEY)
        path = folder(tmp_path) / f"{session_id}.jsonl"
        saved, leaf = path.read_bytes(), transcript.leaf
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(Unavailable, match="symbolic link"):
            await transcript.append(user("refused"))
        assert ([m.text for m in transcript.messages()], transcript.leaf) == (["one"], leaf)
        path.unlink()
        path.write_bytes(saved)
        assert (await transcript.append(user("two"))).parent == leaf
        assert [m.text for m in transcript.messages()] == ["one", "two"]


async def test_a_message_is_stored_even_when_whoever_stores_it_is_cancelled(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "one")
        transcript = await sessions.transcript(KEY)
        storing = asyncio.gather(transcript.append(user("two")))
        await asyncio.sleep(0)
        storing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await storing
        await transcript.append(user("three"))
        assert [m.text for m in transcript.messages()] == ["one", "two", "three"]
    async with sessions_in(tmp_path, "again") as sessions:
        assert [m.text for m in (await sessions.transcript(KEY)).messages()] == ["one", "two", "three"]


async def test_messages_have_numbers(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "one", "two")
        transcript = await sessions.transcript(KEY)
        note = await transcript.note("label", {"label": "x"})
        last = await transcript.append(user("three"))
        numbers = [transcript.number(entry.id) for entry in transcript.entries() if entry.type == "message"]
        assert numbers == [1, 2, 3]
        assert transcript.number(last.id) == 3
        assert transcript.number(note.id) is None
        await transcript.branch(note.id)
        assert transcript.number(last.id) is None
        assert transcript.number((await transcript.append(user("other"))).id) == 3


@pytest.mark.req("SESS-11")
async def test_a_reset_is_undone_within_a_day_and_done_again(tmp_path: Path) -> None:
    clock = ManualClock(START)
    async with sessions_in(tmp_path, clock=clock) as sessions:
        first = await begin(sessions, KEY, "my boat is called Petrel")
        await sessions.record(KEY, extra={"compactionCount": 2, "delivery": {"kind": "internal"}})
        fresh = await sessions.reset(KEY, "daily", digest=True)
        told = (await sessions.transcript(KEY)).messages()
        assert "Petrel" in told[0].text
        assert fresh.session_id != first
        assert fresh.extra["delivery"] == {"kind": "internal"}
        assert "compactionCount" not in fresh.extra
        old = (folder(tmp_path) / f"{first}.jsonl").read_bytes()
        back = await sessions.undo(KEY)
        assert back.session_id == first
        assert back.extra["compactionCount"] == 2
        assert [message.text for message in (await sessions.transcript(KEY)).messages()] == ["my boat is called Petrel"]
        assert (folder(tmp_path) / f"{first}.jsonl").read_bytes() == old
        assert (await sessions.undo(KEY)).session_id == fresh.session_id
        await clock.advance(24 * 3_600 + 1)
        with pytest.raises(UserError, match="more than a day"):
            await sessions.undo(KEY)


async def test_where_nothing_was_reset_nothing_is_undone(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        first = await begin(sessions, KEY, "hello")
        with pytest.raises(UserError, match="no conversation before"):
            await sessions.undo(KEY)
        fresh = await sessions.reset(KEY)
        assert (await sessions.transcript(KEY)).messages() == ()
        (folder(tmp_path) / f"{first}.jsonl").unlink()
        with pytest.raises(NotFound, match="is gone"):
            await sessions.undo(KEY)
        assert (await sessions.need(KEY)).session_id == fresh.session_id
