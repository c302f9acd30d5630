"""No history that was ever stored becomes a request that a provider refuses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garra.core import requests
from garra.core.messages import Assistant, Image, Message, Stop, Text, Thinking, ToolCall, ToolResult, User
from garra.core.requests import Request
from tests.core import strict

NOW = 1_796_044_636_255


@dataclass(frozen=True)
class Target:
    provider: str = "a"
    id: str = "m1"
    api: str = "anthropic-messages"
    input: tuple[str, ...] = ("text", "image")


CLAUDE = Target()
OPENAI = Target("b", "m2", "openai-completions", ("text",))
MISTRAL = Target("mistral", "m3", "openai-completions")
TARGETS = (CLAUDE, OPENAI, MISTRAL)

IDS = ["call_1", "call_1", "", "functions.x:0", "toolu_2", "abcdefgh1", "x" * 65, "é", "call_2"]
TEXTS = ["hello", "", "  \n", "\u00a0", "word"]
NAMES = ["exec", "read", "", "functions.exec", "x" * 70]

texts = st.builds(Text, st.sampled_from(TEXTS))
images = st.builds(Image, st.sampled_from(["image/png", "image/tiff"]), st.sampled_from(["AAAA", ""]))
contents = st.lists(texts | images, max_size=3).map(tuple)
calls = st.builds(ToolCall, st.sampled_from(IDS), st.sampled_from(NAMES), st.just({"a": 1}))
users = st.builds(User, contents, st.just(NOW))
results = st.builds(ToolResult, st.sampled_from(IDS), st.sampled_from(NAMES), contents, st.just(NOW), st.booleans())


@st.composite
def assistants(draw: st.DrawFn) -> Assistant:
    of = draw(st.sampled_from(TARGETS))
    signature = draw(st.sampled_from([f"sig-{of.id}-1", None, ""]))
    thoughts = st.just(Thinking("hm", signature))
    content = tuple(draw(st.lists(st.one_of(texts, calls, thoughts, images), max_size=4)))
    return Assistant(content, NOW, of.api, of.provider, of.id, stop=draw(st.sampled_from(get_args(Stop))))


histories = st.lists(st.one_of(users, assistants(), results), max_size=14).map(tuple)


def fault(messages: tuple[Message, ...], target: Target) -> str | None:
    shown = strict.anthropic(messages) if target.api == "anthropic-messages" else strict.openai(messages)
    return strict.fault(shown, signatures=f"sig-{target.id}-")


@pytest.mark.req("LOOP-04")
@settings(max_examples=150)
@given(histories, st.sampled_from(TARGETS))
def test_whatever_was_stored_is_accepted(history: tuple[Message, ...], target: Target) -> None:
    sent = requests.valid(history, target)
    assert fault(sent, target) is None


@settings(max_examples=60)
@given(histories, st.sampled_from(TARGETS))
def test_what_is_valid_stays_as_it_is(history: tuple[Message, ...], target: Target) -> None:
    once = requests.valid(history, target)
    assert requests.valid(once, target) == once


@settings(max_examples=80)
@given(histories, st.data(), st.sampled_from(TARGETS))
def test_checking_only_what_is_new_gives_the_same(
    history: tuple[Message, ...], data: st.DataObject, target: Target
) -> None:
    previous: Request | None = None
    at = 0
    while at < len(history):
        at = data.draw(st.integers(at + 1, len(history)))
        previous = requests.extend(previous, history[:at], target)
        assert previous.messages == requests.valid(history[:at], target)


@settings(max_examples=60)
@given(histories, histories, st.sampled_from(TARGETS))
def test_an_answered_past_is_always_sent_the_same_way(
    history: tuple[Message, ...], more: tuple[Message, ...], target: Target
) -> None:
    """The provider's cache holds: what is settled is a prefix of every later request."""
    first = requests.extend(None, history, target)
    later = requests.valid((*history, *more), target)
    assert later[: first.kept] == first.messages[: first.kept]


def asked(*calls_: ToolCall, stop: Stop = "toolUse") -> Assistant:
    return Assistant((Text("let me look"), *calls_), NOW, stop=stop)


def words(text: str) -> User:
    return User((Text(text),), NOW)


def result(call_id: str, text: str = "done") -> ToolResult:
    return ToolResult(call_id, "exec", (Text(text),), NOW)


@pytest.mark.req("LOOP-04")
def test_a_call_that_never_ended_is_answered_by_saying_so() -> None:
    one, two = ToolCall("c1", "exec", {}), ToolCall("c2", "exec", {})
    sent = requests.valid((words("go"), asked(one, two, stop="aborted"), result("c2"), words("hi")), CLAUDE)
    lost = ToolResult("c1", "exec", (Text(requests.INTERRUPTED),), NOW, is_error=True)
    assert sent == (words("go"), asked(one, two, stop="aborted"), lost, result("c2"), words("hi"))


def test_a_result_that_came_behind_other_words_goes_to_its_call() -> None:
    call = ToolCall("c1", "exec", {})
    sent = requests.valid((words("go"), asked(call), words("wait"), result("c1")), CLAUDE)
    assert sent == (words("go"), asked(call), result("c1"), words("wait"))


def test_results_without_a_call_are_left_out() -> None:
    assert requests.valid((words("go"), result("c1")), CLAUDE) == (words("go"),)
    call = ToolCall("c1", "exec", {})
    twice = (words("go"), asked(call), result("c1"), result("c1", "again"))
    assert requests.valid(twice, CLAUDE) == twice[:3]


