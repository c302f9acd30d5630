"""Secrets as values: they can be carried and compared, never printed."""

from __future__ import annotations

from dataclasses import dataclass

from garra.core.errors import NotFound


class Secret:
    """A key, token or password. `str`, `repr` and formatting show nothing of it.

    A secret that was named but could not be found (an unset variable) is `missing`: it holds no text,
    and `missing` says in one line what is lacking.
    """

    __slots__ = ("_text", "missing")

    def __init__(self, text: str, *, missing: str = "") -> None:
        self._text = "" if missing else text
        self.missing = missing

    def reveal(self) -> str:
        """The text itself, for the one place that sends it. Raises NotFound when it is missing."""
        if self.missing:
            raise NotFound(self.missing)
        return self._text

    def __bool__(self) -> bool:
        """Whether there is a text to reveal."""
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return (self._text, self.missing) == (other._text, other.missing)

    def __hash__(self) -> int:
        return hash((Secret, self._text, self.missing))

    def __repr__(self) -> str:
        return "Secret(missing)" if self.missing else "Secret(***)"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Bound:
    """A secret that may go to these hosts only."""

    name: str
    secret: Secret
    hosts: tuple[str, ...]
