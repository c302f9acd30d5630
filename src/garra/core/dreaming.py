"""Dreaming: which lines of the diary, and of what was said, have proved worth keeping for good.

Three phases, all plain functions: light gathers the lines and takes those that say the same together, REM finds what
many of them are about, deep weighs each and says of every one why it is proposed, or why not. Nothing here writes.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final

from garra.core.memory_chunks import SAID, origin_of, source_of, spoken, worth
from garra.core.memory_words import runs, split, terms, tokens
from garra.core.value import frozen, replace

DAY_MS: Final = 86_400_000
WEIGHTS: Final[Mapping[str, float]] = {
    "relevance": 0.30, "frequency": 0.24, "diversity": 0.15, "recency": 0.15, "consolidation": 0.10, "richness": 0.06,
}  # fmt: skip
BOOSTS: Final[Mapping[str, tuple[float, float]]] = {"light": (0.02, 0.06), "rem": (0.03, 0.09)}
"""What each meeting in a phase adds, and the most that all of them do; both fade as a line's age takes its recency."""
WRITTEN: Final = 0.5
"""How well a line fits that was written down and never looked for."""
OFTEN, WAYS, DAYS, IDEAS = 10, 5, 5, 6
"""So many signals, different questions, days and ideas count in full."""
SAME: Final = 0.8
"""From which share of common words on a line is one that stands there already."""
LEAST: Final = 4
"""Tokens of a line that says enough."""
THEMES: Final = 5
SPOKEN: Final = "sessions/"
"""How the path begins of what was said in a conversation."""
MANAGED: Final = frozenset(("light sleep", "rem sleep", "deep sleep"))
"""Headings of blocks that another program's dreams left in a diary."""


@frozen
class Bar:
    """What a line must reach to be proposed. `half_life` and `max_age` in days, `tokens` of a line that are kept,
    `most` lines in one proposal.
    """

    score: float = 0.75
    recalls: int = 3
    queries: int = 3
    half_life: float = 14.0
    max_age: float = 30.0
    tokens: int = 160
    most: int = 10


@frozen
class Recall:
    """How often a line was found by searches: `score` is the sum of how well it fitted, each from 0 to 1; `queries` are
    digests of the different questions, `days` those on which it was found; `light` and `rem` count the phases that met
    it, the last time `phase_at`.
    """

    digest: str
    path: str
    line: int
    count: int = 0
    score: float = 0.0
    queries: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    last_at: int = 0
    light: int = 0
    rem: int = 0
    phase_at: int = 0


@frozen
class Noted:
    """One line as it stands somewhere. `day` is its diary's; `owner` whose words it holds, empty for the owner's own;
    `read` what from outside had been read when it was written, empty for nothing.
    """

    text: str
    path: str
    line: int
    day: str = ""
    owner: str = ""
    read: str = ""

    @property
    def outside(self) -> bool:
        return bool(self.owner or self.read)


@frozen
class Candidate:
    """A line with all that speaks for it: the days of the diaries it stands in, and how it was found."""

    noted: Noted
    days: tuple[str, ...] = ()
    recall: Recall | None = None

    @property
    def digest(self) -> str:
        return digest(self.noted.text)

    @property
    def signals(self) -> int:
        """How often it was written down or found."""
        return len(self.days) + (self.recall.count if self.recall else 0)


@frozen
class Ranked:
    """A candidate with its score from 0 to 1 and what it is made of. `why` tells what keeps it out; empty: nothing."""

    candidate: Candidate
    score: float
    parts: Mapping[str, float]
    why: tuple[str, ...] = ()


@frozen
class Theme:
    """A word that many lines have, with how many, and some of them."""

    word: str
    count: int
    texts: tuple[str, ...]


@cache
def _dressed() -> re.Pattern[str]:
    return re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")


@cache
def _comment() -> re.Pattern[str]:
    return re.compile(r"<!--.*?-->|<!--|-->")


def digest(text: str) -> str:
    """Names a line by its words alone: case, signs and what dresses a list do not count."""
    return hashlib.blake2b(split(text).encode("utf-8", "replace"), digest_size=12).hexdigest()


def diary_day(path: str) -> str:
    """The day of a diary by its path, such as `2026-05-02`; empty for what is none."""
    found = _diary().fullmatch(path)
    return found[1] if found else ""


@cache
def _diary() -> re.Pattern[str]:
    return re.compile(r"memory/(\d{4}-\d{2}-\d{2})[^/]*\.md")


