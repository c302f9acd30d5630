"""Thinking that a server leaves inside the words: a leading `<think> … </think>`, however it is cut into deltas."""

from __future__ import annotations

from typing import Literal, NamedTuple

_OPEN = ("<think>", "<thinking>")
_CLOSE = ("</think>", "</thinking>")


class Said(NamedTuple):
    """A stretch of an answer."""

    kind: Literal["text", "thinking"]
    words: str


class Sieve:
    """Feed it an answer's words in pieces; it gives them back told apart. Only the answer's beginning may think."""

    def __init__(self) -> None:
        self._state: Literal["before", "inside", "after"] = "before"
        self._held = ""
        self._gap = False

    def feed(self, words: str) -> list[Said]:
        """What can be told of the words so far. A piece that may yet turn into a tag is kept back."""
        if self._state == "after":
            return self._after(words)
        self._held += words
        return self._before() if self._state == "before" else self._inside()

    def rest(self) -> list[Said]:
        """What was kept back, when nothing more comes."""
        held, self._held = self._held, ""
        kind: Literal["text", "thinking"] = "thinking" if self._state == "inside" else "text"
        return [Said(kind, held)] if held else []

    def _before(self) -> list[Said]:
        start = self._held.lstrip()
        opened = next((tag for tag in _OPEN if start.startswith(tag)), None)
        if opened is not None:
            self._state, self._held = "inside", start[len(opened) :]
            return self._inside()
        if any(tag.startswith(start) for tag in _OPEN):
            return []
        self._state = "after"
        return self.rest()

    def _inside(self) -> list[Said]:
        found = [(at, tag) for tag in _CLOSE if (at := self._held.find(tag)) >= 0]
        if not found:
            keep = _overlap(self._held)
            thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
            return [Said("thinking", thought)] if thought else []
        at, tag = min(found)
        thought, after = self._held[:at], self._held[at + len(tag) :]
        self._state, self._held, self._gap = "after", "", True
        return [said for said in (Said("thinking", thought), *self._after(after)) if said.words]

    def _after(self, words: str) -> list[Said]:
        """The answer proper, without the blank that separates it from the thought."""
        words = words.lstrip() if self._gap else words
        self._gap = self._gap and not words
        return [Said("text", words)] if words else []


def _overlap(words: str) -> int:
    """How many of the last letters may be the beginning of a closing tag."""
    longest = max(map(len, _CLOSE)) - 1
    for count in range(min(longest, len(words)), 0, -1):
        if any(tag.startswith(words[-count:]) for tag in _CLOSE):
            return count
    return 0
