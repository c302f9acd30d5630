"""The order of what is found."""

from __future__ import annotations

import pytest

from garra.core.memory_rank import (
    DAY_MS,
    Found,
    Weights,
    by_meaning,
    by_words,
    chosen,
    citation,
    decayed,
    evergreen,
    fused,
    merged,
    snippet,
)


def test_words_and_meaning_are_weighed() -> None:
    words = by_words([(1, -9.0), (2, -4.5), (3, -0.0)])
    assert words == {1: 0.9, 2: 0.45, 3: 0.0}
    assert by_words([]) == {}
    assert by_words([(1, 0.0), (2, -0.0)]) == {1: 0.35, 2: 0.35}
    assert by_words([(1, -1e-6)]) == {1: 0.35}
    meaning = by_meaning([(2, 0.95), (4, 0.5)], 0.75)
    assert meaning == {2: pytest.approx(0.8), 4: 0.0}
    both = merged(words, meaning, Weights(0.7, 0.3))
    assert both == {2: pytest.approx(0.695), 4: 0.0, 1: pytest.approx(0.27), 3: 0.0}
    assert merged(words, {}, Weights()) == words
    assert merged({1: 1.0}, {1: 1.0}, Weights(0.0, 0.0)) == {1: 0.0}


def test_places_are_fused() -> None:
    found = fused([1, 2], [2, 3], Weights(0.5, 0.5))
    assert max(found, key=lambda row: found[row]) == 2
    assert fused([1], [1], Weights(0.7, 0.3))[1] == pytest.approx(1.0)
    assert fused([], [], Weights(0.0, 0.0)) == {}


def test_the_diary_grows_old_and_the_rest_does_not() -> None:
    now = 400 * DAY_MS
    diary = Found(1, "memory/2026-05-02.md", "x", now - 30 * DAY_MS)
    assert not evergreen(diary)
    assert decayed(0.8, diary, now, 30) == pytest.approx(0.8 * 0.9)
    assert decayed(1.0, Found(2, "memory/2026-05-02.md", "x", DAY_MS), now, 30) == pytest.approx(0.8, abs=0.01)
    assert decayed(1.0, Found(2, "sessions/a.jsonl", "x", DAY_MS, "sessions"), now, 30) == 1.0
    for path in ("MEMORY.md", "memory/projects.md"):
        assert decayed(0.8, Found(3, path, "x", DAY_MS), now, 30) == 0.8
    assert decayed(0.8, diary, now, 0) == 0.8
    assert decayed(0.8, Found(4, "memory/2026-05-02.md", "x", 0), now, 30) == 0.8


def test_the_same_text_is_told_once_and_variety_can_be_wanted() -> None:
    rows = [
        (Found(1, "a", "the red car of Ann"), 0.9),
        (Found(2, "b", "the red car of Ann"), 0.8),
        (Found(3, "c", "the red car of Ann today"), 0.7),
        (Found(4, "d", "a recipe for soup"), 0.6),
        (Found(5, "e", ""), 0.1),
    ]
    assert [found.id for found, _ in chosen(rows, 2)] == [1, 3]
    assert [found.id for found, _ in chosen(rows, 2, 0.5)] == [1, 4]
    assert [found.id for found, _ in chosen(rows, 9, 0.1)] == [1, 3, 4, 5]
    assert chosen([], 3, 0.5) == []


def test_a_citation_names_the_lines() -> None:
    assert citation("MEMORY.md", 4, 4) == "MEMORY.md#L4"
    assert citation("MEMORY.md", 4, 9) == "MEMORY.md#L4-L9"


def test_a_snippet_is_bounded_and_shows_the_word() -> None:
    text = "a " * 600 + "needle " + "b " * 600
    assert snippet("short", ("x",)) == "short"
    found = snippet(text, ("nothing", "needle"))
    assert "needle" in found
    assert len(found) <= 700
    assert found[0] == found[-1] == "…"
    assert snippet(text, ()).startswith("a")
    assert snippet("b " * 600 + "needle", ("needle",)).endswith("needle")
