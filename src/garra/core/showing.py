"""How a text that somebody else wrote is shown to a person who decides on it: whole, with nothing hidden in it."""

from __future__ import annotations

from itertools import groupby
from typing import Final, Literal

BLANKS, ENDS, FEW, SAME, LONG = 40, 3, 12, 80, 600
"""The most of each that a text is shown with as it is: blanks, line ends, unseen ones, of one letter; and in all."""
UNSEEN: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0"
"""Letters by their kind, of which nothing is to be seen; with those that choose how the letter before them looks."""


def shown(text: str) -> str:
    """`text` as a person is shown it: whole, in its lines, and so that nothing hides in it.

    What cannot be seen stands as Python writes it. A long run of blanks, line ends, unseen characters or of one letter
    would push what follows out of sight: it stands as a count in ⟨⟩.
    """
    return "".join(_run(kind, "".join(run)) for kind, run in groupby(text, _kind))


def measured(text: str) -> str:
    """How long `text` is, in a line; empty where that is seen at once."""
    if len(text) <= LONG:
        return ""
    return f"all of it is {len(text):,} characters, {text.count(chr(10)) + 1:,} lines: read it to its end"


def _kind(letter: str) -> Literal["seen", "blank", "unseen"]:
    if letter in " \t\n":
        return "blank"
    selects = "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"
    return "unseen" if selects or letter in UNSEEN or not letter.isprintable() else "seen"


def _run(kind: Literal["seen", "blank", "unseen"], run: str) -> str:
    if kind == "seen":
        return run if len(run) < SAME else "".join(_same("".join(each)) for _, each in groupby(run))
    if kind == "unseen":
        rest = f"⟨{len(run) - 1:,} more that cannot be seen⟩"
        return _escapes(run) if len(run) <= FEW else _escapes(run[0]) + rest
    ends = run.count("\n")
    if ends <= ENDS and max(map(len, run.split("\n"))) <= BLANKS:
        return run
    if not ends:
        return f" ⟨{len(run):,} blanks⟩ "
    blanks = f" and {len(run) - ends:,} blanks" if len(run) > ends else ""
    return f"\n⟨{ends:,} line ends{blanks}⟩\n"


def _same(run: str) -> str:
    return run if len(run) < SAME else f"⟨{run[0]} × {len(run):,}⟩"


def _escapes(text: str) -> str:
    return text.encode("unicode_escape").decode()
