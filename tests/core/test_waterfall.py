"""Turns as spans: every step where it belongs, and no words of messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from garra.core.messages import Usage
from garra.core.trace import Marks, Request, Step
from garra.core.waterfall import Letter, Passed, Span, Told, spans

TOLD = Told("run-1", "agent:main:main", "main", "channel")
PHASES = [("preparing_workspace", 120), ("preparing_context", 130), ("starting_model", 140)]


def named(found: tuple[Span, ...], name: str) -> list[Span]:
    return [span for span in found if span.name == name]


def test_a_whole_turn_in_its_order() -> None:
    marks = Marks(
        100,
        phases=list(PHASES),
        requests=[
            Request(150, 200, "p", "m", "overloaded", 180, status=503),
            Request(450, 600, "p", "m", "success", 500, "operation", waited=250, usage=Usage(10, 5, 1, 2, 0.5)),
        ],
        tools=[Step("exec", 600, 900, "c1", result="ok")],
        asked=[Step("ap-1", 610, 700, "c1", "exec", "allowed"), Step("ap-2", 710, 720, "c9", "plugin", "refused")],
        compactions=[Step("compaction", 141, 149, kind="threshold", result="cut", before=900, after=100)],
        ended=1000,
        ending="ok",
    )
    letters = (Letter("in-1", "in", "telegram", "done"), Letter("out-1", "out", "telegram", "sent"))
    passed = (
        Passed(90, "in-1", "received"), Passed(94, "in-1", "admitted"), Passed(97, "in-1", "routed"),
        Passed(1000, "out-1", "written"), Passed(1010, "out-1", "sending"), Passed(1020, "out-1", "later"),
        Passed(1100, "out-1", "sending"), Passed(1150, "out-1", "sent"),
    )  # fmt: skip
    found = spans(TOLD, marks, letters, passed)
    whole = found[0]
    assert (whole.id, whole.parent, whole.start_ms, whole.end_ms) == ("1", "", 90, 1150)
    assert whole.attributes["outcome"] == "ok"
    assert (whole.attributes["inputTokens"], whole.attributes["costUsd"]) == (10, 0.5)
    assert [span.name for span in found[1:6]] == ["received", "admitted", "routed", "queued", "context"]
    assert [(span.start_ms, span.end_ms) for span in found[1:6]] == [
        (90, 90),
        (90, 94),
        (94, 97),
        (100, 120),
        (120, 140),
    ]
    first, second = named(found, "p/m")
    assert (first.attributes["result"], first.attributes["status"], first.attributes["firstTokenMs"]) == (
        "overloaded", 503, 30,
    )  # fmt: skip
    assert (second.attributes["waitedMs"], second.attributes["cacheReadTokens"]) == (250, 1)
    assert "status" not in second.attributes
    tool = named(found, "exec")[0]
    assert tool.attributes["approvalWaitMs"] == 90
    inside, outside = named(found, "approval")
    assert (inside.parent, outside.parent) == (tool.id, "1")
    assert named(found, "compaction")[0].attributes["after"] == 100
    tries = named(found, "send")
    assert [(each.attributes["result"], each.attributes["try"]) for each in tries] == [("later", 1), ("sent", 2)]
    assert [each.attributes.get("confirmed") for each in tries] == [None, True]
    assert named(found, "outbox")[0].end_ms == 1010


def test_a_turn_under_way_is_open() -> None:
    marks = Marks(
        100, phases=PHASES[:1], tools=[Step("exec", 130, call="c1")], asked=[Step("ap", 131, call="c1", kind="exec")],
        compactions=[Step("compaction", 125, kind="overflow")],
    )  # fmt: skip
    found = spans(TOLD, marks, [Letter("o", "out", "irc", "pending")], [Passed(140, "o", "written")])
    assert {span.name: span.end_ms for span in found} == {
        "turn": None, "queued": 120, "context": None, "compaction": None, "exec": None, "approval": None,
        "outbox": None,
    }  # fmt: skip
    assert found[0].attributes["outcome"] == "running"
    assert named(found, "exec")[0].attributes["result"] == "running"
    waiting = spans(TOLD, Marks(100))
    assert [(span.name, span.end_ms) for span in waiting] == [("turn", None), ("queued", None)]


def test_a_message_that_another_turn_took_along() -> None:
    told = Told("run-2", "k", "main", "operator", "run-1")
    found = spans(told, Marks(100, ended=300, ending="error", failure="refused", left_out=2))
    assert found[0].attributes["ledBy"] == "run-1"
    assert (found[0].attributes["failure"], found[0].attributes["leftOut"]) == ("refused", 2)
    assert [(span.name, span.end_ms, span.attributes) for span in found[1:]] == [("queued", 300, {"ledBy": "run-1"})]


def test_sends_without_a_word_of_the_platform() -> None:
    marks = Marks(100, phases=list(PHASES), ended=200, ending="ok")
    letters = [
        Letter("a", "out", "irc", "sending"),
        Letter("b", "out", "irc", "unsure"),
        Letter("c", "out", "x", "dead"),
    ]
    story = [
        Passed(201, "a", "sending"),
        Passed(201, "b", "sending"), Passed(202, "b", "sending"), Passed(203, "b", "dropped"),
        Passed(204, "c", "written"), Passed(205, "c", "dead"),
        Passed(100, "lost", "received"),
    ]  # fmt: skip
    found = spans(TOLD, marks, [*letters, Letter("none", "in", "irc", "done")], story)
    sent = {(span.attributes["messageId"], span.attributes["try"]): span for span in named(found, "send")}
    assert sent["a", 1].end_ms is None
    assert (sent["b", 1].end_ms, sent["b", 1].attributes["result"]) == (201, "unsure")
    assert (sent["b", 2].end_ms, sent["b", 2].attributes["result"]) == (203, "dropped")
    assert named(found, "outbox")[0].end_ms == 204
    assert found[0].end_ms is None


@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 500)), max_size=20),
    st.lists(st.tuples(st.integers(1, 500), st.integers(0, 500), st.sampled_from(["", "a", "b"])), max_size=20),
)
def test_each_span_has_a_parent_that_is_there(tools: list[tuple[int, int]], asked: list[tuple[int, int, str]]) -> None:
    marks = Marks(
        1,
        tools=[
            Step("t", began, ended, call) for (began, ended), call in zip(tools, "abcdefghijklmnopqrstu", strict=False)
        ],
        asked=[Step("q", began, ended, call) for began, ended, call in asked],
    )
    found = spans(TOLD, marks)
    ids = {span.id for span in found}
    assert len(ids) == len(found)
    assert all(span.parent in ids for span in found[1:])
    assert all(span.start_ms >= found[0].start_ms for span in found)
