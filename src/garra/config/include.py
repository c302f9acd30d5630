"""`$include`: one configuration in several files.

What counts, from weakest to strongest: the files of a list in their order, each merged into the one before (objects
key by key, everything else replaced); then the keys that stand beside `$include`. One file alone takes the place of
the object that includes it, and must hold an object when keys stand beside. An included file may include others, ten
deep; a file that includes itself, however far round, is refused. Paths are relative to the file that names them and
must stay, links followed, inside the folder of the main file or one of `<PREFIX>_INCLUDE_ROOTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import pyjson5

from garra.config.issue import Issue, issue
from garra.core.dotted import Path
from garra.core.errors import Unavailable
from garra.core.merge import deep
from garra.io.files import atomic

KEY = "$include"
DEEPEST = 10
LARGEST = 2 << 20
LONGEST_PATH = 4096


class Unreadable(Exception):
    """A text is not a configuration; `line` is 0 when unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def decode(text: str) -> Any:
    """JSON5 to plain values. Raises Unreadable with line and column."""
    try:
        return pyjson5.decode(text)
    except (pyjson5.Json5Exception, RecursionError) as fault:
        from garra.core import json5  # noqa: PLC0415 - only a broken text needs it, and every command would pay

        try:
            json5.parse(text)
        except json5.Broken as broken:
            raise Unreadable(str(broken), broken.line) from fault
        raise Unreadable(f"not readable as JSON5 ({_said(fault)})") from fault


def _said(fault: Exception) -> str:
    """The library's own words, without the value it had read so far."""
    said = fault.args[0] if fault.args and isinstance(fault.args[0], str) else type(fault).__name__
    return said.splitlines()[0] if said else type(fault).__name__


@dataclass(slots=True)
class Included:
    """The tree with everything included, which further files that took (path to text), and what went wrong."""

    tree: Any
    files: dict[str, str] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the walk is: in which file, reached through which files, at which keys."""

    file: FilePath
    through: tuple[FilePath, ...]
    at: Path

    def below(self, part: str | int) -> _Place:
        return _Place(self.file, self.through, (*self.at, part))


def expand(
    tree: Any, file: FilePath, roots: tuple[FilePath, ...] = (), kept: Mapping[str, str] | None = None
) -> Included:
    """Include what a parsed configuration asks for. `kept` gives the texts of files instead of the disk's."""
    real = file.resolve()
    included = Included(None)
    allowed = (real.parent, *(root.resolve() for root in roots))

    def load(path: FilePath) -> str:
        if kept is not None and str(path) in kept:
            return kept[str(path)]
        return atomic.read(path, LARGEST)

    included.tree = _walk(tree, _Place(real, (real,), ()), _Rules(allowed, load, included))
    return included


@dataclass(frozen=True, slots=True)
class _Rules:
    allowed: tuple[FilePath, ...]
    load: Callable[[FilePath], str]
    result: Included


def _walk(value: Any, place: _Place, rules: _Rules) -> Any:
    if isinstance(value, list):
        return [_walk(item, place.below(index), rules) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    beside = {key: _walk(item, place.below(key), rules) for key, item in value.items() if key != KEY}
    if KEY not in value:
        return beside
    names = value[KEY]
    listed = names if isinstance(names, list) else [names]
    merged: Any = {}
    for name in listed:
        merged = deep(merged, _fetch(name, place, rules)) if isinstance(names, list) else _fetch(name, place, rules)
    if beside and not isinstance(merged, dict):
        rules.result.issues.append(issue(place.at, "keys stand beside $include, but the included file holds no object"))
        return beside
    return deep(merged, beside) if beside else merged


def _fetch(name: Any, place: _Place, rules: _Rules) -> Any:
    """One included file, itself expanded; an empty object and an issue when it cannot be had."""
    try:
        path = _path(name, place, rules)
        text = rules.load(path)
        tree = decode(text)
    except FileNotFoundError:
        fault = Unreadable("there is no such file")
    except (Unavailable, Unreadable) as found:
        fault = Unreadable(str(found))
    else:
        rules.result.files[str(path)] = text
        return _walk(tree, _Place(path, (*place.through, path), place.at), rules)
    rules.result.issues.append(issue((*place.at, KEY), f"{_short(name)}: {fault.message}"))
    return {}


def _path(name: Any, place: _Place, rules: _Rules) -> FilePath:
    if not isinstance(name, str) or not name or "\0" in name or len(name) >= LONGEST_PATH:
        raise Unreadable("$include takes a file's path, or a list of paths")
    path = (place.file.parent / name).resolve()
    if not any(path.is_relative_to(root) for root in rules.allowed):
        raise Unreadable("an included file must be inside the configuration's folder")
    if path in place.through:
        raise Unreadable("this file includes itself")
    if len(place.through) > DEEPEST:
        raise Unreadable(f"includes are nested deeper than {DEEPEST}")
    return path


def _short(name: Any) -> str:
    text = name if isinstance(name, str) else repr(name)
    return text if len(text) <= 200 else text[:200] + "…"
