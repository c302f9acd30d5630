"""What was installed: from where, when, and the SHA-256 of each file. Written by us alone, where no tool can reach."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.io.files import atomic

FILE: Final = "skills-installed.json"
"""In the state folder."""
VERSION: Final = 1


@frozen
class Record:
    """One installed skill. `folder` is where it lies; `origin` how a person would write where it came from, `kind` what
    that is; `version` the commit of a repository, `archive` the SHA-256 of the archive it came in, `inside` the folder
    in there; `files` the SHA-256 of each file by its path. Times in milliseconds since 1970.
    """

    name: str
    folder: str
    kind: str
    origin: str
    files: Mapping[str, str]
    at: str = ""
    ref: str = ""
    inside: str = ""
    version: str = ""
    archive: str = ""
    installed_at: int = 0
    updated_at: int = 0

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "folder": self.folder,
            "kind": self.kind,
            "origin": self.origin,
            "at": self.at,
            "ref": self.ref,
            "inside": self.inside,
            "version": self.version,
            "archiveSha256": self.archive,
            "installedAt": self.installed_at,
            "updatedAt": self.updated_at,
            "files": dict(self.files),
        }


class Records:
    """The file of them. Everything blocks; whoever changes it holds the lock of `library`."""

    def __init__(self, state: Path) -> None:
        self._file = state / FILE

    def every(self) -> dict[str, Record]:
        """By folder. Raises Unavailable where the file is not ours any more."""
        try:
            found = json.loads(atomic.read(self._file))
            return {row["folder"]: _read(row) for row in found["skills"]}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Unavailable(f"{self._file} is damaged: put it right from a backup, or move it away") from None

    def put(self, record: Record) -> None:
        self._write({**self.every(), record.folder: record})

    def drop(self, folder: str) -> None:
        self._write({at: record for at, record in self.every().items() if at != folder})

    def _write(self, records: Mapping[str, Record]) -> None:
        rows = [records[at].told() for at in sorted(records)]
        with atomic.writing(self._file):
            atomic.write(self._file, json.dumps({"version": VERSION, "skills": rows}, indent=1).encode())


def _read(row: Mapping[str, Any]) -> Record:
    texts = {
        name: str(row.get(key, ""))
        for name, key in (("at", "at"), ("ref", "ref"), ("inside", "inside"), ("version", "version"))
    }
    return Record(
        str(row["name"]),
        str(row["folder"]),
        str(row["kind"]),
        str(row["origin"]),
        {str(path): str(digest) for path, digest in row["files"].items()},
        archive=str(row.get("archiveSha256", "")),
        installed_at=int(row.get("installedAt", 0)),
        updated_at=int(row.get("updatedAt", 0)),
        **texts,
    )
