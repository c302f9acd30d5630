"""The corpus itself: how large it is, that every class of flaw is tried, and that every way in has its carrier."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.hostile.cases import CORPUS, EXPECTED, classes, corpus

LEAST = 300
LEAST_OF_A_CLASS = 4


def test_it_is_large_and_each_case_is_its_own() -> None:
    cases = corpus()
    assert len(cases) >= LEAST
    assert [name for name, times in Counter(case.id for case in cases).items() if times > 1] == []
    assert {case.expected for case in cases} == set(EXPECTED)


def test_every_class_is_tried_and_said_in_words() -> None:
    tried = Counter(case.kind for case in corpus())
    assert len(classes()) == 18
    assert set(tried) == set(classes())
    assert not [kind for kind, times in tried.items() if times < LEAST_OF_A_CLASS]
    assert all(words.endswith(".") for words in classes().values())


def test_every_way_in_is_taken_by_a_test() -> None:
    tests = "".join(file.read_text() for file in sorted(Path(__file__).parent.glob("test_*.py")))
    ways = {file.stem for file in CORPUS.glob("*.toml")} - {"classes"}
    assert {case.way for case in corpus()} == ways
    assert not [way for way in ways if f'of("{way}")' not in tests]
