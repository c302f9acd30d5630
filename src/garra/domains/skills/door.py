"""The workspace's files, and beside them the folders of skills, to be read only."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol

from garra.core.bundle import MAIN
from garra.io.files.root import Root
from garra.sdk.ports import Files, Found


class Told(Protocol):
    """Who hears of it: the folder of a skill whose SKILL.md was read, and the paths that were written."""

    def heard(self, folder: str) -> None: ...

    def wrote(self, path: str) -> None: ...


class Door:
    """As `sdk.ports.Files` of the workspace. A path below one of `folders()` (absolute, or with `~` for `home`) is read
    there; links in such a folder are not followed, and nothing is written there. `by` is told of it.
    """

    def __init__(self, files: Files, folders: Callable[[], Iterable[str]], home: str, by: Told | None = None) -> None:
        self.root = files.root
        self._files, self._folders, self._home = files, folders, home.rstrip("/")
        self._by = by

    def read(self, path: str, limit: int) -> bytes:
        files, inner, folder = self._open(path)
        data = files.read(inner, limit)
        self._heard(path, inner, folder)
        return data

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        files, inner, folder = self._open(path)
        found = files.read_range(inner, start, size)
        self._heard(path, inner, folder)
        return found

    def entries(self, path: str) -> list[Found]:
        files, inner, folder = self._open(path)
        return [_named(found, folder) for found in files.entries(inner)]

    def walk(self, path: str, limit: int, skip: Collection[str] = ()) -> list[Found]:
        files, inner, folder = self._open(path)
        return [_named(found, folder) for found in files.walk(inner, limit, skip)]

    def stat(self, path: str) -> Found | None:
        files, inner, folder = self._open(path)
        found = files.stat(inner)
        return None if found is None else _named(found, folder)

    def write(self, path: str, data: bytes) -> None:
        self._files.write(path, data)
        self._wrote(path)

    def remove(self, path: str) -> None:
        self._files.remove(path)
        self._wrote(path)

    def rename(self, path: str, to: str) -> None:
        self._files.rename(path, to)
        self._wrote(to)

    def _heard(self, path: str, inner: str, folder: str) -> None:
        if self._by is None or posixpath.basename(path) != MAIN:
            return
        if not folder:
            own = posixpath.dirname(posixpath.normpath(posixpath.join(self.root, path)))
            folder, inner = (own, MAIN) if own in self._folders() else ("", "")
        if inner == MAIN:
            self._by.heard(folder)

    def _wrote(self, path: str) -> None:
        if self._by is not None:
            self._by.wrote(path)

    def _open(self, path: str) -> tuple[Files, str, str]:
        """(whose door, the path there, the skill's folder)."""
        full = self._home + path[1:] if path.startswith("~/") else path
        if full.startswith("/") and not full.startswith(f"{self.root}/"):
            for folder in self._folders():
                if full == folder or full.startswith(f"{folder}/"):
                    return Root(folder), full[len(folder) + 1 :], folder
        return self._files, path, ""


def _named(found: Found, folder: str) -> Found:
    """As the caller named it: with the folder in front."""
    return replace(found, path=f"{folder}/{found.path}".rstrip("/")) if folder else found
