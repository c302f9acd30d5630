"""One run as wire events: the order, the numbers, and what goes to whom."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from garra.core.errors import Failure, FailureKind
from garra.core.events import (
    AgentEnded,
    AgentStarted,
    Ending,
    EntryStored,
    MessageEnded,
    MessageStarted,
    MessageUpdated,
    ModelChosen,
    RunBody,
    RunEnded,
    RunEvent,
    RunPhase,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    TurnStarted,
)
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Assistant, Text, ToolCall, ToolResult, Usage, User
from garra.gateway.stream import SHOWN, Emit, Place, RunView, title

CALL = ToolCall("call_1", "exec", {"command": "echo hi"})
RESULT = ToolResult("call_1", "exec", (Text("hi"),), 0, details={"exitCode": 0, "cwd": "/w"})


class Story:
    """A run that is told, event by event, a second apart."""

    def __init__(self, *, phases: bool = True) -> None:
        self.view = RunView(Place("r", "agent:main:main", "s", "main"), 1000, phases=phases)
        self.sent: list[Emit] = []
        self.seq = 0

    def tell(self, *bodies: RunBody) -> Story:
        for body in bodies:
            self.seq += 1
            event = RunEvent(
                RunId("r"),
                SessionKey("agent:main:main"),
                SessionId("s"),
                AgentId("main"),
                self.seq,
                1000 + self.seq,
                body,
            )
            self.sent += self.view.on(event, float(self.seq))
        return self

    def names(self) -> list[str]:
        return [name(emit) for emit in self.sent]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [plain(emit.payload) for emit in self.sent if emit.event == event]


def plain(payload: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(payload))


def name(emit: Emit) -> str:
    payload = emit.payload
    if emit.event == "agent":
        data = payload["data"]
        return f"{payload['stream']} {data.get('phase', '')}".strip()
    return f"{emit.event} {payload.get('state') or payload.get('phase') or ''}".strip()


def said(text: str, stop: Any = "stop") -> Assistant:
    return Assistant((Text(text),), 0, provider="p", model="m", usage=Usage(10, 5), stop=stop)


def word(text: str, so_far: str = "") -> MessageUpdated:
    return MessageUpdated(TextDelta(0, text), so_far or text)


def ended(ending: Ending = "ok", reply: str = "", failure: Failure | None = None, *, silent: bool = False) -> RunEnded:
    return RunEnded(ending, reply, None, failure, 1000, 2000, silent=silent)


def turn() -> Story:
    """A whole turn with one tool call and words before and after it."""
    blank = Assistant((), 0)
    return Story().tell(
        RunPhase("preparing_workspace"),
        RunPhase("preparing_context"),
        EntryStored({"type": "message", "id": "e1", "message": {"role": "user", "content": "do it"}}),
        AgentStarted(),
        MessageStarted(User((Text("do it"),), 0)),
        MessageEnded(User((Text("do it"),), 0)),
        RunPhase("starting_model"),
        ModelChosen("p", "m"),
        TurnStarted(),
        MessageStarted(blank),
        word("Let me "),
        word("look."),
        MessageEnded(said("Let me look.", "toolUse")),
        EntryStored({"type": "message", "id": "e2", "message": {"role": "assistant", "content": []}}),
        ToolStarted(CALL),
        ToolUpdated(CALL, "h"),
        ToolEnded(CALL, RESULT, 13),
        TurnEnded(said("Let me look.", "toolUse"), (RESULT,)),
        TurnStarted(),
        ModelChosen("p", "m"),
        MessageStarted(blank),
        word("Done."),
        MessageEnded(said("Done.")),
        TurnEnded(said("Done."), ()),
        AgentEnded((), None),
        ended(reply="Done."),
    )


@pytest.mark.req("LOOP-15")
def test_a_turn_with_a_tool_is_told_in_order() -> None:
    assert turn().names() == [
        "chat status", "run_status preparing_workspace",
        "chat status", "run_status preparing_context",
        "session.message",
        "lifecycle start", "sessions.changed start",
        "chat status", "run_status starting_model",
        "lifecycle model",
        "assistant", "chat delta", "usage",
        "session.message",
        "item start", "tool start",
        "tool update", "item update", "command_output delta",
        "tool result", "item end", "command_output end",
        "assistant", "chat delta", "usage",
        "lifecycle finishing", "lifecycle end", "chat final",
        "sessions.changed end",
    ]  # fmt: skip


@pytest.mark.req("MSG-14")
def test_agent_events_count_from_one_and_chat_repeats_the_number_before() -> None:
    story = turn()
    assert [p["seq"] for p in story.of("agent")] == list(range(1, len(story.of("agent")) + 1))
    seqs = [emit.payload["seq"] for emit in story.sent if emit.event in ("agent", "chat")]
    statuses = [emit.payload.get("state") == "status" for emit in story.sent if emit.event in ("agent", "chat")]
    spoken = [seq for seq, status in zip(seqs, statuses, strict=True) if not status]
    assert spoken == sorted(spoken)


def test_deltas_put_together_are_the_final_words() -> None:
    chat = turn().of("chat")
    deltas = [p for p in chat if p["state"] == "delta"]
    assert "".join(p["deltaText"] for p in deltas) == "Let me look.\n\nDone."
    assert [p["message"]["content"][0]["text"] for p in deltas] == ["Let me look.", "Let me look.\n\nDone."]
    assert chat[-1]["message"]["content"][0]["text"] == "Let me look.\n\nDone."
    assert chat[-1]["stopReason"] == "stop"


def test_each_message_is_an_item_of_its_own() -> None:
    words = [p["data"] for p in turn().of("agent") if p["stream"] == "assistant"]
    assert [(w["itemId"], w["text"], w["delta"]) for w in words] == [
        ("r:1", "Let me look.", "Let me look."),
        ("r:2", "Done.", "Done."),
    ]


def test_tool_events_go_to_the_starter_items_to_all() -> None:
    to = {(name(emit).split()[0], emit.to) for emit in turn().sent if emit.event == "agent"}
    assert ("tool", "tool") in to
    assert {audience for stream, audience in to if stream in ("item", "command_output", "assistant")} == {"readers"}


def test_the_end_tells_what_was_done() -> None:
    end = next(p for p in turn().of("agent") if p["data"].get("phase") == "end" and p["stream"] == "lifecycle")
    assert end["data"]["terminalReply"] == {"disposition": "visible", "text": "Done."}
    receipt = end["data"]["terminalReceipt"]
    assert receipt["successfulToolNames"] == ["exec"]
    assert receipt["effective"] == {"provider": "p", "model": "m", "responseModel": "m"}
    output = next(p["data"] for p in turn().of("agent") if p["stream"] == "command_output" and "exitCode" in p["data"])
    assert (output["exitCode"], output["durationMs"], output["cwd"], output["output"]) == (0, 13, "/w", "hi")


def test_who_does_not_ask_for_phases_gets_none() -> None:
    assert Story(phases=False).tell(RunPhase("preparing_workspace")).sent == []


def test_an_abort_is_told_once_and_at_once() -> None:
    story = Story().tell(AgentStarted(), MessageStarted(Assistant((), 0)), word("half"))
    told = story.view.aborted("rpc", 5, 9.0)
    assert [name(emit) for emit in told] == ["assistant", "chat delta", "chat aborted"]
    assert told[-1].payload["stopReason"] == "rpc"
    assert told[-1].payload["message"]["content"][0]["text"] == "half"
    assert story.view.aborted("rpc", 5, 9.0) == []
    story.tell(ended("aborted"))
    assert story.names()[-2:] == ["lifecycle error", "sessions.changed error"]
    assert story.of("agent")[-1]["data"]["aborted"] is True


def test_an_abort_from_elsewhere_is_told_too() -> None:
    assert Story().tell(AgentStarted(), ended("aborted")).names()[-3:] == [
        "chat aborted", "lifecycle error", "sessions.changed error",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "wire"),
    [(FailureKind.RATE_LIMIT, "rate_limit"), (FailureKind.OVERFLOW, "context_length"), (FailureKind.AUTH, "unknown")],
)
def test_a_failure_names_its_cause(kind: FailureKind, wire: str) -> None:
    failure = Failure(kind, "The provider said no.", provider="p", model="m")
    story = Story().tell(AgentStarted(), ended("error", "It did not work.", failure))
    chat = story.of("chat")[-1]
    assert (chat["state"], chat["errorMessage"], chat["errorKind"]) == ("error", "It did not work.", wire)
    assert chat["errorDetail"]["provider"] == "p"
    assert story.of("agent")[-1]["data"]["error"] == "The provider said no."


def test_a_run_out_of_time_says_so() -> None:
    chat = Story().tell(AgentStarted(), ended("timeout", "Took too long.")).of("chat")[-1]
    assert (chat["state"], chat["errorKind"]) == ("error", "timeout")


def test_a_declared_silence_has_no_message() -> None:
    chat = Story().tell(AgentStarted(), ended(silent=True)).of("chat")[-1]
    assert chat["state"] == "final"
    assert "message" not in chat


def test_a_reply_that_was_never_streamed_is_the_final_words() -> None:
    chat = Story().tell(AgentStarted(), ended(reply="From elsewhere.")).of("chat")[-1]
    assert chat["message"]["content"][0]["text"] == "From elsewhere."


def test_thoughts_are_a_stream_of_their_own() -> None:
    story = Story().tell(
        MessageStarted(Assistant((), 0)),
        MessageUpdated(ThinkingDelta(0, "hm"), ""),
        MessageEnded(said("")),
    )
    assert story.names() == ["thinking", "usage"]
    assert not story.of("chat")


@pytest.mark.req("TOOL-01")
def test_a_hidden_tool_has_no_progress_lines() -> None:
    shown = Story().tell(ToolStarted(CALL), ToolUpdated(CALL, "h"), ToolEnded(CALL, RESULT, 13))
    hidden = Story().tell(
        ToolStarted(CALL, hidden=True), ToolUpdated(CALL, "h", hidden=True), ToolEnded(CALL, RESULT, 13, hidden=True)
    )
    assert {"item", "command_output", "tool"} == {told["stream"] for told in shown.of("agent")}
    assert {"tool"} == {told["stream"] for told in hidden.of("agent")}
    assert all(p["data"]["hideFromChannelProgress"] for p in hidden.of("agent"))


def test_a_chatty_tool_is_paced_and_only_its_end_is_repeated() -> None:
    story = Story().tell(ToolStarted(CALL))
    for at in range(5):
        event = RunEvent(
            RunId("r"), SessionKey("k"), SessionId("s"), AgentId("main"), 9, 9, ToolUpdated(CALL, "x" * 100_000)
        )
        story.sent += story.view.on(event, 5.0 + at / 1000)
    updates = [p for p in story.of("agent") if p["data"].get("partialResult")]
    assert len(updates) == 1
    assert len(updates[0]["data"]["partialResult"]["content"][0]["text"]) == SHOWN


def test_a_call_has_a_short_title() -> None:
    assert title(CALL) == "Exec echo hi"
    assert title(ToolCall("c", "read", {"path": "x" * 200})).endswith("…")
    assert title(ToolCall("c", "apply_patch", {})) == "Apply patch"
