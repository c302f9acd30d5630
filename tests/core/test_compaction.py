"""When a history is too large, and what is done about it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garra.core import compaction
from garra.core.compaction import CAPS, FRAME, History, Limits, Measure, Plan, Room, limits
from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolCall, ToolResult, Usage, User


def user(text: str, at: int = 1) -> User:
    return User((Text(text),), at)


def said(text: str, at: int = 1, usage: int = 0, model: str = "m") -> Assistant:
    return Assistant((Text(text),), at, provider="p", model=model, usage=Usage(input=usage))


def call(*ids: str) -> Assistant:
    return Assistant(tuple(ToolCall(id_, "exec", {"command": "ls"}) for id_ in ids), 1)


def result(id_: str, size: int = 10) -> ToolResult:
    return ToolResult(id_, "exec", (Text("r" * size),), 1)


def history(messages: Sequence[Message], *, told: int = 0, room: Room | None = None) -> History:
    measure = Measure()
    measure.on(messages)
    return History(messages, measure.sizes, measure.tokens(room or Room(limits(200_000)), ""), told)


def roomy(window: int, **more: int) -> Room:
    return Room(limits(window), **more)


@pytest.mark.req("SESS-06")
@pytest.mark.parametrize(
    ("window", "limit"), [(200_000, 180_000), (80_000, 60_000), (32_768, 24_576), (16_000, 12_000), (4, 3), (0, 1)]
)
def test_the_reserve_is_twenty_thousand_and_a_quarter_of_a_small_window(window: int, limit: int) -> None:
    assert limits(window).limit == limit


def test_a_larger_reserve_is_taken_up_to_half_of_the_window() -> None:
    assert limits(200_000, 50_000).reserve == 50_000
    assert limits(20_000, 50_000).reserve == 10_000
    assert limits(200_000, None, 0).limit == 200_000


def test_what_counts_of_a_message() -> None:
    assert compaction.chars(user("abcd")) == FRAME + 4
    assert compaction.chars(user("中文")) == FRAME + 6
    assert compaction.chars(User((Image("image/png", "x" * 99),), 1)) == FRAME + 8_000
    assert compaction.chars(Assistant((Thinking("hm"),), 1)) == FRAME + 2
    plain = ToolResult("c", "exec", (Text("ok"),), 1)
    assert compaction.chars(plain) == compaction.chars(
        ToolResult("c", "exec", (Text("ok"),), 1, details={"a": "b" * 99})
    )
    odd = Assistant((ToolCall("c", "exec", {"x": "\ud800"}),), 1)
    assert compaction.chars(odd) > FRAME
    assert compaction.chars(Assistant((ToolCall("c", "x", {"k": object()}),), 1)) > FRAME


class TestMeasure:
    def test_only_what_is_new_is_measured(self) -> None:
        measure = Measure()
        messages: list[Message] = [user("a"), said("b")]
        measure.on(messages)
        first = measure.total
        measure.on([*messages, user("ccc")])
        assert measure.total == first + FRAME + 3
        assert len(measure.sizes) == 3

    def test_another_history_is_measured_anew(self) -> None:
        measure = Measure()
        measure.on([user("a" * 100), said("b")])
        measure.on([user("c")])
        assert measure.sizes == [FRAME + 1]
        measure.on([])
        assert measure.total == 0

    def test_what_the_provider_counted_is_the_ground_of_the_next_estimate(self) -> None:
        measure, room = Measure(), Room(limits(1_000), fixed=50)
        messages: list[Message] = [user("a" * 400), said("b", at=5, usage=700)]
        measure.on(messages)
        assert measure.tokens(room, "p/m") == 700
        measure.on([*messages, user("c" * (400 - FRAME))])
        assert measure.tokens(room, "p/m") == 800
        measure.on([user("a" * 4_000), said("b", at=5, usage=16)])
        assert measure.tokens(room, "p/m") == (50 + room.tokens(measure.total)) // 2
        assert measure.tokens(room, "p/other") == 50 + room.tokens(measure.total)

    def test_what_is_sent_in_brief_counts_as_it_is_sent(self) -> None:
        measure, room = Measure(), Room(limits(10_000), fixed=50)
        messages: list[Message] = [user("a" * 4_000), said("b", at=5, usage=1_000), user("c")]
        measure.on(messages)
        whole = measure.tokens(room, "p/m")
        pause = ((2, 2_000),)
        measure.on([*messages, said("d"), user("e")], steps=pause)
        assert measure.total - measure.sent == 2_000
        assert measure.tokens(room, "p/m") < whole - 450
        assert measure.tokens(room, "p/other") == 50 + room.tokens(measure.sent)
        again = Measure()
        again.on([*messages, said("d", at=6, usage=600)], steps=((2, 1_500), *pause))
        assert again.counted("p/m") == (again.total - 2_000, 600), "what was counted was brief already"
        assert again.tokens(room, "p/m") == 600

    def test_what_was_counted_before_the_history_was_made_smaller_says_nothing(self) -> None:
        measure = Measure()
        measure.on([user("a"), said("b", at=5, usage=700)], since=5)
        assert measure.counted("p/m") is None
        measure.on([user("a"), said("b", at=6, usage=700)], since=5)
        assert measure.counted("p/m") is not None


def test_the_ratio_rises_at_once_and_falls_slowly() -> None:
    assert compaction.learned(None, 4_000, 0, 2_000) == 2.0
    assert compaction.learned(1.0, 4_000, 0, 2_000) == 2.0
    assert compaction.learned(2.0, 4_000, 0, 1_000) == pytest.approx(1.7)
    assert compaction.learned(None, 4_000, 0, 1_000_000) == 4.0
    assert compaction.learned(None, 4_000, 1_000, 10) == 0.5


def test_a_room_tells_tokens_of_sizes_and_back() -> None:
    room = Room(Limits(1_000, 800), fixed=300, ratio=2.0, keep=100)
    assert (room.free, room.kept, room.summary) == (500, 100, 100)
    assert room.tokens(400) == 200
    assert room.size(200) == 400
    assert Room(Limits(1_000, 800), fixed=2_000).free == 125


class TestBoundary:
    def test_calls_stay_with_their_results(self) -> None:
        messages: list[Message] = [user("a"), call("1", "2"), result("1"), result("2"), said("b")]
        sizes = [10] * 5
        assert compaction.boundary(messages, sizes, 30) == 4
        assert compaction.boundary(messages, sizes, 40) == 1
        assert compaction.boundary(messages, sizes, 5) == 5

    def test_words_between_a_call_and_its_result_are_no_place_to_cut(self) -> None:
        messages: list[Message] = [user("a"), call("1"), user("wait"), result("1"), said("b")]
        assert compaction.boundary(messages, [10] * 5, 30) == 4

    def test_a_turn_is_preferred_where_it_is_half_of_it(self) -> None:
        messages: list[Message] = [call("1"), result("1"), user("b"), said("c")]
        assert compaction.boundary(messages, [10, 10, 10, 10], 40) == 2
        assert compaction.boundary(messages, [90, 90, 10, 10], 400) == 0

    def test_the_last_words_of_a_person(self) -> None:
        assert compaction.last_turn([user("a"), said("b"), user("c"), user("d"), call("1"), result("1")]) == 2
        assert compaction.last_turn([said("b")]) == 1


def test_results_are_clipped_as_little_as_helps_and_the_newest_least() -> None:
    messages: list[Message] = [user("a"), call("1"), result("1", 9_000), call("2"), result("2", 9_000)]
    found = history(messages)
    assert compaction.caps(messages, found.sizes, 0, 100_000) == ()
    spans = compaction.caps(messages, found.sizes, 0, 12_000)
    assert spans == ((4, 2_000), (5, 16_000))
    assert compaction.clipped(messages, found.sizes, 0, spans) <= 12_000
    assert compaction.caps(messages, found.sizes, 0, 10) == ((5, CAPS[-1]),)


class TestSteps:
    def test_trimming_alone_is_taken_where_it_is_enough(self) -> None:
        messages: list[Message] = [user("a")]
        for at in range(10):
            messages += [call(f"{at}"), result(f"{at}", 8_000)]
        room = roomy(24_000)
        found = history(messages, room=room)
        plan = compaction.trim(found, room)
        assert plan is not None
        assert plan.step == "trim"
        assert plan.after <= 0.7 * room.limits.limit
        assert compaction.trim(history([user("a" * 100_000)], room=room), room) is None

    def test_what_is_old_is_cut_and_the_newest_stays(self) -> None:
        messages: list[Message] = []
        for at in range(40):
            messages += [user(f"question {at} " + "w" * 1_000), said("answer " * 100)]
        room = roomy(16_000)
        plan = compaction.cut(history(messages, room=room), room)
        assert plan is not None
        assert 0 < plan.at < len(messages) - 1
        assert isinstance(messages[plan.at], User)
        assert plan.after < room.limits.limit / 2
        assert compaction.cut(history(messages[:2], room=room), room) is None

    def test_the_last_turn_stays_however_large_with_shorter_results(self) -> None:
        messages: list[Message] = [
            user("old"),
            said("x"),
            user("now"),
            *[m for at in range(5) for m in (call(f"{at}"), result(f"{at}", 9_000))],
        ]
        room = roomy(16_000)
        plan = compaction.cut(history(messages, room=room), room)
        assert plan is not None
        assert plan.at == 2
        assert plan.spans
        assert not plan.also

    def test_of_a_turn_that_is_much_too_large_the_words_and_the_newest_steps_stay(self) -> None:
        messages: list[Message] = [
            user("old"),
            said("x"),
            user("now"),
            *[m for at in range(90) for m in (call(f"{at}"), result(f"{at}", 900))],
        ]
        room = roomy(16_000)
        plan = compaction.cut(history(messages, room=room), room)
        assert plan is not None
        assert plan.also == (2,)
        assert plan.at > 3
        assert plan.after < room.limits.limit

    def test_the_newest_step_stays_though_it_is_too_large(self) -> None:
        ids = [f"{at}" for at in range(1, 13)]
        messages: list[Message] = [
            user("now"),
            call("0"),
            result("0"),
            call(*ids),
            *[result(id_, 90_000) for id_ in ids],
        ]
        room = roomy(16_000)
        plan = compaction.cut(history(messages, room=room), room)
        assert plan is not None
        assert plan.at == 3
        assert plan.also == (0,)

    def test_a_last_word_alone_that_is_too_large_cannot_be_helped(self) -> None:
        room = roomy(16_000)
        alone: list[Message] = [user("x" * 200_000)]
        assert compaction.cut(history(alone, room=room), room) is None
        assert compaction.drop(history(alone, room=room), room) is None
        assert compaction.squeeze(history(alone, room=room), room) is None
        long: list[Message] = [said("y"), said("x" * 200_000)]
        plan = compaction.cut(history(long, room=room), room)
        assert plan is not None
        assert plan.at == 2

    def test_results_alone_at_the_beginning_are_all_cut(self) -> None:
        room = roomy(16_000)
        plan = compaction.cut(history([result("a", 90_000), result("b", 90_000)], room=room), room)
        assert plan is not None
        assert plan.at == 2

    def test_a_summary_is_not_summed_up_alone(self) -> None:
        room = roomy(16_000)
        messages: list[Message] = [user("summary"), user("x"), said("y")]
        assert compaction.cut(history(messages, told=1, room=room), room) is None

    def test_all_results_are_squeezed_where_that_is_enough(self) -> None:
        messages: list[Message] = [
            user("now"),
            *[m for at in range(9) for m in (call(f"{at}"), result(f"{at}", 9_000))],
        ]
        room = roomy(16_000)
        plan = compaction.squeeze(history(messages, room=room), room)
        assert plan is not None
        assert plan.step == "trim"
        assert plan.after <= room.limits.limit

    def test_dropping_frees_enough_or_is_not_done(self) -> None:
        messages: list[Message] = []
        for at in range(60):
            messages += [user(f"{at} " + "w" * 900), said("answer")]
        room = roomy(16_000)
        plan = compaction.drop(history(messages, room=room), room)
        assert plan is not None
        assert plan.step == "drop"

    def test_a_step_that_frees_too_little_is_none(self) -> None:
        assert compaction.enough(1_000, 900, 950)
        assert not compaction.enough(1_000, 901, 950)
        assert not compaction.enough(1_000, 100, 50)


@pytest.mark.req("SESS-08")
@given(st.integers(0, 2**32), st.integers(4_000, 40_000))
@settings(max_examples=150, deadline=None)
def test_no_history_is_ever_cut_between_a_call_and_its_results(seed: int, window: int) -> None:
    dice = random.Random(seed)
    messages: list[Message] = []
    for at in range(dice.randrange(1, 40)):
        messages.append(user("u" * dice.randrange(2_000)))
        for step in range(dice.randrange(4)):
            ids = [f"{at}-{step}-{each}" for each in range(dice.randrange(1, 13))]
            messages.append(call(*ids))
            messages += [result(id_, dice.randrange(5_000)) for id_ in ids]
        if dice.random() < 0.8:
            messages.append(said("a" * dice.randrange(2_000)))
    room = roomy(window)
    for plan in (
        compaction.cut(history(messages, room=room), room),
        compaction.drop(history(messages, room=room), room),
    ):
        if plan is None:
            continue
        _whole(messages, plan)
        turn = compaction.last_turn(messages)
        assert plan.at <= turn or set(plan.also) >= {turn} - set(range(plan.at, len(messages)))


def _whole(messages: Sequence[Message], plan: Plan) -> None:
    kept = [*[messages[at] for at in plan.also], *messages[plan.at :]]
    asked: set[str] = set()
    for message in kept:
        if isinstance(message, Assistant):
            asked |= {each.id for each in message.calls}
        elif isinstance(message, ToolResult):
            assert message.call_id in asked
    answered = {message.call_id for message in kept if isinstance(message, ToolResult)}
    assert asked <= answered


@pytest.mark.parametrize(
    ("text", "window"),
    [
        (
            "This model's maximum context length is 20000 tokens. However, your messages resulted in 61234 tokens.",
            20_000,
        ),
        ("prompt is too long: 210000 tokens > 199999 maximum", 199_999),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (32,768).", 32_768),
        ("the window is full", None),
        ("maximum context length is 900000 tokens", None),
    ],
)
def test_the_window_that_a_refusal_names(text: str, window: int | None) -> None:
    assert compaction.stated(text, 200_000) == window
