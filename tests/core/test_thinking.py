"""Levels of thinking by their names and by other words."""

from __future__ import annotations

import pytest

from garra.core.thinking import LEVELS, SETTINGS, level, levels, unknown


@pytest.mark.parametrize(
    ("word", "meant"),
    [("High", "high"), (" max ", "xhigh"), ("adaptive", "medium"), ("on", "low"), ("none", "off"), ("hard", None)],
)
def test_words(word: str, meant: str | None) -> None:
    assert level(word) == meant


def test_each_setting_means_a_level() -> None:
    assert {level(word) for word in SETTINGS} == set(LEVELS)


def test_a_model_that_does_not_think_knows_one() -> None:
    assert levels(reasoning=False) == ("off",)
    assert levels(reasoning=True)[-1] == "xhigh"


def test_an_unknown_word_is_cut_and_the_levels_are_named() -> None:
    assert unknown("x" * 99) == f"unknown thinking level {'x' * 40!r}: use one of {', '.join(LEVELS)}"
