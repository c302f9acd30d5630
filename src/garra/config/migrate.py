"""Keys that had another place or another value once: read as what they are today. The file stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from garra.config.issue import Issue, issue
from garra.core.dotted import Path, parse
from garra.core.merge import deep

MOVED: Mapping[str, str] = {
    "gateway.token": "gateway.auth.token",
    "gateway.password": "gateway.auth.password",
    "agent": "agents.defaults",
    "heartbeat": "agents.defaults.heartbeat",
    "agents.defaults.memorySearch": "memory.search",
    "agents.defaults.userTimeZone": "agents.defaults.userTimezone",
    "session.resetByType.dm": "session.resetByType.direct",
    "messages.tts": "tts",
    "tools.bash": "tools.exec",
    "audio.transcription": "tools.media.audio",
    "routing.bindings": "bindings",
    "routing.queue": "messages.queue",
    "routing.groupChat": "messages.groupChat",
    "telegram": "channels.telegram",
    "whatsapp": "channels.whatsapp",
    "discord": "channels.discord",
    "slack": "channels.slack",
    "signal": "channels.signal",
    "imessage": "channels.imessage",
    "channels.*.dm.policy": "channels.*.dmPolicy",
    "channels.*.dm.allowFrom": "channels.*.allowFrom",
}
"""What stood at the one path stands at the other now; `*` is any key."""

RENAMED: Mapping[str, Mapping[str, str]] = {
    "gateway.bind": {
        "0.0.0.0": "lan",
        "::": "lan",
        "127.0.0.1": "loopback",
        "localhost": "loopback",
        "::1": "loopback",
    },
    "gateway.reload.mode": {"hot": "hybrid", "restart": "hybrid"},
    "session.dmScope": {"per-account": "per-account-channel-peer"},
}
"""Values that are called something else now."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """The tree in today's words, and one note for each thing that was read differently."""

    tree: dict[str, Any]
    notes: tuple[Issue, ...] = ()


def migrate(tree: dict[str, Any]) -> Migrated:
    """Read old keys and values as today's. An old key never overrides the new one."""
    notes: list[Issue] = []
    for old, new in MOVED.items():
        for star in _stars(tree, old):
            tree = _move(tree, _fill(old, star), _fill(new, star), notes)
    for where, names in RENAMED.items():
        path = parse(where)
        value = _get(tree, path)
        if isinstance(value, str) and value in names:
            tree = _put(tree, path, names[value])
            notes.append(issue(path, f'"{value}" is called "{names[value]}" now'))
    return Migrated(tree, tuple(notes))


def _stars(tree: dict[str, Any], pattern: str) -> tuple[str, ...]:
    """What `*` may stand for in this tree; once nothing, for a pattern without it."""
    if "*" not in pattern:
        return ("",)
    above = _get(tree, parse(pattern.split(".*", 1)[0]))
    return tuple(above) if isinstance(above, dict) else ()


def _fill(pattern: str, star: str) -> Path:
    return tuple(star if part == "*" else part for part in pattern.split("."))


def _move(tree: dict[str, Any], old: Path, new: Path, notes: list[Issue]) -> dict[str, Any]:
    value = _get(tree, old)
    if value is None:
        return tree
    notes.append(issue(old, f"stands at {issue(new, '').path} now; read as that"))
    tree = _drop(tree, old)
    present = _get(tree, new)
    return _put(tree, new, value if present is None else deep(value, present))


def _get(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def _change(tree: Any, path: Path, edit: Callable[[dict[Any, Any]], None]) -> Any:
    """A copy along the path with one edit at its end."""
    copy = dict(tree) if isinstance(tree, dict) else {}
    if len(path) == 1:
        edit(copy)
    else:
        copy[path[0]] = _change(copy.get(path[0]), path[1:], edit)
    return copy


def _put(tree: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    changed: dict[str, Any] = _change(tree, path, lambda holder: holder.__setitem__(path[-1], value))
    return changed


def _drop(tree: dict[str, Any], path: Path) -> dict[str, Any]:
    """Without the key; an object that is empty then goes too."""
    changed: dict[str, Any] = _change(tree, path, lambda holder: holder.pop(path[-1], None))
    if len(path) > 1 and _get(changed, path[:-1]) == {}:
        return _drop(changed, path[:-1])
    return changed
