"""What is said about a configuration: where, and what."""

from __future__ import annotations

from dataclasses import dataclass

from garra.core.dotted import Path, show


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing to say about one place: `path` is as a person writes it, `at` as keys; `line` is 0 when unknown.

    `allowed` are the values that would do, when there is such a list. `wrong`: the value cannot be used as it is
    written, though the configuration serves without it; no change may bring such a one in.
    """

    path: str
    message: str
    allowed: tuple[str, ...] = ()
    line: int = 0
    at: Path = ()
    wrong: bool = False

    @property
    def joined(self) -> str:
        """The path with dots only, as programs compare it."""
        return ".".join(map(str, self.at)) if self.at else self.path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def issue(at: Path, message: str, allowed: tuple[str, ...] = (), *, wrong: bool = False) -> Issue:
    """An issue at a place given by keys."""
    return Issue(show(at), message, allowed, at=at, wrong=wrong)
