"""What an agent's memory is made of: which files there are, and what they say."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from garra.core import memory_sight, taint
from garra.core.memory_chunks import Line
from garra.core.messages import Assistant, Message, User, message_from
from garra.core.value import frozen

LARGEST: Final = 4 << 20
"""Bytes of a file of memory; larger ones are not indexed."""
MOST: Final = 5_000
"""Files below one folder."""
BORN: Final = "garra:session"
"""The entry behind a transcript's head that tells its session's key."""
HEAD: Final = 16_384


@frozen
class Extra:
    """A file or folder outside the workspace that is searched too; `pattern` narrows a folder."""

    path: str
    pattern: str = ""


@frozen
class Places:
    """Where one agent's memory lies. `main` is what its own conversation is called; `kinds` are the sources wanted."""

    agent: str
    workspace: str
    sessions: str
    extra: tuple[Extra, ...] = ()
    kinds: tuple[str, ...] = ("memory", "sessions")
    main: str = "main"


@frozen
class Source:
    """One file: `path` as it is cited, `file` where it lies. Size in bytes, `changed` in milliseconds since 1970."""

    path: str
    file: str
    kind: str
    size: int
    changed: int


def found(places: Places) -> list[Source]:
    """All files there are now. Blocks. Links are not followed."""
    rows: list[Source] = []
    if "memory" in places.kinds:
        rows.extend(_memory(places))
    if "sessions" in places.kinds:
        rows.extend(_sessions(places))
    return list({row.path: row for row in rows}.values())


def _memory(places: Places) -> Iterator[Source]:
    root = places.workspace
    for name in ("MEMORY.md", "USER.md"):
        yield from _one(os.path.join(root, name), name)  # noqa: PTH118
    yield from _below(os.path.join(root, "memory"), "memory/")  # noqa: PTH118
    for extra in places.extra:
        whole = os.path.normpath(os.path.join(root, os.path.expanduser(extra.path)))  # noqa: PTH111, PTH118
        inner = os.path.relpath(whole, root)
        shown = whole if inner.startswith("..") else inner
        yield from _one(whole, shown) if os.path.isfile(whole) else _below(whole, f"{shown}/", extra.pattern)  # noqa: PTH113


def _one(file: str, shown: str) -> Iterator[Source]:
    try:
        stat = os.lstat(file)
    except OSError:
        return
    if not os.path.islink(file) and stat.st_size <= LARGEST:  # noqa: PTH114
        yield Source(shown, file, "memory", stat.st_size, stat.st_mtime_ns // 1_000_000)


def _below(folder: str, shown: str, pattern: str = "") -> Iterator[Source]:
    if os.path.islink(folder):  # noqa: PTH114
        return
    seen = 0
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            inner = os.path.relpath(os.path.join(here, name), folder)  # noqa: PTH118
            if not name.lower().endswith((".md", ".markdown")) or (pattern and not fnmatch.fnmatch(inner, pattern)):
                continue
            seen += 1
            if seen > MOST:
                return
            yield from _one(os.path.join(here, name), f"{shown}{inner}")  # noqa: PTH118


def _sessions(places: Places) -> Iterator[Source]:
    try:
        entries = sorted(os.scandir(places.sessions), key=lambda each: each.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
            stat = entry.stat(follow_symlinks=False)
            yield Source(f"sessions/{entry.name}", entry.path, "sessions", stat.st_size, stat.st_mtime_ns // 1_000_000)


def key_of(source: Source, places: Places) -> str:
    """The session that a transcript belongs to; empty where it does not say, or none that is remembered. Blocks."""
    with Path(source.file).open("rb") as file:
        head = file.read(HEAD)
    for raw in head.splitlines()[:4]:
        body = _decoded(raw)
        if body.get("type") == "custom" and body.get("customType") == BORN and isinstance(body.get("data"), dict):
            key = str(body["data"].get("key") or "")
            return key if key and memory_sight.indexed(key, places.main) else ""
    return _mirrored(source, places)


def _mirrored(source: Source, places: Places) -> str:
    """What `sessions.json` says of a transcript of the original's."""
    mine = Path(source.file).stem
    try:
        rows = msgspec.json.decode((Path(source.file).parent / "sessions.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return ""
    for key, row in rows.items():
        if isinstance(row, dict) and row.get("sessionId") == mine:
            return key if memory_sight.indexed(key, places.main) else ""
    return ""


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return body if isinstance(body, dict) else {}


def said(data: bytes, key: str, main: str, first: int) -> Iterator[tuple[int, Line]]:
    """The messages of a transcript's bytes, which begin with line `first`; each with where its line begins."""
    at = 0
    for number, raw in enumerate(data.split(b"\n"), first):
        begins, at = at, at + len(raw) + 1
        if b'"message"' not in raw:
            continue
        body = _decoded(raw)
        if body.get("type") != "message":
            continue
        try:
            message = message_from(body["message"])
        except (KeyError, ValueError, TypeError, AttributeError):
            continue
        yield begins, _line(number, message, key, main)


def _line(number: int, message: Message, key: str, main: str) -> Line:
    role = "user" if isinstance(message, User) else "assistant" if isinstance(message, Assistant) else "tool"
    text = message.text if role != "tool" else ""
    owner = memory_sight.owner_of(key, message.meta, main) if role == "user" else ""
    return Line(number, role, text, message.timestamp, owner, taint.of(message.meta))
