"""What a new conversation is told of the diary: the newest of the last days' pages, the owner's own words alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from garra.core.memory_chunks import markdown, some
from garra.core.resets import Digest
from garra.core.taint import Mark
from garra.core.value import frozen

HEAD: Final = "[From your diary, for this new conversation; there may be more in the files:]"
LEAST: Final = 40
"""Characters of a page that are worth being told."""


@frozen
class Limits:
    """How much is told, in characters: of one page, and of all."""

    page: int = 1_200
    total: int = 2_800


def recent(pages: Iterable[tuple[str, str]], limits: Limits) -> Digest | None:
    """Of pages as (path, text), the newest first; None where they say nothing. What others said in a conversation is
    left out; what was written after something from outside had been read keeps that mark.
    """
    left = limits.total
    told: list[str] = []
    marks: dict[Mark, None] = {}
    for path, text in pages:
        own = [piece for piece in markdown(text, path, overlap=0) if not piece.owner]
        words = _newest("\n".join(piece.text for piece in own).strip(), min(limits.page, left))
        if words:
            told.append(f"{path}:\n{words}")
            left -= len(words)
            marks.update({mark: None for piece in own for mark in piece.marks})
    return Digest("\n\n".join([HEAD, *reversed(told)]), some(marks)) if told else None


def _newest(text: str, most: int) -> str:
    """The end of a page, from the beginning of a line; empty where there is no room for words."""
    if len(text) <= most:
        return text
    if most < LEAST:
        return ""
    cut = text[1 - most :]
    return "…" + (cut[cut.find("\n") + 1 :] if "\n" in cut[:-1] else cut)
