"""Questions to a person: how they read, how an answer is understood, how they are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from garra.core.errors import UserError
from garra.core.questions import Record, answers, body, ended, heard, items, life_s, loaded, said, shown, stored

ONE = [{"question": "Which one?", "options": [{"label": "Red", "description": "warm"}, "Blue"]}]
MANY = [{"id": "colours", "question": "Which?", "options": ["Red", "Blue", "Green"], "multiSelect": True}]
TWO = [{"question": "First?", "options": ["Yes", "No"]}, {"questionId": "why", "question": "Why?", "header": "x" * 20}]


def record(raw: Any = ONE) -> Record:
    return Record("q1", items(raw), 1_000, 901_000, "main", "agent:main:main", "r1", "telegram:default:7")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("1", ("Red",)),
        ("2.", ("Blue",)),
        (" blue ", ("Blue",)),
        ("3", ("3",)),
        ("neither, really", ("neither, really",)),
        ("", ("",)),
    ],
)
def test_one_thing_is_chosen_by_number_label_or_in_words(text: str, chosen: tuple[str, ...]) -> None:
    assert heard(record(), text) == {"question_1": chosen}


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("1, 3", ("Red", "Green")),
        ("green, 3", ("Green",)),
        ("1, mauve", ("1, mauve",)),
        ("none of them", ("none of them",)),
        (",", (",",)),
    ],
)
def test_several_are_chosen_with_commas(text: str, chosen: tuple[str, ...]) -> None:
    assert heard(record(MANY), text) == {"colours": chosen}


def test_several_questions_are_answered_in_lines() -> None:
    assert heard(record(TWO), "1\nbecause") == {"question_1": ("Yes",), "why": ("because",)}
    assert heard(record(TWO), "no") == {"question_1": ("No",), "why": ("no",)}
    assert heard(record(TWO), "") == {"question_1": ("",), "why": ("",)}


def test_how_a_question_reads() -> None:
    assert shown(record()) == "**Which one?**\n1. Red: warm\n2. Blue\n\nAnswer with a number or in your own words."
    assert shown(record(MANY)).endswith("several with commas, or in your own words.")
    assert shown(record(TWO)).endswith("Answer with a line for each question: a number, or your own words.")
    assert shown(record([{"question": "Name?"}])) == "**Name?**\n\nAnswer in your own words."
    assert record(TWO).items[1].header == "x" * 12


@pytest.mark.parametrize(
    "raw",
    [
        [],
        "text",
        None,
        ONE * 4,
        [{"options": ["a"]}],
        [{"id": "Not So", "question": "?"}],
        [{"id": "a", "question": "?"}, {"id": "a", "question": "?"}],
        [{"question": "?", "options": [""]}],
        [{"question": "?", "options": list("abcde")}],
        ["text"],
    ],
)
def test_what_is_no_question(raw: Any) -> None:
    with pytest.raises(UserError):
        items(raw)


def test_answers_from_a_client() -> None:
    assert answers(record(), {"answers": {"question_1": ["Red"]}}) == {"question_1": ("Red",)}
    assert answers(record(), {"question_1": " own words "}) == {"question_1": ("own words",)}
    assert answers(record(MANY), {"colours": ["Red", "Blue"]}) == {"colours": ("Red", "Blue")}
    wrongs: list[Any] = [{}, {"question_1": []}, {"question_1": ["Red", "Blue"]}, "Red", {"answers": "Red"}]
    for wrong in wrongs:
        with pytest.raises(UserError):
            answers(record(), wrong)


def test_a_question_ends_once() -> None:
    over = ended(record(), "answered", {"question_1": ("Red",)}, "telegram:default:7")
    assert (over.status, over.by, over.pending) == ("answered", "telegram:default:7", False)
    assert ended(over, "expired") is over
    assert ended(record(), "expired").answers == {}
    assert said(over) == "(answer to your question) Which one? Red"


def test_a_record_is_kept_whole() -> None:
    asked = replace(record(), place=("telegram", "default", "7", ""))
    assert loaded(stored(asked)) == asked
    over = ended(asked, "answered", {"question_1": ("Red",)}, "someone")
    assert loaded(stored(over)) == over
    assert body(over)["answers"] == {"answers": {"question_1": ["Red"]}}
    assert "requester" not in body(over), "the wire does not tell whose it is"
    bare = loaded({"questions": ONE, "status": "nonsense"})
    assert (bare.status, bare.place) == ("expired", ("", "", "", ""))


def test_how_long_an_answer_is_waited_for() -> None:
    assert [life_s(each) for each in (None, 1, 99, 9_999)] == [900, 30, 99, 3_600]