def test_repeated_and_odd_ids_become_new_ones_in_pairs() -> None:
    history = (
        words("go"),
        asked(ToolCall("", "a", {}), ToolCall("", "b", {})),
        result("", "of a"),
        result("", "of b"),
        asked(ToolCall("functions.x:0", "a", {})),
        result("functions.x:0", "of c"),
    )
    sent = requests.valid(history, CLAUDE)
    pairs = [(m.call_id, m.name, m.text) for m in sent if isinstance(m, ToolResult)]
    assert pairs == [("call_0", "a", "of a"), ("call_1", "b", "of b"), ("functions_x_0_2", "a", "of c")]
    mistral = requests.valid(history, MISTRAL)
    assert [m.call_id for m in mistral if isinstance(m, ToolResult)] == ["c00000000", "c00000001", "c00000002"]


def test_a_new_id_avoids_those_that_are_there() -> None:
    calls_ = (ToolCall("call_1", "a", {}), ToolCall("", "b", {}))
    sent = requests.valid((words("go"), asked(*calls_)), CLAUDE)
    assert [m.call_id for m in sent if isinstance(m, ToolResult)] == ["call_1", "call_2"]


def test_thoughts_go_back_only_to_the_model_that_had_them() -> None:
    thought = Thinking("hm", "sig-m1-1")
    own = Assistant((thought, Text("yes")), NOW, CLAUDE.api, CLAUDE.provider, CLAUDE.id)
    history = (words("go"), own, words("and"))
    assert requests.valid(history, CLAUDE) == history
    for other in (OPENAI, replace(CLAUDE, provider="x"), replace(CLAUDE, id="m9"), replace(CLAUDE, api="other")):
        sent = requests.valid(history, other)[1]
        assert isinstance(sent, Assistant)
        assert sent.content == (Text("yes"),)


def test_an_unfinished_or_unsigned_thought_is_not_sent() -> None:
    thought = Thinking("hm", "sig-m1-1")
    cut = Assistant((thought, Text("ye")), NOW, CLAUDE.api, CLAUDE.provider, CLAUDE.id, stop="aborted")
    assert requests.valid((words("go"), cut), CLAUDE)[1].content == (Text("ye"),)
    plain = Assistant((Thinking("hm"), Text("yes")), NOW, OPENAI.api, OPENAI.provider, OPENAI.id)
    assert requests.valid((words("go"), plain), OPENAI)[1] == plain
    of_claude = replace(plain, api=CLAUDE.api, provider=CLAUDE.provider, model=CLAUDE.id)
    assert requests.valid((words("go"), of_claude), CLAUDE)[1].content == (Text("yes"),)


def test_empty_answers_and_empty_words_are_left_out() -> None:
    empty = Assistant((Text(" "), Thinking("hm", "s")), NOW, stop="error")
    assert requests.valid((words("go"), empty, words(""), words("hi")), CLAUDE) == (words("go"), words("hi"))
    silent = ToolResult("c1", "exec", (), NOW)
    sent = requests.valid((words("go"), asked(ToolCall("c1", "exec", {})), silent), CLAUDE)
    assert sent[-1].text == requests.NO_OUTPUT


def test_a_conversation_that_the_assistant_began_gets_an_opening() -> None:
    hello = Assistant((Text("good morning"),), NOW)
    assert requests.valid((hello,), CLAUDE) == (words(requests.OPENING), hello)


def test_pictures_are_sent_only_where_they_can_be_seen() -> None:
    good, odd = Image("image/png", "AAAA"), Image("image/tiff", "AAAA")
    large = Image("image/png", "A" * (requests.LARGEST_PICTURE + 1))
    said = User((good, odd, large, Text("look")), NOW)
    seen = requests.valid((said,), CLAUDE)[0]
    assert seen.content == (good, Text(requests.BAD_PICTURE), Text(requests.BAD_PICTURE), Text("look"))
    blind = requests.valid((said,), OPENAI)[0]
    assert blind.content == (*(Text(requests.NO_PICTURES),) * 3, Text("look"))


def test_pictures_and_thoughts_can_be_taken_out_when_a_provider_refuses_them() -> None:
    picture = User((Image("image/png", "AAAA"), Text("look")), NOW)
    thought = Assistant((Thinking("hm", "s"), Text("yes")), NOW)
    history = (picture, thought, words("go"))
    shown = requests.without_pictures(history)
    assert shown == (User((Text(requests.BAD_PICTURE), Text("look")), NOW), thought, words("go"))
    assert requests.without_pictures(history, {Image("image/png", "BBBB")}) == history
    assert requests.without_pictures(history, {Image("image/png", "AAAA")}) == shown
    assert requests.without_thinking(history) == (picture, Assistant((Text("yes"),), NOW), words("go"))


def test_another_past_or_target_is_checked_from_its_beginning() -> None:
    first = requests.extend(None, (words("a"), words("b")), CLAUDE)
    assert requests.extend(first, (words("x"), words("b")), CLAUDE).messages == (words("x"), words("b"))
    assert requests.extend(first, (words("a"),), CLAUDE).messages == (words("a"),)
    own = Assistant((Thinking("hm", "sig-m1-1"), Text("yes")), NOW, CLAUDE.api, CLAUDE.provider, CLAUDE.id)
    mine = requests.extend(None, (words("a"), own), CLAUDE)
    assert requests.extend(mine, (words("a"), own), OPENAI).messages[1].content == (Text("yes"),)
