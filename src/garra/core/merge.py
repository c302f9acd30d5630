"""Merging of plain JSON values. Nothing given is changed; what is given back may share parts with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from garra.core.dotted import Path


class Change(NamedTuple):
    """One difference: at `path` stands `value` now, or nothing when `gone`."""

    path: Path
    value: Any
    gone: bool = False


def deep(under: Any, over: Any) -> Any:
    """Objects are merged key by key, everything else of `over` takes the place of what is under it."""
    if isinstance(under, dict) and isinstance(over, dict):
        return {**under, **{key: deep(under[key], value) if key in under else value for key, value in over.items()}}
    return over


def patched(target: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7396): None removes a key. Lists of objects that all have an `id` are merged by it."""
    if isinstance(patch, dict):
        base = target if isinstance(target, dict) else {}
        kept = {key: value for key, value in base.items() if not (key in patch and patch[key] is None)}
        return kept | {key: patched(base.get(key), value) for key, value in patch.items() if value is not None}
    if _named(patch) and _named(target):
        return _by_id(target, patch)
    return patch


def _named(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) and v.get("id") for v in value)


def _by_id(target: list[dict[str, Any]], patch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    news = {entry["id"]: entry for entry in patch}
    merged = [patched(entry, news.pop(entry["id"])) if entry["id"] in news else entry for entry in target]
    return merged + [patched(None, entry) for entry in news.values()]


def changes(old: Any, new: Any, at: Path = ()) -> Iterator[Change]:
    """The smallest edits that turn `old` into `new`: keys gone, keys new, values other. Order does not count."""
    if isinstance(old, dict) and isinstance(new, dict):
        yield from (Change((*at, key), None, gone=True) for key in old if key not in new)
        for key, value in new.items():
            yield from changes(old[key], value, (*at, key)) if key in old else (Change((*at, key), value),)
    elif isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        for index, value in enumerate(new):
            here = (*at, index)
            yield from changes(old[index], value, here) if index < len(old) else (Change(here, value),)
    elif type(old) is not type(new) or old != new:
        yield Change(at, new)
