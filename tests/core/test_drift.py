"""What changed in a file is told in brief."""

from __future__ import annotations

from garra.core.drift import CHARS, LARGE, LINES, note


def test_added_and_removed_lines_are_told() -> None:
    said = note(
        "MEMORY.md", "# Memory\n\nlikes figs\nlives in Ulm\n", "# Memory\nlikes figs\nlives in Bonn\nhas a dog\n"
    )
    assert said == (
        "MEMORY.md was changed after this conversation began (+ added, - removed):\n"
        "- lives in Ulm\n+ lives in Bonn\n+ has a dog"
    )


def test_blank_lines_and_ends_are_no_change() -> None:
    assert note("MEMORY.md", "a\nb", "a \n\nb\n") == ""
    assert note("MEMORY.md", None, " \n") == ""


def test_a_new_file_is_told_and_one_that_is_gone() -> None:
    assert note("MEMORY.md", None, "a").endswith("\n+ a")
    assert "removed after this conversation began" in note("MEMORY.md", "a", None)


def test_much_is_cut() -> None:
    said = note("MEMORY.md", "", "\n".join(f"line {number}" for number in range(100)))
    assert f"+ line {LINES - 1}\n[… more was changed; read MEMORY.md]" in said
    assert f"line {LINES}" not in said
    assert len(note("MEMORY.md", "", "x" * 9_000)) < CHARS + 200
    huge = [str(number) for number in range(LARGE + 1)]
    assert note("MEMORY.md", "\n".join(huge), "\n".join([*huge, "new"])).endswith("\n+ new")
