"""Long text loses its middle, terminal text its colours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.clip import clip, plain


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("plain", "plain"),
        ("a\r\nb", "a\nb"),
        ("10%\r20%\r100%\n", "100%\n"),
        ("10%\r20%\r", "20%"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq\x1b\\x", "x"),
        ("a\x00b\x08\x7f", "ab"),
        ("tab\tstays é 漢", "tab\tstays é 漢"),
    ],
)
def test_plain(said: str, read: str) -> None:
    assert plain(said) == read


def test_short_text_is_left_alone() -> None:
    assert clip("abc", 3) == ("abc", 0)


def test_long_text_keeps_head_and_tail() -> None:
    text, lost = clip("a" * 60 + "b" * 60, 30, "see the log")
    assert text.startswith("a" * 20 + "\n\n[90 of 120 characters left out here. see the log]\n\n")
    assert text.endswith("b" * 10)
    assert lost == 90
    assert text.isascii()
    assert "left out here]" in clip("x" * 9, 3)[0]


@given(st.text(max_size=300))
def test_plain_leaves_nothing_a_terminal_would_act_upon(text: str) -> None:
    assert "\x1b[" not in plain(text)
    assert "\r" not in plain(text)
