"""The environment: the only module that reads the process's variables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping


class Environment(Mapping[str, str]):
    """Variables as they stood when read; never changed, never printed."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Environment({len(self._values)} variables)"

    def beneath(self, more: Mapping[str, str]) -> Environment:
        """The same, with what `more` names and this one lacks (or holds empty)."""
        return Environment({**self._values, **{name: value for name, value in more.items() if not self.get(name)}})


def read() -> Environment:
    """The process's environment, now."""
    return Environment(os.environ)


def export(more: Mapping[str, str]) -> None:
    """Set variables of this process; only the command line's front does, for its own options, before anything reads."""
    os.environ.update(more)
