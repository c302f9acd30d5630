"""Old results of tools are sent in brief once the cache is cold, and always the same way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garra.core.compaction import IMAGE_CHARS, chars
from garra.core.messages import Assistant, Image, Message, Text, ToolCall, ToolResult, User, message_json
from garra.core.pruning import CLEARED, NO_PICTURE, Pruning, Settings

MINUTE = 60_000
WINDOW = 50_000
"""Tokens: 200,000 characters."""


def user(at: int, text: str = "go on", *images: Image) -> User:
    return User((Text(text), *images), at)


def turn(number: int, at: int, size: int, name: str = "exec") -> tuple[Message, ...]:
    """A call, its result of `size` characters, and an answer, all at one moment."""
    call = ToolCall(f"c{number}", name, {})
    result = ToolResult(call.id, name, (Text(f"<{number}>".ljust(size, "x")[:size]),), at, details={"whole": size})
    return (Assistant((call,), at, stop="toolUse"), result, Assistant((Text("done"),), at))


def history(sizes: list[int], gap: int) -> tuple[Message, ...]:
    """A turn for each of `sizes` within one minute, and a new question `gap` ms after the last answer."""
    out: list[Message] = []
    for number, size in enumerate(sizes):
        out += [user(number), *turn(number, number, size)]
    return (*out, user(len(sizes) - 1 + gap))


def view(messages: tuple[Message, ...], rules: Settings | None = None, window: int = WINDOW) -> tuple[Message, ...]:
    return Pruning(rules or Settings(), window).view(messages)


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolResult)]


SMALL = [20_000, 20_000, 20_000, 100, 100]  # 31 % of the window
LARGE = [5_000] * 21 + [100, 100]  # 53 % of the window, all short once trimmed
HEAVY = [4_000] * 26 + [100, 100]  # 52 % of the window, nothing to trim


@pytest.mark.req("SESS-14")
def test_before_the_time_is_up_nothing_is_touched() -> None:
    messages = history(SMALL, 5 * MINUTE - 1)
    assert view(messages) is messages


@pytest.mark.req("SESS-14")
def test_a_third_of_the_window_is_trimmed_after_a_pause() -> None:
    messages = history(SMALL, 5 * MINUTE + 1)
    before = [message_json(message) for message in messages]
    first, second, third, *rest = texts(view(messages))
    for text in (first, second, third):
        assert text.endswith("\n\n[Trimmed: the first 1,500 and the last 1,500 of 20,000 characters are kept.]")
        assert len(text) < 3_200
    assert first.startswith("<0>xx")
    assert "x\n...\nx" in first
    assert rest == texts(messages)[3:]
    assert [message_json(message) for message in messages] == before


@pytest.mark.req("SESS-14")
def test_half_of_the_window_is_cleared_until_it_is_less() -> None:
    messages = history(HEAVY, 5 * MINUTE + 1)
    pruning = Pruning(Settings(), WINDOW)
    shown = texts(pruning.view(messages))
    cleared = [text == CLEARED for text in shown]
    assert cleared == sorted(cleared, reverse=True)
    assert 1 <= sum(cleared) <= 3
    assert pruning.report.cleared == sum(cleared)
    assert pruning.report.saved == sum(map(chars, messages)) - sum(map(chars, pruning.view(messages)))
    assert pruning.report.rounds == 1


def test_it_tells_from_when_on_it_saves_what() -> None:
    first = history(HEAVY, 5 * MINUTE + 1)
    pruning = Pruning(Settings(), WINDOW)
    pruning.on(first)
    assert list(pruning.steps) == [(len(first) - 1, pruning.report.saved)]
    pruning.on(first[:3])
    assert not pruning.steps


def test_trimming_that_is_enough_clears_nothing() -> None:
    assert CLEARED not in texts(view(history(LARGE, 5 * MINUTE + 1)))


def test_little_is_not_cleared_however_full_the_window_is() -> None:
    messages = history([3_900] * 12 + [100, 100], 5 * MINUTE + 1)
    assert view(messages, window=20_000) is messages


def test_clearing_can_be_off_and_say_something_else() -> None:
    messages = history(HEAVY, 5 * MINUTE + 1)
    assert view(messages, Settings(clears=False)) is messages
    assert texts(view(messages, Settings(placeholder="[gone]")))[0] == "[gone]"


def test_a_result_shorter_than_the_words_for_it_stays() -> None:
    messages = history([5, *HEAVY, 100], 5 * MINUTE + 1)
    shown = texts(view(messages))
    assert shown[0] == texts(messages)[0]
    assert shown[1] == CLEARED


@pytest.mark.req("SESS-14")
def test_the_last_answers_and_what_comes_first_are_kept() -> None:
    opening = turn(99, 0, 30_000)
    messages = (*opening, *history([20_000, 20_000, 20_000], 5 * MINUTE + 1))
    shown = texts(view(messages))
    kept = [text == old for text, old in zip(shown, texts(messages), strict=True)]
    assert kept == [True, False, False, True]  # the answers of the last turn and half of the one before
    few = (user(0), *turn(0, 0, 90_000)[:2], user(6 * MINUTE))
    assert view(few) is few
    nobody = (*opening, *turn(1, 0, 90_000), *turn(2, 6 * MINUTE, 90_000))
    assert view(nobody) is nobody


def test_all_may_be_pruned_where_no_answer_is_kept() -> None:
    messages = history([90_000], 5 * MINUTE + 1)
    assert view(messages) is messages
    assert len(texts(view(messages, Settings(keep_assistants=0)))[0]) < 4_000


def test_below_a_third_nothing_happens() -> None:
    messages = history([20_000, 20_000, 100, 100], 6 * MINUTE)
    assert view(messages) is messages


def test_only_allowed_tools_are_pruned_and_a_denial_wins() -> None:
    messages = history(SMALL, 6 * MINUTE)
    assert view(messages, Settings(deny=("EX*",))) is messages
    assert view(messages, Settings(allow=("web_*",))) is messages
    assert view(messages, Settings(allow=("exec",))) == view(messages)
    assert view(messages, Settings(allow=("exec",), deny=("e?ec",))) is messages


def test_off_is_off() -> None:
    messages = history(SMALL, 6 * MINUTE)
    assert view(messages, Settings(mode="off")) is messages


@pytest.mark.req("SESS-15")
def test_pictures_count_and_go_with_words_in_their_place() -> None:
    picture = Image("image/png", "AAAA")
    assert chars(user(0, "", picture)) - chars(user(0, "")) == IMAGE_CHARS == 8_000
    seen = ToolResult("c", "look", (Text("seen"), picture), 0)
    shots: list[Message] = [Assistant((ToolCall("c", "look", {}),), 0), seen] * 8
    messages = (user(0, "what is this", picture), *shots, *history([100, 100], 6 * MINUTE))
    pruning = Pruning(Settings(), WINDOW)
    shown = pruning.view(messages)
    assert shown[0].content == (Text("what is this"), Text(NO_PICTURE))
    assert NO_PICTURE == "[image removed during context pruning]"
    assert isinstance(shown[2], ToolResult)
    assert shown[2].content == (Text("seen"), Text(NO_PICTURE))
    assert pruning.report.pictures == 9
    assert pruning.report.trimmed == 0


def test_what_failed_warmed_no_cache() -> None:
    messages = history(SMALL, 0)[:-1]
    failed = Assistant((), 4 * MINUTE, stop="error")
    late = user(5 * MINUTE + 10)
    assert view((*messages, user(9), failed, late)) != (*messages, user(9), failed, late)
    warm = Assistant((Text("yes"),), 4 * MINUTE)
    assert view((*messages, user(9), warm, late)) == (*messages, user(9), warm, late)


def test_what_was_made_smaller_stays_so_and_a_new_pause_begins() -> None:
    first = history(SMALL, 6 * MINUTE)
    more = (*first, *turn(50, 6 * MINUTE, 30_000), *turn(51, 6 * MINUTE, 30_000), *turn(52, 6 * MINUTE, 100))
    pruning = Pruning(Settings(), WINDOW)
    once = pruning.view(first)
    later = pruning.view(more)
    assert all(one is other for one, other in zip(once, later, strict=False))
    assert later[len(first) :] == more[len(first) :]
    again = pruning.view((*more, user(20 * MINUTE)))
    assert again[: len(first)] == once[: len(first)]
    assert pruning.report.rounds == (2 if again[len(first) :][:-1] != more[len(first) :] else 1)


def test_no_tail_at_all_may_be_kept() -> None:
    text = texts(view(history(SMALL, 6 * MINUTE), Settings(tail=0)))[0]
    assert "x\n...\n\n\n[Trimmed" in text


def test_another_history_is_looked_at_anew() -> None:
    pruning = Pruning(Settings(), WINDOW)
    messages = history(SMALL, 6 * MINUTE)
    assert pruning.view(messages) != messages
    other = (user(0, "another"), *messages[1:-1])
    assert pruning.view(other) is other
    assert pruning.view(other[:2]) is not None
    many = history([100] * 30, 0)
    assert pruning.view(many) is many
    assert pruning.view((user(0, "different"), *many[1:]))[0].content == (Text("different"),)


def test_an_equal_history_that_was_read_again_costs_nothing_new() -> None:
    pruning = Pruning(Settings(), WINDOW)
    messages = history(SMALL, 6 * MINUTE)
    once = pruning.view(messages)
    read = (*messages[:-1], user(4 + 6 * MINUTE))
    assert read[-1] is not messages[-1]
    assert all(one is other for one, other in zip(once[:-1], pruning.view(read)[:-1], strict=True))
    assert Pruning(Settings(), 0).view(messages) is not None


moments = st.lists(st.integers(0, 8 * MINUTE), min_size=1, max_size=12)


@settings(max_examples=60)
@given(moments, st.lists(st.integers(10, 40_000), min_size=12, max_size=12), st.data())
def test_a_restart_gives_the_same_bytes(gaps: list[int], sizes: list[int], data: st.DataObject) -> None:
    """However a history was met, message by message or at once, it is sent the same way."""
    messages: list[Message] = []
    now = 0
    for number, gap in enumerate(gaps):
        now += gap
        messages += [user(now), *turn(number, now, sizes[number])]
    whole = tuple(messages)
    grown = Pruning(Settings(), WINDOW)
    at = 0
    while at < len(whole):
        at = data.draw(st.integers(at + 1, len(whole)))
        assert grown.view(whole[:at]) == view(whole[:at])
    assert len(grown.view(whole)) == len(whole)
    assert [type(one) for one in grown.view(whole)] == [type(one) for one in whole]
