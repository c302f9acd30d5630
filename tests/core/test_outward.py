"""The last gate before a chat."""

from __future__ import annotations

import pytest

from garra.core.outward import Outward, outward


@pytest.mark.req("MSG-13", "LOOP-16")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>secret plan</think>Hello", "Hello"),
        ("Hello <thinking>the end is", "Hello"),
        ("Hello <thi", "Hello"),
        ("a < b and a<b", "a < b and a<b"),
        ('Ok.<tool_call>{"name": "exec"}</tool_call> Done.', "Ok. Done."),
        ('Ok.\n<function=exec>{"command": "ls"}', "Ok."),
        ('<invoke name="exec"><parameter name="command">ls</parameter></invoke>', ""),
        ("<final>Hello</final><|im_end|>", "Hello"),
        ("Hello<｜tool▁calls▁begin｜>", "Hello"),
        ('[TOOL_CALLS][{"name": "x"}]\nHello', "Hello"),
        ("Write `<tool_call>` or\n```xml\n<tool_call>x</tool_call>\n```", None),
        ("NO_REPLY", ""),
        ("**HEARTBEAT_OK**", ""),
        ("say NO_REPLY to it", None),
        ("\u200b \n", ""),
        ('{"name": "exec", "arguments": {"command": "ls"}}', ""),
        ('[{"type": "function", "function": {"name": "x", "arguments": "{}"}}]', ""),
        ('{"tool_calls": []}', ""),
        ('{"name": "Ada", "age": 36}', None),
        ('{"name": "Ada"}', None),
        ("[1, 2]", None),
        ("[]", None),
        ("{not json}", None),
        ("{" * 5_000 + "}", None),
        ('{"function": 1, "id": 2}', None),
    ],
)
def test_only_words_for_people_leave(text: str, left: str | None) -> None:
    assert outward(text).text == (text.strip() if left is None else left)


def test_what_an_answer_points_at() -> None:
    assert outward("[[reply_to_current]] Hi") == Outward("Hi", "", current=True)
    assert outward("Hi [[reply_to: 42 ]]") == Outward("Hi", "42")
    assert outward("[[audio_as_voice]]Hi") == Outward("Hi")
