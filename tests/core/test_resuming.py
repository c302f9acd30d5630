"""Going on behind what was shown of an answer that broke."""

from __future__ import annotations

from garra.core import resuming
from garra.core.errors import Failure, FailureKind
from garra.core.events import CallDelta, Done, Failed, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Text, Thinking, ToolCall, User

ASKED = (User((Text("tell"),), 1),)


def test_the_next_call_sees_what_was_shown() -> None:
    messages = resuming.continued(ASKED, "Once upon", 5)
    assert messages[0] == ASKED[0]
    assert [message.text for message in messages[1:]] == ["Once upon", resuming.NOTE]


def test_where_nothing_was_shown_the_same_is_asked() -> None:
    assert resuming.continued(ASKED, " ", 5) == ASKED


def test_only_words_count_as_shown() -> None:
    assert resuming.shown((Thinking("hm"), Text("Once "), Text("upon"))) == "Once upon"


def test_parts_of_the_next_call_are_numbered_behind() -> None:
    assert resuming.moved(TextDelta(0, "x"), 0) == TextDelta(0, "x")
    assert resuming.moved(ThinkingDelta(1, "x"), 2) == ThinkingDelta(2_001, "x")
    assert resuming.moved(CallDelta(3, "i", "n", "{}"), 1) == CallDelta(1_003, "i", "n", "{}")
    done = Done(Assistant((), 1))
    assert resuming.moved(done, 1) == done


def test_the_whole_answer_has_both_halves_in_one() -> None:
    end = Done(Assistant((Thinking("hm"), Text(" a time"), ToolCall("1", "ls", {})), 1))
    assert resuming.whole(end, "").message == end.message
    assert resuming.whole(end, "Once upon").message.content == (
        Thinking("hm"), Text("Once upon a time"), ToolCall("1", "ls", {}),
    )  # fmt: skip


def test_also_where_the_second_half_has_no_words() -> None:
    failed = Failed(Assistant((), 1, stop="error"), Failure(FailureKind.CUT, "cut"))
    assert resuming.whole(failed, "Once").message.content == (Text("Once"),)
    call = Done(Assistant((ToolCall("1", "ls", {}),), 1))
    assert resuming.whole(call, "Once").message.content == (Text("Once"), ToolCall("1", "ls", {}))
