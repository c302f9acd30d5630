"""A proposal as a change of MEMORY.md: made, shown, taken back, and one person's part of it forgotten."""

from __future__ import annotations

from garra.core import dreams
from garra.core.dreaming import Bar, Candidate, Noted, Ranked, Theme
from garra.core.dreams import HEADING, Line
from garra.core.forgetting import Person
from garra.core.memory_chunks import markdown
from garra.core.taint import Mark


def line(text: str, owner: str = "", read: str = "") -> Line:
    return Line(text, text, "memory/2026-05-09.md", 4, owner, read, 0.8, {"relevance": 0.5})


STOVE, LISBON = line("The cabin has a stove"), line("Bob moves to Lisbon", "telegram:default:7", "the page x")


def test_a_line_tells_where_it_comes_from_and_nothing_in_that_ends_the_note() -> None:
    noted = Noted("The cabin has a stove", "memory/2026-05-09.md", 4, "2026-05-09", "a>b c", "a page --> x")
    made = dreams.of(Ranked(Candidate(noted), 0.8, {"relevance": 0.5004}), Bar())
    assert made.written == "- The cabin has a stove <!-- from memory/2026-05-09.md#L4 with abc that read a page - x -->"
    assert made.outside
    assert dreams.line(made.json) == made
    assert STOVE.written == "- The cabin has a stove <!-- from memory/2026-05-09.md#L4 -->"


def test_lines_come_in_below_their_day_and_go_again_without_a_trace() -> None:
    old = "# Memory\n\n- mine\n"
    new = dreams.added(old, [STOVE], "2026-05-10")
    assert new == f"# Memory\n\n- mine\n\n{HEADING}2026-05-10\n{STOVE.written}\n"
    both = dreams.added(new, [LISBON], "2026-05-10")
    assert both == f"{new}{LISBON.written}\n"
    more = dreams.added(both + "- written by hand\n", [line("A third thing")], "2026-05-10")
    assert more.splitlines()[-2:] == [line("A third thing").written, "- written by hand"]
    assert dreams.without(new, [STOVE]) == dreams.Taken(old, 1)
    assert dreams.without(both, [STOVE]).text.splitlines()[-1] == LISBON.written
    assert dreams.added("", [STOVE], "2026-05-10") == f"{HEADING}2026-05-10\n{STOVE.written}\n"
    assert dreams.without(f"{HEADING}2026-05-10\n{STOVE.written}\n", [STOVE]).text == ""
    assert dreams.without(old, [STOVE]) == dreams.Taken(old, 0, (STOVE.text,))


def test_what_stands_between_stays() -> None:
    text = f"{HEADING}2026-05-10\n{STOVE.written}\n{HEADING}2026-05-11\n{LISBON.written}\n"
    assert dreams.without(text, [STOVE]).text == f"{HEADING}2026-05-11\n{LISBON.written}\n"


def test_one_person_s_lines_go() -> None:
    memory = dreams.added("# Memory\n", [STOVE, LISBON], "2026-05-10")
    gone = dreams.forgotten(memory, Person("telegram", "7"))
    assert (gone.gone, "Lisbon" in gone.text, "stove" in gone.text) == (1, False, True)
    assert dreams.forgotten(memory, Person("telegram", "7", "work")) == dreams.Taken(memory, 0)
    assert dreams.forgotten(memory, Person("telegram", "8")).gone == 0
    assert dreams.theirs("telegram:default:7", Person("telegram", "7", "default"))
    assert not dreams.theirs("", Person("", ""))


def test_the_index_knows_whose_such_a_line_is() -> None:
    memory = dreams.added("# Memory\n- mine\n", [LISBON, STOVE], "2026-05-10")
    pieces = markdown(memory, "MEMORY.md")
    assert [(each.owner, each.marks) for each in pieces if "Lisbon" in each.text] == [
        ("telegram:default:7", (Mark("memory", "MEMORY.md"),))
    ]
    assert all(each.owner is None and not each.marks for each in pieces if "Lisbon" not in each.text)
    read = markdown(f"- mine\n{line('From a page', read='the page x').written}\n- mine again\n", "MEMORY.md")
    assert [(each.owner, bool(each.marks)) for each in read] == [(None, False), (None, True), (None, False)]


def test_a_change_and_a_night_can_be_read() -> None:
    assert dreams.diff("a\n", "a\nb\n", "MEMORY.md").splitlines()[-1] == "+b"
    assert dreams.diff("a\n", "a\n", "MEMORY.md") == ""
    told = dreams.page("2026-05-10", [Theme("cabin", 3, ("one", "two"))], "3 lines.", "It recurs.")
    assert told == "## 2026-05-10\n\n3 lines.\n- cabin: 3 times; one; two\n\nIt recurs.\n"
    assert dreams.page("2026-05-10", [], "3 lines.", "") == "## 2026-05-10\n\n3 lines.\n"
