"""`garra sessions` on a real state folder, as a real process."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from garra.core.messages import Assistant, ToolCall, ToolResult
from tests.domains.sessions.test_store import KEY, START, assistant, begin, folder, sessions_in


@pytest.fixture
async def state(tmp_path: Path) -> Path:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "what is in x?")
        transcript = await sessions.transcript(KEY)
        await transcript.append(assistant("I look", ToolCall("c", "read", {"path": "x"})))
        await transcript.append(ToolResult("c", "read", (), START))
        await begin(sessions, "agent:main:coffer-abc", "hello")
    return tmp_path


def garra(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(state), "GARRA_STATE_DIR": str(state), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "garra", "sessions", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=15, stdin=subprocess.DEVNULL)


def answer(state: Path, *arguments: str, code: int = 0) -> Any:
    done = garra(state, *arguments, "--json")
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def test_the_list_shows_the_conversations(state: Path) -> None:
    listed = answer(state, "list")
    assert listed == answer(state) | {"sessions": listed["sessions"]}
    assert (listed["count"], listed["totalCount"], listed["hasMore"]) == (2, 2, False)
    rows = {row["key"]: row for row in listed["sessions"]}
    assert rows[KEY]["kind"] == "main"
    assert rows[KEY]["totalTokens"] == 105
    assert rows["agent:main:coffer-abc"]["derivedTitle"] == "hello"
    assert answer(state, "--limit", "1")["hasMore"]
    assert answer(state, "list", "--search", "coffer")["count"] == 1
    assert answer(state, "list", "--agent", "other")["count"] == 0
    shown = garra(state)
    assert shown.stdout.splitlines()[0].split() == ["key", "changed", "model", "tokens", "title"]
    assert "what is in x?" in shown.stdout
    assert garra(state, "list", "--limit", "1").stderr == "1 more: garra sessions list --limit all\n"


def test_history_shows_what_was_said(state: Path) -> None:
    told = answer(state, "history")
    assert [message["role"] for message in told["messages"]] == ["user", "assistant", "toolResult"]
    assert (told["key"], told["totalMessages"]) == (KEY, 3)
    assert answer(state, "history", "coffer-abc", "--limit", "1")["messages"][0]["content"] == "hello"
    shown = garra(state, "history").stdout
    assert "[calls read] I look" in shown


async def test_history_says_why_an_answer_failed(tmp_path: Path) -> None:
    async with sessions_in(tmp_path) as sessions:
        await begin(sessions, KEY, "hello")
        broken = Assistant((), START, stop="error", error="fake/fake: check the key")
        await (await sessions.transcript(KEY)).append(broken)
    shown = await asyncio.to_thread(garra, tmp_path, "history")
    assert "(fake/fake: check the key)" in shown.stdout


@pytest.mark.parametrize("command", ["history", "export"])
def test_an_unknown_session_is_one_line(state: Path, command: str) -> None:
    done = garra(state, command, "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "garra: there is no session agent:main:nobody\n"
    assert answer(state, command, "nobody", code=1)["error"]["message"] == "there is no session agent:main:nobody"


def test_a_conversation_is_exported(state: Path) -> None:
    page = garra(state, "export").stdout
    assert page.startswith("# what is in x?\n")
    path = state / "out" / "x.jsonl"
    done = garra(state, "export", "main", "--format", "jsonl", "--output", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert path.read_bytes() in [each.read_bytes() for each in folder(state).glob("*.jsonl")]
    assert answer(state, "export")["content"].rstrip() == page.rstrip()


def test_deleting_needs_a_yes_and_keeps_the_words(state: Path) -> None:
    refused = garra(state, "delete", "coffer-abc")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--yes" in refused.stderr
    planned = answer(state, "delete", "coffer-abc", "--dry-run")
    assert planned["results"] == [{"key": "agent:main:coffer-abc", "ok": True, "status": "would_delete"}]
    done = answer(state, "delete", "coffer-abc", "nobody", "main", "--yes", code=1)
    assert [result["status"] for result in done["results"]] == ["deleted", "not_found", "failed"]
    assert "hello" in Path(done["results"][0]["archived"]).read_text()
    assert answer(state, "list")["totalCount"] == 1
    assert list(json.loads((folder(state) / "sessions.json").read_text())) == [KEY]


def test_looking_at_nothing_makes_nothing(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    assert answer(empty, "list")["sessions"] == []
    done = garra(empty, "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert "talk to an agent first" in done.stderr
    assert not empty.exists()


@pytest.mark.parametrize(
    "arguments", [["list", "--limit", "0"], ["delete"], ["export", "--format", "pdf"], ["nonsense"]]
)
def test_a_wrong_command_line_exits_with_two(tmp_path: Path, arguments: list[str]) -> None:
    done = garra(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert garra(tmp_path, "--help").returncode == 0


def test_a_damaged_database_is_one_line(state: Path) -> None:
    for path in state.glob("state.db*"):
        path.unlink()
    (state / "state.db").write_bytes(b"no database" * 1_000)
    done = garra(state, "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "is damaged: move it away" in done.stderr
