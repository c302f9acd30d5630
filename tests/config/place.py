"""One installation in a temporary folder, and what tests do with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from garra.config.load import Snapshot, load
from garra.config.paths import Paths, resolve
from garra.config.write import Writer
from garra.io.env import Environment


@dataclass
class Installation:
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> Environment:
        return Environment({"HOME": str(self.home), **self.env})

    @property
    def paths(self) -> Paths:
        return resolve(self.environment)

    @property
    def file(self) -> Path:
        return self.paths.config_file

    @property
    def text(self) -> str:
        return self.file.read_text()

    def write(self, text: str, name: str = "") -> Path:
        """Put a file beside the configuration; without a name, the configuration itself."""
        path = self.file.parent / name if name else self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, text: str | None = None) -> Snapshot:
        if text is not None:
            self.write(text)
        return load(self.paths, self.environment)

    @property
    def writer(self) -> Writer:
        return Writer(self.paths, self.environment)


def said(snapshot: Snapshot) -> dict[str, str]:
    """Issues and warnings by path."""
    return {found.path: found.message for found in (*snapshot.warnings, *snapshot.issues)}
