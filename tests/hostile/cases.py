"""The corpus as values. Each case has an `id`, the `class` of flaw that it tries (`classes.toml` says them in words),
and `expected`: `refused` (nothing happens, whoever is asked), or `asked` (nothing happens without a person's yes).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from garra.core.value import frozen

CORPUS = Path(__file__).with_name("corpus")
EXPECTED = ("asked", "refused")


@frozen
class Hostile:
    """`way` is how it comes in, the name of its file; `more` what the carrier of that way needs."""

    id: str
    kind: str
    way: str
    expected: str
    more: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.more[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self.more.get(key, default)


@cache
def classes() -> Mapping[str, str]:
    """The classes of flaw, in words, by their short names."""
    found: dict[str, str] = tomllib.loads((CORPUS / "classes.toml").read_text())["classes"]
    return found


@cache
def corpus() -> tuple[Hostile, ...]:
    """All of it. A file may say `class` and `expected` once for all its cases."""
    found: list[Hostile] = []
    for file in sorted(CORPUS.glob("*.toml")):
        whole = tomllib.loads(file.read_text())
        usual = {name: whole[name] for name in ("class", "expected") if name in whole}
        found += (_case(file.stem, usual | case) for case in whole.get("case", ()))
    return tuple(found)


def of(way: str, **more: str) -> tuple[Hostile, ...]:
    """The cases of one way; only those that say `more`."""
    found = tuple(case for case in corpus() if case.way == way and all(case.get(k) == v for k, v in more.items()))
    assert found, way
    return found


def _case(way: str, case: dict[str, Any]) -> Hostile:
    plain = ("id", "class", "expected")
    more = {key: value for key, value in case.items() if key not in plain}
    return Hostile(f"{way}/{case['id']}", case["class"], way, case["expected"], more)
