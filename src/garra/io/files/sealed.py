"""A folder that may be read and not changed."""

from __future__ import annotations

from collections.abc import Collection

from garra.core.errors import ToolFailed
from garra.sdk.ports import Files, Found


class Sealed:
    """`sdk.ports.Files` of another, for reading only; `why` is what whoever would write reads."""

    def __init__(self, files: Files, why: str) -> None:
        self.root = files.root
        self._files, self._why = files, why

    def read(self, path: str, limit: int) -> bytes:
        return self._files.read(path, limit)

    def read_range(self, path: str, start: int, size: int) -> tuple[bytes, int]:
        return self._files.read_range(path, start, size)

    def entries(self, path: str) -> list[Found]:
        return self._files.entries(path)

    def walk(self, path: str, limit: int, skip: Collection[str] = ()) -> list[Found]:
        return self._files.walk(path, limit, skip)

    def stat(self, path: str) -> Found | None:
        return self._files.stat(path)

    def write(self, path: str, data: bytes) -> None:
        del data
        raise ToolFailed(f"{path}: {self._why}")

    def remove(self, path: str) -> None:
        raise ToolFailed(f"{path}: {self._why}")

    def rename(self, path: str, to: str) -> None:
        del to
        raise ToolFailed(f"{path}: {self._why}")
