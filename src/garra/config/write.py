"""The one writer of the configuration file.

Every change is made to the text that stands in the file at that moment, under a lock that all processes share, and
must be valid before it takes the file's place in one step. Comments, order and unknown keys stay.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

from garra.config import include
from garra.config.issue import Issue
from garra.config.load import Snapshot, digest, keep, last_good, load, snapshot_of
from garra.config.paths import Paths
from garra.config.source import interpret
from garra.core import dotted, json5, jsonedit, merge
from garra.core.dotted import Path
from garra.core.errors import ConfigInvalid, Conflict, Forbidden, NotFound, UserError
from garra.core.redact import SENTINEL
from garra.core.value import frozen
from garra.io import lock
from garra.io.env import Environment
from garra.io.files import atomic

WAIT_S = 30.0
SMALL = 512
"""Below so many characters a shrinking file is nobody's accident."""

Edit = Callable[[str], str]


@frozen
class Preview:
    """What a change would come to: a unified diff without secrets, and the snapshot that would serve."""

    diff: tuple[str, ...]
    snapshot: Snapshot


@frozen
class _Draft:
    """A change before it is written: the texts, and what they come to."""

    old: str
    new: str
    before: Snapshot
    after: Snapshot


class Writer:
    """Changes the configuration file, or does nothing and raises. All calls block: on a loop, use a thread.

    Each takes `base_hash`, the hash of the text that the caller saw, and raises Conflict when that is no longer the
    file's; ConfigInvalid (`details["issues"]`) when the outcome would not be valid, or a single change would bring in
    a value that cannot be used; Forbidden when the file is managed from outside (`<PREFIX>_CONFIG_READONLY=1`).
    """

    def __init__(self, paths: Paths, env: Environment, written: Callable[[Snapshot], None] | None = None) -> None:
        """`written` is called with each new snapshot, in the writing thread."""
        self._paths = paths
        self._env = env
        self._written = written

    def set(self, path: str | Path, value: Any, *, base_hash: str | None = None) -> Snapshot:
        """Put a JSON value at a path, making the objects on the way."""
        keys = dotted.parse(path) if isinstance(path, str) else path
        return self.apply([merge.Change(keys, value)], base_hash)

    def unset(self, path: str | Path, *, base_hash: str | None = None) -> Snapshot:
        """Remove what stands at a path. Raises NotFound when nothing does, UserError when an included file says it."""
        keys = dotted.parse(path) if isinstance(path, str) else path

        def edit(text: str) -> str:
            if json5.find(json5.parse(text or "{}"), keys) is None:
                raise NotFound(f"{dotted.show(keys)} is not set in {self._paths.config_file}")
            return jsonedit.remove(text, keys)

        snapshot = self._write(edit, base_hash, shrink=True)
        if _at(snapshot.parsed, keys) is None and _at(snapshot.resolved, keys) is not None and snapshot.included:
            raise UserError(f"{dotted.show(keys)} is also set in an included file; remove it there")
        return snapshot

    def apply(self, changes: Sequence[merge.Change], base_hash: str | None = None) -> Snapshot:
        """Make several changes at once, all or none."""

        return self._write(lambda text: _edited(self._filled(text), changes), base_hash, shrink=True, strict=True)

    def patch(self, merged: dict[str, Any], base_hash: str | None = None) -> Snapshot:
        """Merge into the file: None removes a key, lists of objects with ids merge by id (`core.merge.patched`)."""

        return self._write(lambda text: _merged(self._filled(text), merged), base_hash, strict=True)

    def replace(self, raw: str, base_hash: str | None = None, *, shrink: bool = False) -> Snapshot:
        """Put a whole new text in place; sentinels in it stand for what is stored.

        Refused (Conflict) when it would lose more than half of the file or its `gateway.mode`, unless `shrink`.
        """
        return self._write(lambda old: restored_text(raw, old), base_hash, shrink=shrink)

    def restore(self) -> Snapshot:
        """Bring back the last good configuration. Raises NotFound when none was kept."""
        self._refuse_managed()
        with self._writing():
            good = last_good(self._paths, self._env)
            if good is None:
                raise NotFound(f"no last good configuration is kept beside {self._paths.config_file}")
            for name, text in good.files.items():
                self._bring_back(FilePath(name), text)
            broken = _text(self._paths.config_file)
            if broken != good.raw:
                self._set_aside(broken)
            atomic.write(self._paths.config_file, good.raw.encode())
            return self._announced(load(self._paths, self._env))

    def mend(self, raw: str, base_hash: str, *, aside: bool = True) -> Snapshot:
        """Put a text in place that may still not be valid, as a step away from one that was not either.

        What stood there is set aside (`Paths.set_aside`) when so wished. Raises Conflict as the others do.
        """
        self._refuse_managed()
        with self._writing():
            old = _text(self._paths.config_file)
            if digest(old) != base_hash:
                raise Conflict("the configuration has changed since it was read; look at it again")
            if aside:
                self._set_aside(old)
            atomic.write(self._paths.config_file, raw.encode())
            return self._announced(load(self._paths, self._env))

    def keep_aside(self) -> None:
        """Set a copy of the file aside, for somebody who is about to change it by other means."""
        self._refuse_managed()
        with self._writing():
            self._set_aside(_text(self._paths.config_file))

    def _set_aside(self, text: str) -> None:
        """Keep a text, unless it is kept already; the oldest one goes when there are too many."""
        places = self._paths.set_aside
        if not text.strip() or any(place.exists() and _text(place) == text for place in places):
            return
        for newer, older in reversed(list(pairwise(places))):
            if newer.exists():
                newer.replace(older)
        atomic.write(places[0], text.encode())

    def _bring_back(self, path: FilePath, text: str) -> None:
        if _text(path) != text:
            atomic.write(path, text.encode())

    def preview(self, merged: dict[str, Any]) -> Preview:
        """What `patch` would do, without doing it. Raises what `patch` raises."""
        with self._locked():
            draft = self._draft(lambda text: _merged(text, merged), None)
        _refuse_loss(draft.before, draft.after)
        shown = importlib.import_module("garra.config.view").text
        lines = importlib.import_module("difflib").unified_diff(
            shown(draft.old).splitlines(), shown(draft.new).splitlines(), "now", "then", n=1, lineterm=""
        )
        return Preview(tuple(lines), draft.after)

    def _draft(self, edit: Edit, base_hash: str | None) -> _Draft:
        old = _text(self._paths.config_file)
        if base_hash is not None and base_hash != digest(old):
            raise Conflict("the configuration has changed since it was read; read it again and repeat the change")
        new = self._edited(edit, old)
        before = snapshot_of(interpret(old, self._paths, self._env))
        return _Draft(old, new, before, before if new == old and before.valid else self._checked(new))

    def _write(self, edit: Edit, base_hash: str | None, *, shrink: bool = False, strict: bool = False) -> Snapshot:
        self._refuse_managed()
        with self._writing():
            draft = self._draft(edit, base_hash)
            if draft.after is draft.before:
                return draft.before
            if not shrink:
                _refuse_loss(draft.before, draft.after)
            if strict:
                _refuse_wrong(draft.before, draft.after)
            if draft.before.valid and draft.old.strip():
                atomic.write(_beside(self._paths.config_file, ".bak"), draft.old.encode())
            atomic.write(self._paths.config_file, draft.new.encode())
            return self._announced(draft.after)

    def _edited(self, edit: Edit, old: str) -> str:
        try:
            new = edit(old)
        except (json5.Broken, include.Unreadable) as fault:
            where = self._paths.config_file
            raise ConfigInvalid(f"{where} is broken: {fault}; mend it or run `garra config restore`") from fault
        return new if new.endswith("\n") else new + "\n"

    def _filled(self, old: str) -> str:
        """The text to edit, unless the file was emptied by accident: an edit would make the loss the new good one."""
        if not old.strip() and self._paths.config_file.exists() and self._paths.last_good.exists():
            where = self._paths.config_file
            raise ConfigInvalid(f"{where} is empty: run `garra config restore`, or remove it to begin anew")
        return old

    def _checked(self, new: str) -> Snapshot:
        after = snapshot_of(interpret(new, self._paths, self._env))
        if not after.valid:
            listed = [_told(found) for found in after.issues]
            raise ConfigInvalid(f"not written: {after.issues[0]}", details={"issues": listed})
        if SENTINEL in json.dumps(after.parsed):
            raise ConfigInvalid(f"not written: {SENTINEL} stands where no secret is stored")
        return after

    def _announced(self, snapshot: Snapshot) -> Snapshot:
        keep(self._paths, snapshot)
        if self._written is not None:
            self._written(snapshot)
        return snapshot

    def _refuse_managed(self) -> None:
        if self._paths.variable(self._env, "CONFIG_READONLY") == "1":
            raise Forbidden("the configuration is managed from outside (CONFIG_READONLY=1); change it there")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with atomic.writing(self._paths.config_file), self._locked():
            yield

    def _locked(self) -> lock.Lock:
        return lock.acquire(_beside(self._paths.config_file, ".lock"), {"pid": os.getpid()}, WAIT_S)


