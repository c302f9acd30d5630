"""The marks of outside text: how they add up, how they are stored, what they say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core import taint
from garra.core.taint import CLEAN, FIRST, NEWEST, UNREADABLE, Mark, Marks

PAGE = Mark("web", "https://example.org/a")
MAIL = Mark("mail", "ann@example.org")


def pages(count: int) -> Marks:
    marks = CLEAN
    for number in range(count):
        marks = taint.add(marks, [Mark("web", f"https://example.org/{number}")])
    return marks


def test_a_turn_that_read_nothing_has_no_marks() -> None:
    assert taint.add(CLEAN, ()) is CLEAN
    assert taint.because(CLEAN) == ()
    assert taint.brief(CLEAN) == ""
    assert CLEAN.named == ()


def test_the_first_and_the_newest_are_named_and_the_others_counted() -> None:
    marks = pages(20)
    wheres = [mark.where.rsplit("/", 1)[1] for mark in marks.named]
    assert wheres == ["0", "1", "2", "15", "16", "17", "18", "19"]
    assert (marks.more, marks.count) == (12, 20)
    assert taint.because(marks)[-1] == "and 12 more from outside"
    assert taint.because(marks)[0] == "this turn read https://example.org/0"
    assert taint.brief(marks).endswith("/17 and 17 more")


def test_what_is_read_again_is_named_once_and_counts_as_text() -> None:
    marks = pages(5)
    again = taint.add(marks, [Mark("web", "https://example.org/3")])
    assert [mark.where[-1] for mark in again.newest] == ["4", "3"]
    once = taint.add(again, [Mark("web", "https://example.org/0")])
    assert (once.named, once.more) == (again.named, 0)
    assert len({marks.digest, again.digest, once.digest}) == 3
    assert once.count == 7


def test_the_digest_depends_on_the_order() -> None:
    one, other = taint.add(taint.add(CLEAN, [PAGE]), [MAIL]), taint.add(taint.add(CLEAN, [MAIL]), [PAGE])
    assert one.digest != other.digest
    assert one == taint.add(taint.add(CLEAN, [PAGE]), [MAIL])


def test_two_histories_come_together() -> None:
    one, many = taint.add(CLEAN, [PAGE]), pages(20)
    both = taint.merge(one, many)
    assert both.count == 21
    assert PAGE in both.named
    assert both.more + len(both.named) == 21
    assert taint.merge(CLEAN, one) is one
    assert taint.merge(one, CLEAN) is one


@given(st.lists(st.lists(st.sampled_from([Mark("web", str(n)) for n in range(20)]), max_size=3), max_size=40))
def test_marks_are_bounded_and_none_is_forgotten(texts: list[list[Mark]]) -> None:
    marks = CLEAN
    for text in texts:
        marks = taint.add(marks, text)
    assert len(marks.first) <= FIRST
    assert len(marks.newest) <= NEWEST
    assert marks.count == sum(1 for text in texts if text)
    assert bool(marks.named) == bool(marks.count)
    assert marks.more + len(marks.named) >= len({mark for text in texts for mark in text}) or marks.more > 0


def test_marks_are_stored_with_a_message_and_read_again() -> None:
    meta = json.loads(json.dumps(taint.stored([PAGE, MAIL, PAGE])))
    assert meta == {"marks": [{"source": "web", "where": PAGE.where}, {"source": "mail", "where": MAIL.where}]}
    assert taint.of(meta) == (PAGE, MAIL)
    assert taint.stored([]) == {}
    assert taint.of({"other": 1}) == ()
    many = taint.of(taint.stored(Mark("web", str(number)) for number in range(90)))
    assert (len(many), many[0].where, many[-1].where) == (20, "0", "89")


@pytest.mark.parametrize("rows", ["x", None, {"source": "web"}, [1], [{"source": "nobody"}], [{"where": "x"}]])
def test_a_mark_that_cannot_be_read_is_a_mark(rows: object) -> None:
    assert taint.of({"marks": rows}) == (UNREADABLE,)


def test_a_mark_in_words_is_one_plain_line() -> None:
    assert taint.named(MAIL) == "a mail of ann@example.org"
    assert taint.named(Mark("file", "a\nb\u202ec.pdf")) == "the file a b c.pdf"
    assert taint.named(Mark("web", "")) == "somewhere"
    assert len(taint.named(Mark("web", "x" * 9_000))) == taint.WHERE


def test_a_row_is_told_in_one_line() -> None:
    row = {**taint.stored([PAGE, MAIL]), "more": 2, "texts": 4}
    assert taint.told(row) == "https://example.org/a, a mail of ann@example.org and 2 more"
    assert taint.told(taint.stored([PAGE])) == "https://example.org/a"
    nothing: tuple[object, ...] = (None, {}, "x")
    assert [taint.told(other) for other in nothing] == ["", "", ""]


def test_what_a_call_does_is_said() -> None:
    assert taint.does(["sends", "configures"]) == (
        "it sends to somebody outside this chat; it changes the configuration"
    )
    assert taint.does(["flies"]) == "flies"
    said = taint.refused("nobody can be asked here", ["schedules"], taint.add(CLEAN, [PAGE]))
    assert said.startswith("nobody can be asked here. This turn read text from outside (https://example.org/a), so")
    assert "it makes a job that runs later" in said


def test_always_means_this_tool_here_and_this_text() -> None:
    marks = taint.add(CLEAN, [PAGE])
    name = taint.covered("agent:main:main", "message", marks)
    assert name == taint.covered("agent:main:main", "message", taint.add(CLEAN, [PAGE]))
    others = {
        taint.covered("agent:main:main", "message", taint.add(marks, [PAGE])),
        taint.covered("agent:main:main", "exec", marks),
        taint.covered("agent:main:other", "message", marks),
    }
    assert name not in others
    assert len(others) == 3
    assert taint.remembers("message") == "message in this conversation, until it reads more text from outside"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("MEMORY.md", True),
        ("./memory.MD", True),
        ("/ws/AGENTS.md", True),
        ("notes/../SOUL.md", True),
        ("../../HEARTBEAT.md", True),
        ("memory/2026-01-01.md", True),
        ("Memory/x", True),
        ("SKILLS/mail/run.sh", True),
        ("skills", True),
        (".agents/skills/x", True),
        ("deep/er/SKILL.md", True),
        ("deep/HOOK.md", True),
        (".", True),
        ("/real/elsewhere/MEMORY.md", True),
        ("/real/elsewhere/memory/x.md", True),
        ("/real/elsewhere/notes.md", False),
        ("notes.md", False),
        ("docs/AGENTS.md", False),
        ("docs/memory/x.md", False),
        ("/ws/docs/MEMORY.md", False),
    ],
)
def test_the_files_an_agent_goes_by(path: str, *, found: bool) -> None:
    assert taint.instructs(path, "/ws/") is found


def test_what_people_said_themselves_is_told_from_the_rest() -> None:
    said = taint.add(CLEAN, [Mark("person", "Ann on telegram")])
    assert taint.only_people(CLEAN)
    assert taint.only_people(said)
    assert not taint.only_people(taint.add(said, [PAGE]))
    assert taint.merge(said, pages(20)).sources == {"person", "web"}


def test_a_lasting_yes_is_for_what_the_call_was_aimed_at() -> None:
    assert taint.aim({"content": "x", "path": "USER.md"}) == "path=USER.md"
    assert taint.aim({"text": "x", "to": "telegram:1", "path": ""}) == "to=telegram:1"
    assert taint.aim({"content": "x"}) == ""
    one = taint.covered("agent:main:main", "write", CLEAN, "path=USER.md")
    assert one != taint.covered("agent:main:main", "write", CLEAN, "path=AGENTS.md")
    assert taint.remembers("write", "path=USER.md").startswith("write with path=USER.md in this conversation")
