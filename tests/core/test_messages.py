"""Messages and their stored form."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garra.core.messages import (
    Assistant,
    Image,
    Message,
    Stop,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    User,
    message_from,
    message_json,
    part_from,
    usage_from,
)

words = st.text(max_size=5)
whole = st.integers(0, 10**9)
shown = st.one_of(st.builds(Text, words), st.builds(Image, words, words))
thoughts = st.builds(Thinking, words, st.none() | words)
calls = st.builds(ToolCall, words, words, st.dictionaries(words, whole, max_size=2))
metas = st.dictionaries(st.sampled_from(["idempotencyKey", "__openclaw"]), words, max_size=2)
usages = st.builds(Usage, whole, whole, whole, whole, st.floats(0, 9))
messages = st.one_of(
    st.builds(User, st.lists(shown, min_size=1, max_size=3).map(tuple), whole, metas),
    st.builds(
        Assistant, st.lists(st.one_of(shown, thoughts, calls), max_size=3).map(tuple), whole, words, words, words,
        usages, st.sampled_from(get_args(Stop)), st.none() | words, st.none() | words, metas,
    ),
    st.builds(
        ToolResult, words, words, st.lists(shown, max_size=3).map(tuple), whole, st.booleans(), st.none() | whole, metas
    ),
)  # fmt: skip


def joined(message: Message) -> Message:
    """A user's words that stand side by side are stored as one text."""
    if isinstance(message, User) and all(isinstance(part, Text) for part in message.content):
        return User((Text(message.text),), message.timestamp, message.meta)
    return message


@settings(max_examples=50)
@given(messages)
def test_what_is_stored_is_read_back(message: Message) -> None:
    assert message_from(message_json(message)) == joined(message)


def test_the_stored_form_is_the_originals() -> None:
    assert message_json(User((Text("hi"),), 5, {"idempotencyKey": "r:user"})) == {
        "role": "user", "content": "hi", "timestamp": 5, "idempotencyKey": "r:user",
    }  # fmt: skip
    stored = message_json(
        Assistant((Text("a"), ToolCall("c", "exec", {"x": 1})), 5, "api", "p", "m", Usage(1, 2, 3, 4, 0.5), "toolUse")
    )
    assert stored["content"][1] == {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"x": 1}}
    assert stored["usage"]["totalTokens"] == 10
    assert "errorMessage" not in stored


def test_texts_and_calls_of_a_message() -> None:
    answer = Assistant((Thinking("hm"), Text("a"), ToolCall("c", "x", {}), Text("b")), 0)
    assert (answer.text, answer.calls) == ("ab", (ToolCall("c", "x", {}),))
    assert ToolResult("c", "x", (Text("out"), Image("image/png", "A")), 0).text == "out"
    assert Usage(1, 2) + Usage(3, 4, 5, 6, 1.0) == Usage(4, 6, 5, 6, 1.0)


def test_what_is_missing_has_its_default() -> None:
    assert message_from({"role": "assistant", "content": "hi"}) == Assistant((Text("hi"),), 0)
    assert message_from({"role": "user", "content": None}) == User((), 0)
    assert message_from({"role": "toolResult", "toolCallId": "c"}) == ToolResult("c", "", (), 0)
    assert usage_from({"input": 3, "cost": 5}) == Usage(3)


@pytest.mark.parametrize(
    "body",
    [
        {}, {"role": "alien"}, {"role": ["user"]}, {"role": "toolResult"},
        {"role": "user", "content": [{"type": "video"}]}, {"role": "user", "content": [{"type": "text"}]},
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        message_from(body)


def test_a_part_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no such part"):
        part_from({"type": "video"})
