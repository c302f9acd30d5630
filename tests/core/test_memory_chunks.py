"""Pieces of files and of conversations."""

from __future__ import annotations

from itertools import pairwise

from garra.core.memory_chunks import MARKS, Line, markdown, some, spoken, turns, worth
from garra.core.taint import Mark

WEB = Mark("web", "https://a.example")


def test_a_heading_begins_a_piece_and_lines_are_counted() -> None:
    found = markdown("# One\nfirst\n\n## Two\nsecond\nthird\n", "MEMORY.md")
    assert [(each.start, each.end, each.text) for each in found] == [
        (1, 3, "# One\nfirst"),
        (4, 6, "## Two\nsecond\nthird"),
    ]
    assert markdown("\n\n", "MEMORY.md") == ()
    assert markdown("", "MEMORY.md") == ()


def test_long_sections_overlap() -> None:
    text = "\n".join(f"line {at} of a long section" for at in range(60))
    found = markdown(text, "MEMORY.md", size=100, overlap=20)
    assert len(found) > 3
    assert all(later.start <= before.end for before, later in pairwise(found))
    assert found[0].start == 1
    assert found[-1].end == 60
    apart = markdown(text, "MEMORY.md", size=100, overlap=0)
    assert all(later.start == before.end + 1 for before, later in pairwise(apart))
    small = markdown("one\ntwo\nthree " * 3, "MEMORY.md", size=3, overlap=50)
    assert small[-1].end == 7


def test_a_line_without_end_is_cut() -> None:
    found = markdown("word " * 2_000, "MEMORY.md")
    assert len(found) > 3
    assert {(each.start, each.end) for each in found} == {(1, 1)}


def test_what_a_conversation_left_keeps_where_it_is_from() -> None:
    text = (
        "- mine\n"
        "<!-- from a conversation that read a page -->\n- read\n"
        "<!-- from a conversation with telegram:default:42 -->\n- theirs\n"
        "<!-- from a conversation with telegram:default:42 that read a page -->\n"
        "# Theirs\n- theirs again\n"
        "<!-- from a conversation -->\n- mine again\n"
    )
    found = markdown(text, "memory/2026-05-02.md")
    told = Mark("memory", "memory/2026-05-02.md")
    assert [(each.text.splitlines()[-1], each.owner, each.marks) for each in found] == [
        ("- mine", None, ()),
        ("- read", None, (told,)),
        ("- theirs", "telegram:default:42", ()),
        ("- theirs again", "telegram:default:42", (told,)),
        ("- mine again", None, ()),
    ]


def test_a_turn_is_what_was_said_and_the_last_answer() -> None:
    found = turns(
        [
            Line(3, "assistant", "before anybody spoke", 5),
            Line(4, "user", "Where is the key?", 10, "telegram:a:1"),
            Line(5, "assistant", "I look."),
            Line(6, "tool", "a page", marks=(WEB,)),
            Line(7, "assistant", "Under the pot."),
            Line(8, "user", "", 11),
            Line(9, "user", "thanks", 12),
        ]
    )
    assert [(each.start, each.end, each.text, each.owner, each.marks) for each in found] == [
        (3, 3, "Assistant: before anybody spoke", None, ()),
        (4, 7, "User: Where is the key?\nAssistant: Under the pot.", "telegram:a:1", (WEB,)),
        (9, 9, "User: thanks", "", (WEB,)),
    ]
    assert turns([], [WEB]) == ()
    assert turns([Line(1, "user", "x")], [WEB])[0].marks == (WEB,)


def test_of_many_marks_the_first_and_the_newest_are_kept() -> None:
    many = [Mark("web", str(at)) for at in range(20)]
    assert some(many) == (many[0], *many[-MARKS + 1 :])


def test_small_talk_is_worth_no_vector() -> None:
    assert [worth(text) for text in ("User: ok thanks", "ok!", "好的", "User: 谢谢\nAssistant: 不客气")] == [
        True, False, False, False,
    ]  # fmt: skip
    assert worth("User: Elmira plays the cello\nAssistant: Noted.")
    assert spoken("User: a\nAssistant: b") == "a"
    assert spoken("Assistant: b") == "Assistant: b"
    assert spoken("- a fact") == "- a fact"
    assert spoken("- a\nAssistant: b") == "- a\nAssistant: b"