def _edited(text: str, changes: Iterable[merge.Change]) -> str:
    for change in changes:
        if change.gone:
            text = jsonedit.remove(text, change.path)
        else:
            text = jsonedit.put(text, change.path, _restored(change.value, text, change.path))
    return text


def _merged(text: str, merged: dict[str, Any]) -> str:
    old = include.decode(text) if text.strip() else {}
    return _edited(text, merge.changes(old, merge.patched(old, merged)))


def _beside(path: FilePath, suffix: str) -> FilePath:
    path = path.resolve()
    return path.with_name(path.name + suffix)


def _text(path: FilePath) -> str:
    try:
        return atomic.read(path)
    except FileNotFoundError:
        return ""


def _at(tree: Any, path: Path) -> Any:
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def _refuse_loss(before: Snapshot, after: Snapshot) -> None:
    if len(before.raw) > SMALL and len(after.raw) * 2 < len(before.raw):
        raise Conflict(f"not written: the file would shrink from {len(before.raw)} to {len(after.raw)} characters")
    mode = ("gateway", "mode")
    if _at(before.resolved, mode) is not None and _at(after.resolved, mode) is None:
        raise Conflict("not written: gateway.mode would be lost")


def _refuse_wrong(before: Snapshot, after: Snapshot) -> None:
    """Refuse a value that cannot be used, unless it stood there before."""
    known = {(found.at, found.message) for found in before.warnings}
    for found in after.warnings:
        if found.wrong and (found.at, found.message) not in known:
            listed = ", ".join(f'"{name}"' for name in found.allowed)
            told = f"{found.path}: allowed are {listed}" if listed else str(found)
            raise ConfigInvalid(f"not written: {told}", details={"issues": [_told(found)]})


