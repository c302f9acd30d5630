"""Previews, search, export, and what is restored when the registry is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from garra.core.errors import NotFound, UserError
from garra.core.messages import Assistant, Image, Text, Thinking, ToolCall, ToolResult, User
from garra.domains.sessions import reading
from garra.domains.sessions.reading import Line
from garra.domains.sessions.session import headline
from garra.testing.clock import ManualClock
from tests.domains.sessions.test_store import KEY, START, assistant, begin, folder, sessions_in, user


async def test_a_preview_shows_the_last_words_of_the_active_branch(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "one", "two")
        transcript = await sessions.transcript(KEY)
        await transcript.append(assistant("", ToolCall("c", "exec", {})))
        await transcript.append(ToolResult("c", "exec", (Text("out\nput"),), START))
        assert await sessions.preview(KEY, limit=2) == (Line("user", "two"), Line("tool", "out put"))
        assert await sessions.preview(KEY, limit=9, chars=2) == (
            Line("user", "o…"), Line("user", "t…"), Line("tool", "o…"),
        )  # fmt: skip
        with pytest.raises(NotFound):
            await sessions.preview("agent:main:none")


async def test_a_preview_reads_only_the_end_of_a_long_transcript(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, *("x" * 40_000 for _ in range(10)), "the end")
        assert (await sessions.preview(KEY, limit=1)) == (Line("user", "the end"),)
        (folder(tmp_path) / f"{(await sessions.need(KEY)).session_id}.jsonl").unlink()
        assert await sessions.preview(KEY) == ()


async def test_words_are_found_in_whichever_case(tmp_path: Path) -> None:
    clock = ManualClock(START)
    async with sessions_in(tmp_path, clock=clock) as sessions:
        await begin(sessions, KEY, "The blue whale", "nothing")
        await clock.advance(1)
        await begin(sessions, "agent:main:b", "a WHALE again", "Größe 世界")
        hits = await sessions.search("whale")
        assert [(hit.session.key, hit.role, hit.snippet) for hit in hits] == [
            ("agent:main:b", "user", "a WHALE again"),
            (KEY, "user", "The blue whale"),
        ]
        assert len(await sessions.search("whale", limit=1)) == 1
        assert [hit.snippet for hit in await sessions.search("grösse")] == ["Größe 世界"]
        assert len(await sessions.search("世界")) == 1
        assert await sessions.search(" ") == await sessions.search("shark") == ()
        assert await sessions.search("whale", agent_id="work") == ()
        (folder(tmp_path) / f"{(await sessions.need(KEY)).session_id}.jsonl").unlink()
        assert len(await sessions.search("whale")) == 1


async def test_an_export_is_the_file_itself_or_a_page_to_read(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "look at this")
        transcript = await sessions.transcript(KEY)
        await transcript.append(User((Image("image/png", "AAAA"), Text("a picture")), START))
        call = ToolCall("c", "exec", {"command": "cat x"})
        await transcript.append(Assistant((Thinking("hm\nhm"), Text("I look"), call), START, model="m"))
        await transcript.append(ToolResult("c", "exec", (Text("```\nx\n```" + "y" * 30_000),), START, is_error=True))
        await transcript.append(Assistant((Text("half an"),), START, stop="aborted"))
        assert await sessions.export(KEY) == (folder(tmp_path) / f"{session_id}.jsonl").read_bytes()
        page = (await sessions.export(KEY, "md")).decode()
        with pytest.raises(UserError, match="md, html, jsonl"):
            await sessions.export(KEY, "pdf")
        await sessions.record(KEY, title=None)
    assert page.startswith("# look at this\n\n- Session: `agent:main:main`")
    for part in (
        "*(picture, image/png)*", "> hm\n> hm", "I look", '"command": "cat x"', "## Assistant · m · ",
        "### Result of `exec` failed", "````\n```\nx\n```y", "characters more", "*(aborted)*",
    ):  # fmt: skip
        assert part in page


async def test_an_export_of_a_lost_file_says_so(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions)
        (folder(tmp_path) / f"{session_id}.jsonl").unlink()
        with pytest.raises(NotFound):
            await sessions.export(KEY)


async def test_a_session_whose_transcript_is_gone_goes_on(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        session_id = await begin(sessions, KEY, "one")
    path = folder(tmp_path) / f"{session_id}.jsonl"
    path.unlink()
    async with sessions_in(tmp_path, "new") as sessions:
        transcript = await sessions.transcript(KEY)
        await transcript.append(user("two"))
        assert [m.text for m in transcript.messages()] == ["two"]
    assert json.loads(path.read_text().splitlines()[0])["id"] == session_id


def lose_registry(state: Path) -> None:
    for path in state.glob("state.db*"):
        path.unlink()


@pytest.mark.parametrize("mirror", ["kept", "lost", "broken"])
async def test_a_lost_registry_is_restored_from_the_disk(tmp_path: Path, mirror: str) -> None:
    async with sessions_in(tmp_path) as sessions:
        first = await begin(sessions, KEY, "old")
        await sessions.reset(KEY)
        current = await begin(sessions, KEY, "hello")
        await begin(sessions, "agent:main:deleted", "never mind")
        await sessions.delete("agent:main:deleted")
        await begin(sessions, "cron:job-1", "tick")
        await sessions.patch("cron:job-1", {"label": "clock"})
    lose_registry(tmp_path)
    if mirror == "lost":
        (folder(tmp_path) / "sessions.json").unlink()
    if mirror == "broken":
        (folder(tmp_path) / "sessions.json").write_text("{")
    async with sessions_in(tmp_path, "new") as sessions:
        page = await sessions.list()
        assert sorted(session.key for session in page.sessions) == [KEY, "cron:job-1"]
        assert (await sessions.need(KEY)).session_id == current != first
        assert [m.text for m in (await sessions.transcript(KEY)).messages()] == ["hello"]
        assert (await sessions.need("cron:job-1")).label == ("clock" if mirror == "kept" else None)


async def test_transcripts_of_other_programs_are_restored_too(tmp_path: Path) -> None:
    place = folder(tmp_path)
    place.mkdir(parents=True)
    head = {"type": "session", "version": 4, "id": "old-1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}
    said = {"type": "message", "id": "m", "parentId": None, "message": {"role": "user", "content": "hi"}}
    for name in ("old-1", "old-2"):
        (place / f"{name}.jsonl").write_text(f"{json.dumps({**head, 'id': name})}\n{json.dumps(said)}\n")
    (place / "broken.jsonl").write_text("nothing\n")
    (place / "BAD ID.jsonl").write_text("nothing\n")
    entries = {
        "main": {"sessionId": "old-1", "updatedAt": 5, "thinkingLevel": "low", "future": {"x": 1}, "label": 7},
        "agent:main:gone": {"sessionId": "old-9"},
        "agent:main:none": {},
        "agent:main:evil": {"sessionId": "../x"},
    }
    (place / "sessions.json").write_text(json.dumps(entries))
    (tmp_path / "agents" / "No Agent" / "sessions").mkdir(parents=True)
    async with sessions_in(tmp_path) as sessions:
        page = await sessions.list()
        assert {session.key: session.session_id for session in page.sessions} == {
            KEY: "old-1",
            "agent:main:restored-old-2": "old-2",
        }
        main = await sessions.need(KEY)
        assert (main.thinking, main.extra, main.label) == ("low", {"future": {"x": 1}}, None)
        assert [m.text for m in (await sessions.transcript("agent:main:restored-old-2")).messages()] == ["hi"]


def test_a_headline_is_one_short_line() -> None:
    assert headline("  a\n\tb  ") == "a b"
    assert headline("word " * 50, 10) == "word word…"
    assert reading.role(user("x")) == "user"
