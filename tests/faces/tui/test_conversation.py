"""Gateway events as what stands on the screen."""

from __future__ import annotations

from typing import Any

from garra.faces.tui.conversation import Conversation
from garra.faces.tui.items import Foot, Notice, Said, Thought, Tool, Words, duration, hint, of_history
from tests.faces.tui.port import MAIN, final, tool, words


def fed(talk: Conversation, name: str, /, **payload: Any) -> list[Any]:
    now = payload.pop("now", 0)
    return talk.feed(name, {"sessionKey": MAIN, **payload}, now)


def test_words_of_each_message_stand_apart_with_the_tools_between() -> None:
    talk = Conversation(MAIN)
    assert fed(talk, "agent", **words("r", "Let me look.", "1")) == [Words("words:r:1", "Let me look.")]
    (began,) = fed(talk, "agent", ts=100, **tool("r", "start", args={"path": "a.md"}))
    assert began == Tool("tool:r:c1:0", "exec", "a.md")
    partial = {"content": [{"type": "text", "text": "half"}]}
    (grown,) = fed(talk, "agent", ts=200, **tool("r", "update", partialResult=partial))
    assert (grown.output, grown.state) == ("half", "running")
    (ended,) = fed(talk, "session.tool", ts=400, **tool("r", "result", isError=True))
    assert ended == Tool("tool:r:c1:0", "exec", "a.md", "failed", "half", 300)
    assert fed(talk, "agent", **words("r", "It failed.", "2")) == [Words("words:r:2", "It failed.")]
    assert talk.busy is not None
    assert fed(talk, "chat", now=5_000, **final("r", "Let me look.\n\nIt failed.")) == [Foot("foot:r", ms=5_000)]
    assert talk.busy is None


def test_a_call_id_that_is_used_again_is_another_line() -> None:
    talk = Conversation(MAIN)
    keys = []
    for run, phase in (("r", "start"), ("r", "result"), ("r", "start"), ("r", "result"), ("q", "start")):
        (item,) = fed(talk, "agent", ts=1, **tool(run, phase))
        keys.append(item.key)
    assert keys == ["tool:r:c1:0", "tool:r:c1:0", "tool:r:c1:1", "tool:r:c1:1", "tool:q:c1:2"]
    call = {"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "ls"}], "stopReason": "toolUse"}
    result = {"role": "toolResult", "toolCallId": "c", "toolName": "ls", "content": [{"type": "text", "text": "x"}]}
    assert [getattr(item, "state", "") for item in of_history([call, result, call, result])] == ["done", "done"]


def test_what_comes_after_the_end_changes_nothing() -> None:
    talk = Conversation(MAIN)
    fed(talk, "chat", **final("r", "done"))
    assert fed(talk, "agent", **words("r", "late")) == []
    assert fed(talk, "chat", **final("r", "done")) == []
    assert talk.busy is None


def test_a_final_without_words_before_it_brings_its_own() -> None:
    talk = Conversation(MAIN)
    first, _ = fed(talk, "chat", **final("r", "All at once."))
    assert first == Words("final:r", "All at once.")


def test_a_stop_ends_the_tools_that_run() -> None:
    talk = Conversation(MAIN)
    fed(talk, "agent", ts=1, **tool("r", "start"))
    stopped, notice = fed(talk, "chat", runId="r", state="aborted")
    assert (stopped.state, notice) == ("failed", Notice("end:r", "stopped"))


def test_status_and_thoughts_say_what_goes_on() -> None:
    talk = Conversation(MAIN)
    for payload, doing in (
        ({"state": "status", "phase": "preparing_context"}, "preparing the context"),
        ({"state": "delta"}, "answering"),
    ):
        fed(talk, "chat", runId="r", **payload)
        assert talk.busy is not None
        assert talk.busy.doing == doing
    (thought,) = fed(talk, "agent", runId="r", stream="thinking", data={"text": "hm", "itemId": "1"})
    assert thought == Thought("thought:r:1", "hm")
    fed(talk, "agent", runId="r", stream="lifecycle", data={"phase": "waiting-approval"})
    assert talk.busy is not None
    assert talk.busy.doing == "waiting for approval"


def test_my_own_message_is_shown_once_and_anothers_when_it_is_stored() -> None:
    talk = Conversation(MAIN)
    assert talk.asked("mine", "hello", 0) == [Said("said:mine", "hello")]
    own = {"role": "user", "content": "hello", "idempotencyKey": "mine:user"}
    assert fed(talk, "session.message", message=own) == []
    other = {"role": "user", "content": [{"type": "text", "text": "hi"}], "idempotencyKey": "phone:user"}
    assert fed(talk, "session.message", message=other) == [Said("said:phone", "hi")]
    answer = {"role": "assistant", "model": "m", "usage": {"totalTokens": 7}}
    assert fed(talk, "session.message", message=answer) == []
    *_, foot = fed(talk, "chat", now=2_000, **final("mine", "x"))
    assert foot == Foot("foot:mine", "m", 2_000, 7)


def test_history_tells_failures_stops_and_odd_content() -> None:
    items = of_history(
        [
            {"role": "user", "content": "a", "timestamp": 1},
            {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "no key"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}], "stopReason": "aborted"},
            {"role": "assistant", "content": "plain", "stopReason": "stop", "timestamp": 20},
            {"role": "toolResult", "toolCallId": "lost", "toolName": "exec", "content": [], "isError": True},
            {"role": "system", "content": "x"},
        ]
    )
    assert [type(item).__name__ for item in items] == ["Said", "Notice", "Thought", "Notice", "Words", "Foot", "Tool"]
    assert items[1] == Notice("history:1:end", "no key", "bad")
    assert items[5] == Foot("history:4:foot"), "19 ms is no time that was measured"


def test_figures_are_as_a_person_says_them() -> None:
    assert [duration(ms) for ms in (None, 40, 9_949, 9_950, 59_400, 125_000)] == [
        "", "0.0 s", "9.9 s", "10 s", "59 s", "2 min 5 s",
    ]  # fmt: skip
    assert Foot("f", "m", 1_000, 1_200, 1_000, 0.0125).line() == "m  1.0 s  1,200 tokens, 1,000 cached  $0.0125"
    assert hint({"command": "a\n  b", "path": "c"}) == "a b"
    assert len(hint({"query": "x" * 500})) == 120
    assert hint({"id": "message", "args": {"action": "send"}}) == "message send"
    assert hint({"id": "agents_list", "args": {}}) == "agents_list"
    assert hint("no mapping") == hint({}) == ""
