"""Which slash words are commands, slips of the pen, and text."""

from __future__ import annotations

import pytest

from garra.faces.tui import commands


@pytest.mark.parametrize(
    ("text", "meant"),
    [("/stauts", "status"), ("/sesions", "sessions"), ("/Modle x/y", "model"), ("/hlep", "help"), ("/whoam", "whoami")],
)
def test_a_slip_is_named(text: str, meant: str) -> None:
    word = text[1:].partition(" ")[0].lower()
    assert commands.mistyped(text) == f"no command /{word}; did you mean /{meant}"


@pytest.mark.parametrize(
    "text", ["/foo", "/etc/hosts", "/tmp", "/status", "/whoami", "/?", "status", "/", "/home/sesions", "a /sesions"]
)
def test_other_words_are_text_or_commands(text: str) -> None:
    assert commands.mistyped(text) == ""


def test_how_far_two_words_are_apart() -> None:
    words = (("", ""), ("ab", ""), ("ab", "ba"), ("abc", "abd"), ("stauts", "status"), ("cat", "dog"))
    assert [commands.apart(one, other) for one, other in words] == [0, 2, 1, 1, 1, 3]
