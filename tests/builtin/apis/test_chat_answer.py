"""Answers of the dialect, with everything that servers are known to do to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from garra.builtin.apis.openai_completions.answer import Reader
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Stop, Text, Thinking, ToolCall, Usage
from garra.sdk.stream import UNPARSED, Stream


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"id": "r1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def read(*chunks: dict[str, Any] | bytes) -> tuple[Assistant, Usage]:
    """The message that an answer of these chunks becomes."""
    reader, stream = Reader("salt"), Stream(Assistant((), 0))
    for chunk in chunks:
        for event in reader.feed(chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()):
            stream.push(event)
    stop, rest = reader.ending()
    for event in rest:
        stream.push(event)
    return Assistant(stream.draft.parts(calls=stop != "length"), 0, stop=stop), reader.usage


def fails(*chunks: dict[str, Any] | bytes) -> FailureKind:
    with pytest.raises(RunFailed) as caught:
        read(*chunks)
    return caught.value.failure.kind


def test_words_thoughts_and_usage() -> None:
    message, usage = read(
        delta(role="assistant", content=""),
        delta(reasoning_content="hm"),
        delta(content="Hello"),
        delta(content=" you"),
        delta("stop"),
        {
            "choices": [],
            "usage": {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
        },
        b"[DONE]",
    )
    assert message.content == (Thinking("hm"), Text("Hello you"))
    assert usage == Usage(12, 3, 8)


@pytest.mark.parametrize("name", ["reasoning", "thinking", "reasoning_text"])
def test_other_names_of_thought(name: str) -> None:
    assert read(delta(**{name: "hm"}), delta("stop", content="x"))[0].content[0] == Thinking("hm")


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"usage": None}, Usage()),
        ({"x_groq": {"usage": {"prompt_tokens": 4, "completion_tokens": 2}}}, Usage(4, 2)),
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 5}}, Usage(4, 1, 5)),
        ({"usage": {"input_tokens": 4, "output_tokens": "?"}}, Usage(4, 0)),
    ],
)
def test_usage_in_other_places(told: dict[str, Any], usage: Usage) -> None:
    assert read(delta("stop", content="x"), {"choices": [], **told})[1] == usage


def test_usage_inside_a_choice() -> None:
    chunk = delta("stop", content="x")
    chunk["choices"][0]["usage"] = {"prompt_tokens": 4, "completion_tokens": 2}
    assert read(chunk)[1] == Usage(4, 2)


@pytest.mark.parametrize(
    "pieces",
    [
        ["<think>hm, well</think>\n\nyes"],
        ["<thi", "nk>hm, ", "well</th", "ink>", "\nyes"],
        ["  ", "<", "thinking>hm, well<", "/thinking>yes"],
        list("<think>hm, well</think>yes"),
    ],
)
def test_thought_inside_the_words(pieces: list[str]) -> None:
    message, _ = read(*(delta(content=piece) for piece in pieces), delta("stop"))
    assert message.content == (Thinking("hm, well"), Text("yes"))


@pytest.mark.parametrize("text", ["<b>bold</b>", "a <think> b", "<thin", "  <", "if a < b"])
def test_what_only_looks_like_thought_stays(text: str) -> None:
    message, _ = read(*(delta(content=letter) for letter in text), delta("stop"))
    assert message.text == text


def test_thought_that_never_ends_is_no_answer() -> None:
    assert fails(delta(content="<think>hm"), delta("stop")) is FailureKind.EMPTY


def fragment(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, words: Any = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", words)) if value is not None}
    body: dict[str, Any] = {"function": function}
    if index is not None:
        body["index"] = index
    if call_id is not None:
        body["id"] = call_id
    return body


def calls(*fragments: dict[str, Any], finish: str = "tool_calls") -> list[tuple[str, dict[str, Any]]]:
    message, _ = read(*(delta(tool_calls=[item]) for item in fragments), delta(finish))
    assert message.stop == "toolUse"
    found = [part for part in message.content if isinstance(part, ToolCall)]
    assert len({part.id for part in found}) == len(found)
    assert all(part.id for part in found)
    return [(part.name, dict(part.arguments)) for part in found]


AB = [("a", {"x": 1}), ("b", {"y": 2})]


@pytest.mark.req("LOOP-08")
@pytest.mark.parametrize(
    "fragments",
    [
        pytest.param(
            [
                fragment(0, "i", "a", ""),
                fragment(0, words='{"x"'),
                fragment(0, words=":1}"),
                fragment(1, "j", "b", '{"y":2}'),
            ],
            id="as it should be",
        ),
        pytest.param([fragment(0, "", "a", '{"x":1}'), fragment(1, "", "b", '{"y":2}')], id="empty ids"),
        pytest.param([fragment(0, None, "a", '{"x":1}'), fragment(1, None, "b", '{"y":2}')], id="no ids"),
        pytest.param([fragment(0, "i", "a", '{"x":1}'), fragment(0, "j", "b", '{"y":2}')], id="one index for all"),
        pytest.param([fragment(0, None, "a", '{"x":1}'), fragment(0, None, "b", '{"y":2}')], id="one index, no ids"),
        pytest.param([fragment(None, "i", "a", '{"x":1}'), fragment(None, "j", "b", '{"y":2}')], id="no index"),
        pytest.param([fragment(None, None, "a", '{"x":1}'), fragment(None, None, "b", '{"y":2}')], id="neither"),
        pytest.param(
            [fragment(0, "i", "a", {"x": 1}), fragment(1, "i", "b", {"y": 2})], id="objects, the same id twice"
        ),
        pytest.param(
            [fragment(0, "i", "a", '{"x"'), fragment(0, "i", "a", ":1}"), fragment(1, "j", "b", '{"y":2}')],
            id="id and name in every fragment",
        ),
        pytest.param(
            [fragment(0, "i", None, '{"x"'), fragment(0, None, "a", ":1}"), fragment(1, "j", "b", '{"y":2}')],
            id="the name comes late",
        ),
        pytest.param(
            [fragment(None, "i", "a", '{"x"'), fragment(None, None, None, ":1}"), fragment(None, "j", "b", '{"y":2}')],
            id="no index, the rest without id",
        ),
        pytest.param(
            [fragment(0, "i", "a", '{"x"'), fragment(0, "k", None, ":1}"), fragment(1, "j", "b", '{"y":2}')],
            id="a new id in every fragment",
        ),
        pytest.param(
            [fragment(0, "i", "a", json.dumps('{"x":1}')), fragment(1, "j", "b", '{"y":2}')], id="encoded twice"
        ),
    ],
)
def test_fragments_of_calls(fragments: list[dict[str, Any]]) -> None:
    assert calls(*fragments) == AB
    assert calls(*fragments, finish="stop") == AB


def test_the_old_form_of_a_call() -> None:
    message, _ = read(delta("function_call", function_call={"name": "a", "arguments": "{}"}))
    assert message.calls[0].name == "a"


def test_arguments_that_are_no_object_are_left_to_the_tools_check() -> None:
    assert calls(fragment(0, "i", "a", "ls -l")) == [("a", {UNPARSED: "ls -l"})]
    assert calls(fragment(0, "i", "a", "[1]")) == [("a", {UNPARSED: "[1]"})]
    assert calls(fragment(0, "i", "a", "")) == [("a", {})]


def test_a_call_cut_by_the_limit_is_not_run() -> None:
    message, _ = read(delta(content="so"), delta("length", tool_calls=[fragment(0, "i", "a", '{"x')]))
    assert (message.stop, message.content) == ("length", (Text("so"),))


def test_words_between_calls_keep_their_order() -> None:
    reader = Reader("s")
    found = [
        event
        for chunk in (delta(content="a"), delta(tool_calls=[fragment(0, "i", "t", "{}")]), delta("stop", content="b"))
        for event in reader.feed(json.dumps(chunk).encode())
    ]
    assert found == [TextDelta(0, "a"), CallDelta(1, "i", "t", "{}"), TextDelta(2, "b")]


def test_content_as_a_list() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}, 7]
    assert read(delta("stop", content=parts))[0].content == (Thinking("hm"), Text("yes"))


def test_an_answer_that_was_not_streamed() -> None:
    whole = {"id": "r", "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    assert read(whole)[0].text == "yes"
    old = {"id": "r", "choices": [{"text": "yes", "finish_reason": "stop"}]}
    assert read(old)[0].text == "yes"


def test_a_refusal_is_said() -> None:
    assert read(delta("stop", refusal="I cannot."))[0].text == "I cannot."


@pytest.mark.parametrize(("finish", "stop"), [("max_tokens", "length"), ("eos", "stop"), ("tool_calls", "stop")])
def test_finish_reasons(finish: str, stop: Stop) -> None:
    assert read(delta(finish, content="x"))[0].stop == stop


def test_done_without_a_reason_is_whole_and_a_reason_without_done_too() -> None:
    assert read(delta(content="x"), b"[DONE]")[0].stop == "stop"
    assert read(delta("stop", content="x"))[0].stop == "stop"


@pytest.mark.req("MODEL-19")
def test_neither_reason_nor_done_is_cut() -> None:
    assert fails(delta(content="x")) is FailureKind.CUT
    assert fails() is FailureKind.CUT


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        ([b"[DONE]"], FailureKind.EMPTY),
        ([delta("stop", content="")], FailureKind.EMPTY),
        ([delta("content_filter", content="x")], FailureKind.FILTERED),
        ([delta("error", content="x")], FailureKind.SERVER),
        ([{"error": {"message": "overloaded", "code": 503}}], FailureKind.OVERLOADED),
        ([{"error": {"message": "Rate limit reached", "code": "429"}}], FailureKind.RATE_LIMIT),
        ([{"object": "error", "message": "prompt is too long", "code": 400}], FailureKind.OVERFLOW),
        ([b"upstream connect error: timed out"], FailureKind.TIMEOUT),
        ([b'{"choices": [{"del'], FailureKind.CUT),
    ],
)
def test_what_is_no_answer(chunks: list[dict[str, Any] | bytes], kind: FailureKind) -> None:
    assert fails(*chunks) is kind


def test_odd_chunks_do_no_harm() -> None:
    message, _ = read(
        b"7", b"{}", b'{"choices": null}', b'{"choices":[{"delta":{"content":"a\tb"},"finish_reason":"stop"}]}'
    )
    assert message.text == "a\tb"


def test_letters_cut_in_two_surrogates() -> None:
    assert read(b'{"choices":[{"delta":{"content":"\\ud83d\\ude00"},"finish_reason":"stop"}]}')[0].text == "😀"


def test_thinking_events_say_so() -> None:
    assert list(Reader("s").feed(json.dumps(delta(reasoning="hm")).encode())) == [ThinkingDelta(0, "hm")]