def _told(found: Issue) -> dict[str, str]:
    return {"path": found.joined, "message": found.message}


def _restored(value: Any, text: str, at: Path) -> Any:
    """A value whose sentinels are what is stored at their places."""
    old = include.decode(text) if SENTINEL in json.dumps(value) and text.strip() else {}

    def walk(value: Any, at: Path) -> Any:
        if value == SENTINEL:
            stored = _at(old, at)
            return SENTINEL if stored is None else stored
        if isinstance(value, dict):
            return {key: walk(below, (*at, key)) for key, below in value.items()}
        if isinstance(value, list):
            return [walk(below, (*at, index)) for index, below in enumerate(value)]
        return value

    return walk(value, at)


def restored_text(raw: str, old: str) -> str:
    """A text whose sentinels are the source that stands at their places in the old text.

    Raises ConfigInvalid when nothing stands there.
    """
    if SENTINEL not in raw:
        return raw
    root, stored = json5.parse(raw), json5.parse(old or "{}")
    spans: list[tuple[json5.Node, str]] = []
    for at, node in json5.leaves(root):
        if node.kind == "text" and raw[node.start + 1 : node.end - 1] == SENTINEL:
            found = json5.find(stored, at)
            if found is None:
                raise ConfigInvalid(f"{dotted.show(at)}: no secret is stored there; give its text")
            spans.append((node, old[found.start : found.end]))
    return jsonedit.replace_texts(raw, spans)
