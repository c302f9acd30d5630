"""The workspace's files, and beside them the folders of skills, to be read only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from garra.io.files.root import Root
from garra.sdk.ports import Files, Found


class Door:
    """As `sdk.ports.Files` of the workspace. A path below one of `folders()` (absolute, or with `~` for `home`) is read
    there; links in such a folder are not followed, and nothing is written there.
    """

    def __init__(self, files: Files, folders: Callable[[], Iterable[str]], home: str) -> None:
        self.root = files.root
        self._files, self._folders, self._home = files, folders, home.rstrip("/")

    def read(self, path: str, limit: int) -> bytes:
        files, inner, _ = self._open(path)
        return files.read(inner, limit)

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        files, inner, _ = self._open(path)
        return files.read_range(inner, start, size)

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

    def remove(self, path: str) -> None:
        self._files.remove(path)

    def rename(self, path: str, to: str) -> None:
        self._files.rename(path, to)

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
