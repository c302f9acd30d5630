"""A dream: lines that are proposed for MEMORY.md, as a change that can be looked at, made, and taken back.

Each line tells at its end where it stood, whose words it is where they are not the owner's, and what from outside had
been read: `- the cabin has a stove <!-- from memory/2026-11-28.md#L4 -->`. By this note it is found again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from garra.core.dreaming import Bar, Ranked, Theme, clipped
from garra.core.forgetting import Person
from garra.core.memory_chunks import source_of
from garra.core.value import frozen

HEADING: Final = "## From dreams, "
"""Followed by the day."""
READ: Final = 200
"""Characters of what had been read that a line tells."""
STATES: Final = ("proposed", "applied", "refused", "undone")


@frozen
class Line:
    """One proposed line. `path` and `line` tell where it stands, `parts` what its score is made of."""

    digest: str
    text: str
    path: str
    line: int
    owner: str
    read: str
    score: float
    parts: Mapping[str, float]

    @property
    def outside(self) -> bool:
        return bool(self.owner or self.read)

    @property
    def written(self) -> str:
        """The line as MEMORY.md gets it."""
        with_ = f" with {self.owner}" if self.owner else ""
        read = f" that read {self.read}" if self.read else ""
        return f"- {self.text} <!-- from {self.path}#L{self.line}{with_}{read} -->"

    @property
    def json(self) -> dict[str, Any]:
        return {
            "digest": self.digest, "text": self.text, "path": self.path, "line": self.line, "owner": self.owner,
            "read": self.read, "score": self.score, "parts": dict(self.parts), "written": self.written,
        }  # fmt: skip


def of(row: Ranked, bar: Bar) -> Line:
    """A ranked candidate as it is proposed."""
    noted = row.candidate.noted
    read = " ".join(noted.read.replace("--", "- ").replace(">", " ").split())[:READ].strip()
    owner = "".join(noted.owner.replace(">", "").split())
    parts = {name: round(part, 3) for name, part in row.parts.items()}
    text = clipped(noted.text, bar.tokens)
    return Line(row.candidate.digest, text, noted.path, noted.line, owner, read, row.score, parts)


def line(stored: Mapping[str, Any]) -> Line:
    """A line as it was stored. Raises KeyError for what is none."""
    names = ("digest", "text", "path", "line", "owner", "read", "score", "parts")
    return Line(*(stored[name] for name in names))


def added(memory: str, lines: Iterable[Line], day: str) -> str:
    """MEMORY.md with the lines, below the heading of the day on which they come in. Nothing else of it changes."""
    new = [each.written for each in lines]
    rows = memory.rstrip().splitlines()
    heading = f"{HEADING}{day}"
    if heading in rows:
        at = rows.index(heading) + 1
        while at < len(rows) and source_of(rows[at]) is not None:
            at += 1
        rows[at:at] = new
    else:
        rows += [*([""] if rows else []), heading, *new]
    return "\n".join(rows) + "\n"


@frozen
class Taken:
    """A file without some lines. `missing` are those that are no longer in it as they were written."""

    text: str
    gone: int
    missing: tuple[str, ...] = ()


def without(memory: str, lines: Iterable[Line]) -> Taken:
    """MEMORY.md without the lines, and without a heading of dreams that has none left."""
    rows, missing, gone = memory.splitlines(), [], 0
    for each in lines:
        if each.written in rows:
            rows.remove(each.written)
            gone += 1
        else:
            missing.append(each.text)
    return Taken(_tidy(rows) if gone else memory, gone, tuple(missing))


def forgotten(memory: str, who: Person) -> Taken:
    """MEMORY.md without what dreams took from the words of one person."""
    kept = [row for row in memory.splitlines() if (told := source_of(row)) is None or not theirs(told[1], who)]
    gone = len(memory.splitlines()) - len(kept)
    return Taken(_tidy(kept) if gone else memory, gone)


def theirs(owner: str, who: Person) -> bool:
    """Whether `channel:account:sender` is this person."""
    channel, _, rest = owner.partition(":")
    account, _, sender = rest.partition(":")
    same = (channel, sender) == (who.channel, "".join(who.sender.split()))
    return bool(owner) and same and who.account in ("", account)


def _tidy(rows: list[str]) -> str:
    """The rows as a file: a heading of dreams above nothing goes, with the blank row before it."""
    out: list[str] = []
    for at, row in enumerate(rows):
        following = next((each for each in rows[at + 1 :] if each.strip()), "#")
        if row.startswith(HEADING) and following.startswith("#"):
            if out and not out[-1].strip():
                out.pop()
            continue
        out.append(row)
    return "\n".join(out).rstrip() + "\n" if any(row.strip() for row in out) else ""


def diff(before: str, after: str, name: str) -> str:
    """The change as `diff -u` shows it; empty for none."""
    import difflib  # noqa: PLC0415 - seldom needed, and large

    rows = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", n=1, lineterm="")
    return "\n".join(rows)


def page(day: str, found: Iterable[Theme], counts: str, thought: str) -> str:
    """What DREAMS.md is told of one night."""
    rows = [f"## {day}", "", counts]
    rows += [f"- {theme.word}: {theme.count} times; {'; '.join(theme.texts)}" for theme in found]
    return "\n".join([*rows, *(["", thought] if thought else []), ""])
