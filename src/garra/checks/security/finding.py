"""What the security audit finds, and the catalog of everything it may find."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from garra.core.value import frozen

Severity = Literal["info", "warn", "critical"]

FILE: Final = Path(__file__).with_name("catalog.toml")
_PART: Final = re.compile(r"<\w+>")


@frozen
class Chmod:
    """A folder or file that is to be for nobody else's eyes: `mode` instead of `before`."""

    path: str
    mode: int
    before: int


@frozen
class Narrow:
    """A group policy that is to be a list instead of open; `at` are its keys in the configuration."""

    at: tuple[str, ...]


Fix = Chmod | Narrow
"""What `--fix` may do. Nothing else is ever done: no address, no credential, no tool is changed."""


@frozen
class Kind:
    """One row of the catalog. `severities`: from the usual one on; `why` and `remedy` are for people."""

    id: str
    severities: tuple[Severity, ...]
    title: str
    why: str
    remedy: str
    deep: bool = False
    fixed: bool = False


@frozen
class Finding:
    """One thing that was found. `check_id` is `domain.subarea.problem`, and never changes its meaning."""

    check_id: str
    severity: Severity
    title: str
    detail: str
    remediation: str = ""
    fixes: tuple[Fix, ...] = ()


@cache
def catalog() -> Mapping[str, Kind]:
    """Every kind of finding by its id, in the order of the file."""
    told: Mapping[str, Any] = importlib.import_module("tomllib").loads(FILE.read_text("utf-8"))
    return {name: _kind(name, row) for name, row in told.items()}


def _kind(name: str, row: Mapping[str, Any]) -> Kind:
    severities = tuple(row["severity"].split("/"))
    return Kind(
        name,
        severities,
        row["title"],
        row["why"],
        row.get("remedy", ""),
        row.get("deep", False),
        row.get("fixed", False),
    )


def found(
    name: str, detail: str, severity: Severity | None = None, *, of: str = "", fixes: tuple[Fix, ...] = ()
) -> Finding:
    """A finding of a kind. `of` stands in the place of `<…>` in its id; without `severity` it is the kind's usual one.

    Raises KeyError for a kind that the catalog does not know, ValueError for a severity that it does not name.
    """
    kind = catalog()[name]
    chosen = severity or kind.severities[0]
    if chosen not in kind.severities:
        raise ValueError(f"{name} is never {chosen}")
    check_id = _PART.sub(lambda _: of, name)
    return Finding(
        check_id, chosen, _PART.sub(lambda _: of, kind.title), detail, _PART.sub(lambda _: of, kind.remedy), fixes
    )
