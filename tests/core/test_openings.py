"""What a new conversation is told of the diary: bounded, the newest, and no words of others."""

from __future__ import annotations

from garra.core.openings import HEAD, Limits, recent
from garra.core.taint import Mark

TODAY, BEFORE = "memory/2026-05-10.md", "memory/2026-05-09.md"


def test_the_older_page_comes_first_and_nothing_is_told_of_nothing() -> None:
    found = recent([(TODAY, "- a new stove"), (BEFORE, "- an old roof\n")], Limits())
    assert found is not None
    assert found.text == f"{HEAD}\n\n{BEFORE}:\n- an old roof\n\n{TODAY}:\n- a new stove"
    assert found.marks == ()
    assert recent([(TODAY, "\n")], Limits()) is None
    assert recent([], Limits()) is None


def test_words_of_others_are_left_out_and_marks_are_kept() -> None:
    page = (
        "- mine\n<!-- from a conversation with irc:a:b -->\n- Bob's\n<!-- from a conversation that read x -->\n- read\n"
    )
    found = recent([(TODAY, page)], Limits())
    assert found is not None
    assert "Bob" not in found.text
    assert "- mine" in found.text
    assert found.marks == (Mark("memory", TODAY),)


def test_pages_keep_to_their_bounds_and_the_newest_lines_stay() -> None:
    page = "\n".join(f"- line {at} of the day" for at in range(90))
    found = recent([(TODAY, page), (BEFORE, page)], Limits(page=200, total=320))
    assert found is not None
    assert len(found.text) < 320 + len(HEAD) + 80
    assert found.text.endswith("- line 89 of the day")
    assert "…- line" in found.text
    one = recent([(TODAY, "x" * 900)], Limits(page=200))
    assert one is not None
    assert one.text.endswith("…" + "x" * 199)
    few = recent([(TODAY, page), (BEFORE, page)], Limits(page=300, total=320))
    assert few is not None
    assert BEFORE not in few.text
