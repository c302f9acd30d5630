"""Texts in the pieces that the memory's index holds: Markdown by its lines, conversations by their turns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from garra.core.memory_words import tokens
from garra.core.taint import Mark
from garra.core.value import frozen

SIZE: Final = 400
OVERLAP: Final = 80
"""Tokens of a piece, and how many of them the next piece begins with."""
SAID: Final = 2_000
ANSWERED: Final = 600
"""Characters of a turn that are kept: of what a person said, and of what was answered."""
LINE: Final = 1_600
"""Characters of one line that stay together."""


@frozen
class Chunk:
    """One piece: its lines, from 1, both ends counted. `owner` is whose words it holds, None where the text does
    not say. `created` is milliseconds since 1970, 0 where it is not known.
    """

    start: int
    end: int
    text: str
    owner: str | None = None
    created: int = 0
    marks: tuple[Mark, ...] = ()


@frozen
class Line:
    """One message of a transcript. `number` is its line in the file, from 1."""

    number: int
    role: str
    text: str
    created: int = 0
    owner: str = ""
    marks: tuple[Mark, ...] = ()


@cache
def _heading() -> re.Pattern[str]:
    return re.compile(r"#{1,6}\s")


@cache
def _origin() -> re.Pattern[str]:
    """What stands above words that a conversation left in a file."""
    return re.compile(r"<!-- from a conversation(?: with (?P<owner>\S+))?(?: that read (?P<read>.+))? -->\s*$")


@cache
def _source() -> re.Pattern[str]:
    """What ends a line that was taken from elsewhere: where it stood, whose words it is, and what had been read."""
    return re.compile(
        r"<!-- from (?P<path>\S+#L\d+(?:-L\d+)?)(?: with (?P<owner>\S+))?(?: that read (?P<read>.+?))? -->\s*$"
    )


def origin_of(line: str) -> tuple[str, str] | None:
    """(owner, what was read) of a note on where the words below come from; None for any other line."""
    found = _origin().match(line)
    return None if found is None else (found["owner"] or "", found["read"] or "")


def source_of(line: str) -> tuple[str, str, str] | None:
    """(place, owner, what was read) of a line that tells at its end where it was taken from; None for any other."""
    found = _source().search(line) if line.rstrip().endswith("-->") else None
    return None if found is None else (found["path"], found["owner"] or "", found["read"] or "")


def markdown(text: str, path: str, *, size: int = SIZE, overlap: int = OVERLAP) -> tuple[Chunk, ...]:
    """The pieces of a file. A heading, or a note on where words come from, begins a new one; long ones overlap. Such a
    note holds for all that follows up to the next: what a conversation left may have headings of its own. A line that
    tells at its end that it is another's, or came from outside, is a piece for itself.
    """
    found: list[Chunk] = []
    owner: str | None = None
    marks: tuple[Mark, ...] = ()
    for section in _sections(text):
        noted = _origin().match(section[0][1])
        if noted is not None:
            owner = noted["owner"]
            marks = (Mark("memory", path),) if noted["read"] else ()
        own, read = owner, marks
        if (taken := _foreign(section[0][1])) is not None:
            own, read = taken[1] or None, (Mark("memory", path),) if taken[2] else ()
        found.extend(
            Chunk(piece[0][0], piece[-1][0], said, own, 0, read)
            for piece in _pieces(section, size, overlap)
            if (said := "\n".join(line for _, line in piece).strip()) and not _origin().fullmatch(said)
        )
    return tuple(found)


Lines = list[tuple[int, str]]


def _foreign(line: str) -> tuple[str, str, str] | None:
    """What a line tells of itself that is not the owner's own."""
    found = source_of(line)
    return found if found is not None and (found[1] or found[2]) else None


def _sections(text: str) -> Iterator[Lines]:
    here: Lines = []
    for number, line in enumerate(text.splitlines(), 1):
        alone = _foreign(line) is not None
        if here and (alone or _heading().match(line) or _origin().match(line)):
            yield here
            here = []
        if alone:
            yield [(number, line)]
            continue
        here.extend((number, line[at : at + LINE]) for at in range(0, max(1, len(line)), LINE))
    if here:
        yield here


def _pieces(section: Lines, size: int, overlap: int) -> Iterator[Lines]:
    here: Lines = []
    held = 0
    for each in section:
        cost = tokens(each[1]) + 1
        if here and held + cost > size:
            yield here
            here = _tail(here, overlap)
            held = sum(tokens(line) + 1 for _, line in here)
        here.append(each)
        held += cost
    yield here


def _tail(lines: Lines, overlap: int) -> Lines:
    """The last lines that fit into the overlap."""
    kept: Lines = []
    left = overlap
    for each in reversed(lines[1:]):
        left -= tokens(each[1]) + 1
        if left < 0:
            break
        kept.append(each)
    return kept[::-1]


def turns(said: Iterable[Line], before: Iterable[Mark] = ()) -> tuple[Chunk, ...]:
    """A conversation in turns: what somebody said with what was answered. Text from outside that a turn has read marks
    it, and what comes behind it in the same conversation too; `before` are the marks of what came before.
    """
    found: list[Chunk] = []
    read = dict.fromkeys(before)
    for turn in _turns(said):
        read.update(dict.fromkeys(mark for line in turn for mark in line.marks))
        text = _told(turn)
        if text:
            first = turn[0]
            found.append(
                Chunk(
                    first.number,
                    turn[-1].number,
                    text,
                    first.owner if first.role == "user" else None,
                    first.created,
                    some(read),
                )
            )
    return tuple(found)


def _turns(said: Iterable[Line]) -> Iterator[list[Line]]:
    here: list[Line] = []
    for line in said:
        if here and line.role == "user":
            yield here
            here = []
        here.append(line)
    if here:
        yield here


def _told(turn: Sequence[Line]) -> str:
    """What is kept of a turn: the last answer, which is what the person was told."""
    own = " ".join(line.text for line in turn if line.role == "user").strip()[:SAID]
    answers = [line.text.strip() for line in turn if line.role == "assistant" and line.text.strip()]
    answer = answers[-1][:ANSWERED] if answers else ""
    return "\n".join(part for part in (own and f"User: {own}", answer and f"Assistant: {answer}") if part)


MARKS: Final = 8


def some(read: Iterable[Mark]) -> tuple[Mark, ...]:
    """The first mark, which says that there are some, and the newest."""
    every = tuple(read)
    return every if len(every) <= MARKS else (every[0], *every[1 - MARKS :])


def spoken(text: str) -> str:
    """What of a piece is turned into a vector: the person's own words, which say what the piece is about."""
    first, _, rest = text.partition("\nAssistant: ")
    return first.removeprefix("User: ") if rest and first.startswith("User: ") else text.removeprefix("User: ")


@cache
def _idle() -> re.Pattern[str]:
    return re.compile(
        r"(?:ok(?:ay)?|yes|no|thanks?|thank you|great|cool|nice|hi|hello|good (?:morning|night)|lol|sure|fine|got it"
        r"|好的?|谢谢|嗯+|哈+|行|可以|不用了?|早|晚安|你好|知道了|明白)[\s.!?,。！？，~]*",
        re.IGNORECASE,
    )


def worth(text: str) -> bool:
    """Whether a piece says enough to be found by its meaning; small talk is found by its words alone."""
    said = spoken(text).strip()
    return tokens(said) >= 3 and _idle().fullmatch(said) is None
