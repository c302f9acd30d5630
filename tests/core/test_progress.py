"""What a chat shows of a run at work."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.chunking import Blocks
from garra.core.events import (
    MessageEnded,
    MessageStarted,
    MessageUpdated,
    RunBody,
    RunEnded,
    RunPhase,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
)
from garra.core.messages import Assistant, Text, ToolCall, ToolResult
from garra.core.progress import Mode, Settings, State, View, due_at, mood, shortened, step, summary, told, view

ANSWER = Assistant((Text("x"),), 0)
CALLING = Assistant((ToolCall("c1", "exec", {}),), 0)


def says(text: str) -> MessageUpdated:
    return MessageUpdated(TextDelta(0, text), text)


def call(name: str = "read", key: str = "c1", **arguments: Any) -> ToolStarted:
    return ToolStarted(ToolCall(key, name, arguments))


def ended(key: str = "c1", *, failed: bool = False) -> ToolEnded:
    return ToolEnded(ToolCall(key, "read", {}), ToolResult(key, "read", (Text("x"),), 0, is_error=failed), 5)


def play(mode: Mode, *bodies: RunBody, **more: Any) -> State:
    state = State(Settings(mode, **more), 0)
    for at, body in enumerate(bodies):
        state = step(state, body, 100 * at)
    return state


@pytest.mark.req("CH-12")
def test_the_first_words_are_shown_when_there_are_thirty() -> None:
    assert view(play("partial", says("x" * 29)), 9_999).empty
    assert view(play("partial", says("x" * 30)), 0) == View("x" * 30)
    assert view(play("partial", says("x" * 30), MessageStarted(ANSWER)), 0).empty
    assert view(play("off", says("x" * 30), call()), 9_999).empty


def test_blocks_show_whole() -> None:
    small = Blocks(20, 60)
    state = play("block", says("a" * 40), blocks=small)
    assert view(state, 0).empty
    state = step(state, says("a" * 40 + "\n\nmore"), 0)
    assert view(state, 0) == View("a" * 40)
    state = step(state, says("b" * 40), 0)
    assert view(state, 0).empty
    state = step(state, says("b" * 40 + "c" * 60), 0)
    assert view(state, 0).text.startswith("b" * 40)


def test_a_block_cut_inside_code_shows_all_of_it() -> None:
    code = "```py\n" + "".join(f"x{number} = {number}\n" for number in range(12))
    state = play("block", says(code), blocks=Blocks(20, 60))
    assert len(view(state, 0).text) >= 30


@pytest.mark.req("CH-12")
def test_work_shows_after_a_while_in_lines() -> None:
    secret = ThinkingDelta(0, "a secret thought")
    state = play(
        "progress",
        MessageUpdated(secret, ""),
        MessageUpdated(secret, ""),
        says("I will look\nthat up."),
        MessageEnded(CALLING),
        call(path="/etc/hosts"),
        ended(failed=True),
        ToolStarted(ToolCall("c2", "memory", {}), hidden=True),
    )
    assert due_at(state) == 1_500
    assert view(state, 1_499).empty
    assert view(state, 1_500).lines == (
        "Working…",
        "🧠 thinking",
        "💬 I will look that up.",
        "📖 read: /etc/hosts — failed",
    )
    assert summary(state, 12_400) == "🛠️ 1 tool call, 1 failed · 12 s"


def test_what_shows_can_be_chosen() -> None:
    quiet = play("progress", says("Look."), MessageEnded(CALLING), call(), label="", comments=False, tools=False)
    assert view(quiet, 9_999).empty
    assert due_at(quiet) == 1_700
    few = play("partial", *(call(key=str(number), path=f"f{number}") for number in range(4)), lines=2, width=10)
    assert view(few, 9_999).lines == ("📖 read: f2", "📖 read: f3")
    assert view(step(few, says("y" * 40), 0), 9_999) == View("y" * 40)
    assert step(few, MessageEnded(CALLING), 0) == few
    assert step(few, MessageEnded(ANSWER), 0) is few
    assert step(few, ended(), 0) is few
    assert step(few, RunPhase("starting_model"), 0) is few
    assert due_at(play("progress", says("only words"))) is None


def test_a_summary_in_one_line() -> None:
    thought = play("progress", MessageUpdated(ThinkingDelta(0, "x"), ""))
    assert summary(thought, 200) == "🧠 Done · 0 s"
    assert summary(play("progress"), 59_000) == "Done · 59 s"
    assert summary(play("progress", call(), call(key="c2")), 125_000) == "🛠️ 2 tool calls · 2 min 5 s"


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        (call("exec", command="cat /secret"), "exec"),
        (call("web_search", query="old\nsongs"), "web search: old songs"),
        (call("web_fetch", url="https://e.org/x?token=1"), "web fetch: https://e.org/x"),
        (call("write", path="a?b", content="x"), "write: a?b"),
        (call("weird", path=1), "weird"),
    ],
)
def test_a_call_in_a_few_words(started: ToolStarted, expected: str) -> None:
    assert told(started.call) == expected


def test_a_command_shows_if_asked() -> None:
    assert told(call("exec", command="ls -l").call, commands=True) == "exec: ls -l"


def test_long_lines_are_shortened_between_words() -> None:
    assert shortened("one two three", 20) == "one two three"
    assert shortened("one two three", 9) == "one two…"
    assert shortened("onetwothree", 6) == "onetw…"
    assert shortened("abcde\u0301f", 6) == "abcd…"
    assert shortened("ab", 0) == "…"


def test_moods() -> None:
    done = RunEnded("ok", "x", None, None, 0, 1)
    assert mood(MessageStarted(ANSWER)) == "thinking"
    assert mood(call()) == "working"
    assert mood(done) == "done"
    assert mood(RunEnded("error", "x", None, None, 0, 1)) == "failed"
    assert mood(says("x")) is None
