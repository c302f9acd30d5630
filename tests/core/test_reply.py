"""Thoughts never show, however the words are cut; silence is a value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.messages import Assistant, Image, Text, Thinking, ToolCall
from garra.core.reply import Nothing, Reply, Shown, Silence, State, answer, broken, settled, split, step


def arrive(*deltas: str) -> tuple[str, str]:
    """(visible, thought) after the words came in these pieces, as one who follows the updates has them."""
    state, text, thought = State(), "", ""
    for delta, last in [*((delta, False) for delta in deltas), ("", True)]:
        state, shown = step(state, delta, last=last)
        if shown.reset:
            text, thought = "", thought + text
        text += shown.text
        thought += shown.thought
        assert state.shown == text
    return text, thought


@pytest.mark.parametrize(
    ("text", "visible", "thought"),
    [
        ("hello", "hello", ""),
        ("<think>a</think>\n\nb", "b", "a"),
        ("<Thinking>a</thinking>b<thought>c</thought>d", "bd", "ac"),
        ("x <think>open", "x ", "open"),
        ("half</think>\nwhole", "whole", "half"),
        ("<think>a</think>b</think>c", "bc", "a"),
        ("`<think>` is a tag", "`<think>` is a tag", ""),
        ("```\n<think>\n```\nx", "```\n<think>\n```\nx", ""),
        ("~~~\n```<think>\n~~~\n<think>y", "~~~\n```<think>\n~~~\n", "y"),
        ("one ` tick\n\n<think>y</think>z", "one ` tick\n\nz", "y"),
        ("````\n```\n\n<think>\n````", "````\n```\n\n<think>\n````", ""),
        ("a < b and c > d <b>", "a < b and c > d <b>", ""),
        ("ends with <thi", "ends with <thi", ""),
        ("``a`` <think>`b", "``a`` ", "`b"),
    ],
)
@pytest.mark.req("LOOP-16")
def test_tags(text: str, visible: str, thought: str) -> None:
    assert split(text) == (visible, thought)
    assert arrive(*text) == (visible, thought)


PIECES = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "think", ">", "`", "```", "\n", "\n\n", "a ", "b", "~~~", "</", "  "]),
    max_size=20,
)


@pytest.mark.req("LOOP-16")
@given(PIECES, st.data())
def test_cuts_make_no_difference(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    deltas = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert arrive(*deltas)[0] == arrive(text)[0] == split(text)[0]


def test_nothing_new_is_nothing_shown() -> None:
    assert step(State(), "")[1] == Shown()


def test_what_is_stored() -> None:
    image = Image("image/png", "")
    message = Assistant((Text("<think> a </think>\n\nb"), Text("<think>c"), Text(""), image), 1)
    assert settled(message).content == (Thinking("a"), Text("b"), Thinking("c"), image)
    plain = Assistant((Text("b"),), 1)
    assert settled(plain) is plain


def test_what_is_kept_of_a_cut_answer() -> None:
    message = Assistant((Thinking("a", "sig"), Text("b"), ToolCall("1", "x", {}), Image("", "")), 1)
    assert broken(message).content == (Thinking("a"), Text("b"))


@pytest.mark.parametrize(
    ("text", "quiet", "expected"),
    [
        ("hello", "never", Reply("hello")),
        ("  ", "never", Nothing()),
        ("<think>x</think>", "group", Nothing()),
        ("NO_REPLY", "group", Silence()),
        ("**NO_REPLY**.", "group", Silence()),
        ("NO_REPLY", "never", Nothing()),
        ("NO_REPLY", "heartbeat", Silence()),
        ("HEARTBEAT_OK", "group", Nothing()),
        ("HEARTBEAT_OK", "heartbeat", Silence(heartbeat=True)),
        ("HEARTBEAT_OK all is well", "heartbeat", Silence(heartbeat=True)),
        ("All well. HEARTBEAT_OK", "heartbeat", Silence(heartbeat=True)),
        ("HEARTBEAT_OK " + "x" * 301, "heartbeat", Reply("x" * 301)),
        ("The disk is full", "heartbeat", Reply("The disk is full")),
        ("say NO_REPLY to be silent", "group", Reply("say NO_REPLY to be silent")),
    ],
)
def test_answers(text: str, quiet: str, expected: object) -> None:
    assert answer(text, quiet) == expected  # type: ignore[arg-type]
