"""Who answers instead: told once for each change."""

from __future__ import annotations

from garra.core.failover import Attempt
from garra.runs.notices import notice, told

LIMITED = [Attempt("a", "m", "server_error"), Attempt("a", "m", "rate_limit"), Attempt("b", "n", "success")]


def test_a_person_hears_once_that_another_answers_and_once_that_it_is_over() -> None:
    first = notice({}, "a/m", "b/n", LIMITED)
    assert first is not None
    assert first.text == "↪️ Model fallback: b/n answers (selected a/m; too many requests)"
    assert notice(first.changes, "a/m", "b/n", LIMITED) is None
    assert told(first.changes, "a/m") == " (now b/n answers: too many requests)"
    assert told(first.changes, "c/o") == told({}, "a/m") == ""
    over = notice(first.changes, "a/m", "a/m", [])
    assert over is not None
    assert told(over.changes, "a/m") == ""
    assert over.text == "↪️ Model fallback ended: a/m answers again (was b/n)"
    assert notice(over.changes, "a/m", "a/m", []) is None


def test_a_model_that_was_not_even_asked() -> None:
    found = notice({}, "a/m", "b/n", [Attempt("b", "n", "success")])
    assert found is not None
    assert found.text.endswith("(selected a/m; it rests after a fault)")


def test_where_another_was_chosen_since_nothing_is_said_of_the_old() -> None:
    first = notice({}, "a/m", "b/n", LIMITED)
    assert first is not None
    over = notice(first.changes, "c/o", "c/o", [])
    assert over is not None
    assert over.text == ""