def noted(text: str, path: str, first: int = 1) -> tuple[Noted, ...]:
    """The lines of a diary that say something, each with where it stands; `text` begins with line `first`. What is
    indented below a line belongs to it.
    """
    day = diary_day(path)
    found: list[Noted] = []
    for number, owner, read, words in _entries(text, first):
        line = plain(words)
        if tokens(line) >= LEAST and worth(line) and not line.endswith(("?", "？")):
            found.append(Noted(line, path, number, day, owner, read))
    return tuple(found)


def plain(text: str) -> str:
    """One line without what dresses it, and without anything that a file's readers would take for a note."""
    bare = _dressed().sub("", text.strip(), count=1) if _dressed().match(text.strip()) else text.strip()
    return " ".join(_comment().sub(" ", bare).split()).lstrip("#> ").strip()


Entry = tuple[int, str, str, str]


def _entries(text: str, first: int) -> Iterator[Entry]:
    """(number, owner, read, words) of each line that is no heading and no code."""
    owner = read = ""
    fenced = managed = False
    here: Entry | None = None
    for number, raw in enumerate(text.splitlines(), first):
        line = raw.strip()
        if here is not None and line and raw[:1] in " \t" and not fenced and not _dressed().match(line):
            here = (*here[:3], f"{here[3]} {line}")
            continue
        if here is not None:
            yield here
        here = None
        if (told := origin_of(line)) is not None:
            owner, read = told
        elif line.startswith("```"):
            fenced = not fenced
        elif line.startswith("#") and not fenced:
            managed = line.strip("# ").lower() in MANAGED
        elif line and not (fenced or managed or line.startswith("<!--")):
            own = source_of(line)
            here = (number, *((own[1], own[2]) if own else (owner, read)), line)
    if here is not None:
        yield here


def said(text: str, path: str, line: int, *, owner: str = "", read: str = "") -> Noted | None:
    """What somebody said in a conversation as a line to keep; None for a question and for what says too little."""
    words = plain(text[:SAID])
    if tokens(words) < LEAST or not worth(words) or words.endswith(("?", "？")):
        return None
    return Noted(words, path, line, "", owner, read)


def staged(lines: Iterable[Noted], recalls: Mapping[str, Recall]) -> tuple[Candidate, ...]:
    """The light phase: lines that say the same taken together, with how they were found. Of several the owner's own is
    kept, and of those the newest.
    """
    found: dict[str, list[Noted]] = {}
    for line in lines:
        found.setdefault(digest(line.text), []).append(line)
    out = []
    for key, same in found.items():
        best = max(same, key=lambda each: (not each.outside, each.day, -each.line))
        days = tuple(sorted({each.day for each in same if each.day and each.owner == best.owner}))
        out.append(Candidate(best, days, recalls.get(key)))
    return tuple(out)


def ideas(text: str) -> tuple[str, ...]:
    """The words of a line that say what it is about."""
    return tuple(word for word in terms(text) if not word.isdigit() and (len(word) > 2 or not word.isascii()))


def themes(candidates: Iterable[Candidate]) -> tuple[Theme, ...]:
    """The REM phase: what several of the owner's own lines are about, the most frequent first."""
    by_word: dict[str, list[Candidate]] = {}
    for each in candidates:
        if not each.noted.outside:
            for word in ideas(each.noted.text):
                by_word.setdefault(word, []).append(each)
    rows = [
        Theme(word, sum(max(1, each.signals) for each in found), tuple(each.noted.text for each in found[:3]))
        for word, found in by_word.items()
        if len(found) > 1
    ]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.word))[:THEMES])


def about(candidate: Candidate, found: Iterable[Theme]) -> bool:
    """Whether a candidate is one that a theme was found in."""
    words = set(ideas(candidate.noted.text))
    return not candidate.noted.outside and any(theme.word in words for theme in found)


def weighed(candidate: Candidate, now: int, bar: Bar) -> dict[str, float]:
    """What speaks for a candidate, each from 0 to 1, and what phases that met it add."""
    recall = candidate.recall or Recall("", "", 0)
    young = 0.5 ** (age(candidate, now) / bar.half_life)
    seen = 0.5 ** (max(0, now - recall.phase_at) / DAY_MS / bar.half_life)
    days = {*candidate.days, *recall.days}
    return {
        "relevance": min(1.0, recall.score / recall.count) if recall.count else WRITTEN,
        "frequency": min(1.0, math.log1p(candidate.signals) / math.log1p(OFTEN)),
        "diversity": min(1.0, len(recall.queries) / WAYS),
        "recency": young,
        "consolidation": min(1.0, len(days) / DAYS),
        "richness": min(1.0, len(ideas(candidate.noted.text)) / IDEAS),
        "boost": seen * (_boost("light", recall.light) + _boost("rem", recall.rem)),
    }


