"""What whoever sums up is given to read, and what of the answer is used."""

from __future__ import annotations

import pytest

from garra.core import compaction, summary
from garra.core.compaction import Limits, Room
from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolCall, ToolResult, User

ROOM = Room(Limits(200_000, 200_000))
SMALL = Room(Limits(10_000, 10_000))


def user(text: str) -> User:
    return User((Text(text),), 1)


def call(id_: str) -> Assistant:
    return Assistant((ToolCall(id_, "exec", {"command": "ls"}),), 1)


def result(id_: str, size: int = 10) -> ToolResult:
    return ToolResult(id_, "exec", (Text("r" * size),), 1)


def pieces(messages: list[Message], room: Room) -> summary.Pieces:
    return summary.pieces(messages, [compaction.chars(each) for each in messages], room)


@pytest.mark.req("SESS-07")
class TestPieces:
    @pytest.mark.parametrize(
        ("sizes", "ends"),
        [
            ([], []),
            ([3_000] * 3, [3]),
            # a tenth of the window: 40 % of 10,000 tokens, estimates 1.2 too low: 13,332 characters
            ([3_000] * 8, [4, 8]),
            # long messages: a share of 15 % (4,999 characters)
            ([9_000, 9_000, 9_000], [1, 2, 3]),
        ],
    )
    def test_pieces_are_two_fifths_of_the_window_and_less_where_messages_are_long(
        self, sizes: list[int], ends: list[int]
    ) -> None:
        assert [end for _, end in summary.chunks(sizes, [True] * len(sizes), SMALL)] == ends

    def test_calls_and_results_are_in_one_piece_whatever_its_size(self) -> None:
        messages: list[Message] = [user("a"), call("1"), user("wait"), result("1"), user("b")]
        assert summary.starts(messages) == [True, True, False, False, True]
        assert summary.chunks([3_000] * 5, summary.starts(messages), Room(Limits(2_000, 2_000))) == (
            (0, 1),
            (1, 4),
            (4, 5),
        )

    def test_less_is_read_of_results_where_that_saves_pieces(self) -> None:
        results: list[Message] = [user("go")]
        for at in range(30):
            results += [call(f"{at}"), result(f"{at}", 8_000)]
        found = pieces(results, Room(Limits(20_000, 20_000)))
        assert len(found.marks) == 2
        assert found.limit < 2_000

    def test_much_is_read_of_results_where_few_pieces_do(self) -> None:
        assert pieces([user("go"), call("1"), result("1", 8_000)], ROOM) == summary.Pieces(((0, 3),), 2_000)

    def test_of_a_long_history_most_is_read_unless_half_of_the_pieces_are_saved(self) -> None:
        words: list[Message] = [user("w" * 4_000) for _ in range(40)]
        assert pieces(words, SMALL).limit == 2_000
        results: list[Message] = []
        for at in range(200):
            results += [call(f"{at}"), result(f"{at}", 8_000)]
        found = pieces(results, SMALL)
        assert found.limit == 250
        assert len(found.marks) > 2


@pytest.mark.req("SESS-09")
def test_a_giant_message_is_only_named() -> None:
    text = "x" * 40_000
    assert summary.told(user(text), 2_000, SMALL) == "[Large user (~10K tokens) omitted from summary]"
    giant = ToolResult("c", "exec", (Text(text),), 1)
    assert summary.told(giant, 2_000, SMALL) == "[Large toolResult (~10K tokens) omitted from summary]"
    assert summary.told(Assistant((Text(text),), 1), 2_000, SMALL) == (
        "[Large assistant (~10K tokens) omitted from summary]"
    )
    found = pieces([user(text), user("b")], SMALL)
    assert summary.read([user(text), user("b")], found.marks[0], found.limit, SMALL).endswith("[user]\nb")


@pytest.mark.req("SESS-10")
def test_details_and_what_the_runtime_says_are_never_read() -> None:
    secret = ToolResult("c", "exec", (Text("done"),), 1, is_error=True, details={"key": "hunter2"})
    assert summary.told(secret, 2_000, ROOM) == "[toolResult exec (failed)]\ndone"
    inside = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nthe owner's plan\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\nhello"
    assert summary.told(user(inside), 2_000, ROOM) == "[user]\nhello"
    assert summary.told(user("a<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>never closed"), 2_000, ROOM) == "[user]\na"


def test_what_is_read_of_each_kind_of_part() -> None:
    message = Assistant((Thinking("hm"), Text("I look"), ToolCall("c", "exec", {"command": "ls"})), 1)
    assert summary.told(message, 2_000, ROOM) == '[assistant]\nI look\n[calls exec {"command":"ls"}]'
    picture = User((Text("see"), Image("image/png", "AAAA")), 1)
    assert summary.told(picture, 2_000, ROOM) == "[user]\nsee\n[image data omitted from summary input]"
    assert "characters left out" in summary.told(result("c", 3_000), 2_000, ROOM)
    odd = Assistant((ToolCall("c", "x", {"k": "\ud800"}),), 1)
    assert "[calls x {" in summary.told(odd, 2_000, ROOM)


def test_a_request_holds_the_summary_before_and_what_the_person_wants() -> None:
    text = summary.request("[user]\nhi </conversation> there", before="old", focus="the  plan\n" + "x" * 900)
    assert text.startswith(
        "<previous-summary>\nold\n</previous-summary>\n\n<conversation>\n[user]\nhi &lt;/conversation>"
    )
    assert "<focus>\nthe plan x" in text
    assert len(text.split("<focus>\n")[1].split("\n")[0]) == 800
    assert summary.request("hi") == "<conversation>\nhi\n</conversation>"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "NO_REPLY, nothing of it matters",
        "<!DOCTYPE html><html>gateway error</html>",
        "<html>503 Service Unavailable</html>",
    ],
)
def test_what_is_no_summary(text: str) -> None:
    assert summary.usable(text, ROOM) == ""


def test_a_summary_is_kept_within_its_room() -> None:
    plain = "They want a boat, and it was ordered."
    assert summary.usable(f" {plain}\n", ROOM) == plain
    long = summary.usable("word " * 20_000, ROOM)
    assert len(long) <= ROOM.size(ROOM.summary) + 100


def test_how_a_summary_and_a_gap_are_told() -> None:
    once = summary.summed("all is well")
    assert once == f"{summary.SUMMED}\n\nall is well"
    assert summary.summed(once) == once
    assert summary.note(7, "", ROOM).startswith("[7 earlier messages are left out")
    assert summary.note(7, once, ROOM).startswith(f"{summary.SUMMED}\n\nall is well\n\n[7 earlier")
