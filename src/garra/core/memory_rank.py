"""The order of what is found: by words and by meaning together, the newer before the older, no two alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from garra.core.memory_words import split
from garra.core.value import frozen

DAY_MS: Final = 86_400_000
SURE: Final = 0.35
"""What the best hit of words has at least."""
ALIKE: Final = 400
"""Characters by which two texts are compared."""
AGE: Final = 0.2
"""What of a score age may take."""


@frozen
class Weights:
    """How much meaning and words count; `half_life` in days, 0 for none; `mmr`: how much variety is wanted, from 0
    (none) to 1. `many`: how many more than asked for are looked at.
    """

    vector: float = 0.7
    text: float = 0.3
    half_life: float = 30.0
    mmr: float = 0.3
    many: int = 4


@frozen
class Found:
    """One row as the index gave it."""

    id: int
    path: str
    text: str
    created: int = 0
    source: str = "memory"


def by_words(ranks: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Scores from 0 to 1 of rows with their bm25 ranks, which are negative, the best lowest.

    The best has what its rank is worth alone, the others their share of it. Where there are few texts, no word is rare
    and ranks say little, or nothing at all: the best then has `SURE`, and so have all that no rank tells apart.
    """
    best = -min((rank for _, rank in ranks), default=0.0)
    if best <= 0:
        return {row: SURE for row, _ in ranks}
    top = max(SURE, best / (1 + best))
    return {row: max(0.0, -rank) / best * top for row, rank in ranks}


def by_meaning(near: Sequence[tuple[int, float]], least: float) -> dict[int, float]:
    """Scores from 0 to 1 of rows with their cosines. Sentence vectors of one model lie close together: `least` is
    what two texts have that have nothing in common.
    """
    return {row: max(0.0, (cosine - least) / (1 - least)) for row, cosine in near}


def merged(words: Mapping[int, float], meaning: Mapping[int, float], weights: Weights) -> dict[int, float]:
    """The scores of both as one. Where only words were looked for, theirs is the score."""
    if not meaning:
        return dict(words)
    both = weights.vector + weights.text or 1.0
    return {
        row: (weights.vector * meaning.get(row, 0.0) + weights.text * words.get(row, 0.0)) / both
        for row in dict.fromkeys((*meaning, *words))
    }


K: Final = 60


def fused(words: Sequence[int], meaning: Sequence[int], weights: Weights) -> dict[int, float]:
    """Scores by place alone (reciprocal rank fusion), best first in both; the best possible has 1."""
    most = (weights.vector + weights.text) / (K + 1) or 1.0
    out: dict[int, float] = {}
    for weight, rows in ((weights.text, words), (weights.vector, meaning)):
        for place, row in enumerate(rows, 1):
            out[row] = out.get(row, 0.0) + weight / (K + place) / most
    return out


@cache
def _dated() -> re.Pattern[str]:
    return re.compile(r"(?:^|/)memory/(?:.*/)?\d{4}-\d{2}-\d{2}[^/]*\.md\Z")


def evergreen(found: Found) -> bool:
    """Whether a text does not grow old: all but the diary. What was said a year ago is asked for as such."""
    return found.source != "memory" or not _dated().search(found.path)


def decayed(score: float, found: Found, now_ms: int, half_life: float) -> float:
    """The score of a text as old as it is: what age may take of it is half gone after `half_life` days, and it takes
    no more than `AGE`, so that what was said once in a year is still found.
    """
    if half_life <= 0 or not found.created or evergreen(found):
        return score
    young: float = 0.5 ** (max(0, now_ms - found.created) / DAY_MS / half_life)
    return score * (1 - AGE + AGE * young)


def chosen(scored: Sequence[tuple[Found, float]], limit: int, mmr: float = 0.0) -> list[tuple[Found, float]]:
    """The best, best first; the same text is told once. With `mmr` what is like something better comes later."""
    rows = sorted(scored, key=lambda each: (-each[1], each[0].id))
    best: dict[str, tuple[Found, float]] = {}
    for row in rows:
        best.setdefault(row[0].text, row)
    once = list(best.values())
    if mmr <= 0:
        return once[:limit]
    pool = once[: max(limit * 4, limit)]
    held = {found.id: frozenset(split(found.text[:ALIKE]).split()) for found, _ in pool}
    out: list[tuple[Found, float]] = []
    while pool and len(out) < limit:
        next_one = max(pool, key=lambda each: (1 - mmr) * each[1] - mmr * _alike(each[0], out, held))
        pool.remove(next_one)
        out.append(next_one)
    return out


def _alike(found: Found, out: Sequence[tuple[Found, float]], held: Mapping[int, frozenset[str]]) -> float:
    """How much of its words the most similar of those before it has (Jaccard)."""
    own = held[found.id]
    return max((len(own & held[other.id]) / (len(own | held[other.id]) or 1) for other, _ in out), default=0.0)


def citation(path: str, start: int, end: int) -> str:
    """Where a text stands: `memory/2026-05-02.md#L4-L9`."""
    return f"{path}#L{start}" if start == end else f"{path}#L{start}-L{end}"


def snippet(text: str, terms: Sequence[str], most: int = 700) -> str:
    """`text` in `most` characters, from before the first of the words that were looked for."""
    if len(text) <= most:
        return text
    small = text.lower()
    at = min((place for term in terms if (place := small.find(term)) >= 0), default=0)
    start = max(0, min(at - most // 4, len(text) - most + 2))
    end = start + most - 2
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")