def _boost(phase: str, count: int) -> float:
    each, most = BOOSTS[phase]
    return min(most, each * count)


def age(candidate: Candidate, now: int) -> float:
    """Days since it was last written down or found."""
    newest = max(candidate.days, default="")
    day = int(datetime.fromisoformat(newest).replace(tzinfo=UTC).timestamp() * 1000) if newest else 0
    last = max(day, candidate.recall.last_at if candidate.recall else 0)
    return max(0, now - last) / DAY_MS


@frozen
class Known:
    """What stands in MEMORY.md, and what became of lines that were proposed before, by their digests, in words."""

    lines: tuple[frozenset[str], ...] = ()
    before: Mapping[str, str] = {}


def known(memory: str, before: Mapping[str, str] = {}) -> Known:
    """`memory` is the text of what is kept for good."""
    told = (frozenset(split(plain(line)).split()) for line in memory.splitlines())
    return Known(tuple(words for words in told if words), before)


def ranked(candidates: Iterable[Candidate], now: int, bar: Bar, there: Known = Known()) -> tuple[Ranked, ...]:  # noqa: B008 - a value
    """The deep phase: all candidates, the best first, each with what keeps it out."""
    rows = []
    for each in candidates:
        parts = weighed(each, now, bar)
        score = min(1.0, sum(WEIGHTS[name] * parts[name] for name in WEIGHTS) + parts["boost"])
        rows.append(Ranked(each, round(score, 4), parts, tuple(_why(each, score, now, bar=bar, there=there))))
    rows.sort(key=lambda row: (-row.score, row.candidate.noted.path, row.candidate.noted.line))
    return tuple(rows)


def _why(each: Candidate, score: float, now: int, *, bar: Bar, there: Known) -> Iterator[str]:
    ways = len(each.recall.queries) if each.recall else 0
    if score < bar.score:
        yield f"its score is {score:.2f}, below {bar.score:.2f}"
    if each.signals < bar.recalls:
        yield f"it was met {each.signals} of {bar.recalls} times"
    if ways < bar.queries:
        yield f"{ways} of {bar.queries} different questions found it"
    if age(each, now) > bar.max_age:
        yield f"nobody wrote or sought it for {bar.max_age:g} days"
    if before := there.before.get(each.digest):
        yield before
    if _stands(each.noted.text, there.lines):
        yield "it is kept already"


def _stands(text: str, lines: Sequence[frozenset[str]]) -> bool:
    words = frozenset(split(text).split())
    return any(len(words & line) / len(words | line) >= SAME for line in lines)


def proposed(rows: Iterable[Ranked], bar: Bar, room: int) -> tuple[tuple[Ranked, ...], tuple[Ranked, ...]]:
    """(those that are proposed, the others): as many as a proposal holds, and as MEMORY.md has `room` for, in
    characters, so that none of it is cut where it is told to a model.
    """
    taken: list[Ranked] = []
    left: list[Ranked] = []
    for row in rows:
        size = len(clipped(row.candidate.noted.text, bar.tokens)) + 80
        if row.why:
            left.append(row)
        elif len(taken) >= bar.most:
            left.append(replace(row, why=(f"one proposal holds {bar.most} lines",)))
        elif size > room:
            left.append(replace(row, why=("MEMORY.md is full: what is longer is cut when it is told",)))
        else:
            taken.append(row)
            room -= size
    return tuple(taken), tuple(left)


def clipped(text: str, most: int) -> str:
    """`text` in about `most` tokens."""
    cost = tokens(text)
    return text if cost <= most else text[: max(1, len(text) * most // cost - 1)].rstrip() + "…"


def credited(text: str, query: str, path: str, first: int) -> tuple[tuple[str, int], ...]:
    """The lines of a piece that a search found, as (digest, number): those with a word of the question; where none has
    one, it was found by its meaning, and all of them count.
    """
    if path.startswith(SPOKEN):
        own = said(spoken(text), path, first) if text.startswith("User: ") else None
        return ((digest(own.text), own.line),) if own is not None else ()
    lines = noted(text, path, first)
    sought = set(terms(query))
    hit = [each for each in lines if sought & _words(each.text)]
    return tuple((digest(each.text), each.line) for each in (hit or lines))


def _words(text: str) -> set[str]:
    return {
        part for run, cjk in runs(text) for part in ((run[at : at + 2] for at in range(len(run))) if cjk else (run,))
    }
