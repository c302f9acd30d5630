"""What is measured, as peers.toml describes it, and where its files lie."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STATE = HERE / ".state"
KEPT = ("PATH", "LANG", "TERM")
"""What a product sees of our environment."""


@dataclass(frozen=True, slots=True)
class Once:
    """One finished command: `peak_mib` is that of its largest process."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    code: int


@dataclass(frozen=True, slots=True)
class Product:
    """One section of peers.toml. `folder` is its state folder's name, where it is not the section's."""

    name: str
    settings: Mapping[str, Any]
    folder: str = ""

    @property
    def state(self) -> Path:
        return STATE / (self.folder or self.name)

    def beside(self, what: str) -> Product:
        """The same with a state folder of its own."""
        folder = f"{self.name}-{what}"
        return Product(self.name, _filled(self.settings, {str(self.state): str(STATE / folder)}), folder)

    @property
    def installed(self) -> bool:
        return Path(self.settings["needs"]).exists()

    def env(self) -> dict[str, str]:
        """A built environment: HOME is below the state folder."""
        env = {key: os.environ[key] for key in KEPT if key in os.environ}
        env |= {"HOME": str(self.state / "home"), **self.settings.get("env", {})}
        if "path_prepend" in self.settings:
            env["PATH"] = f"{self.settings['path_prepend']}:{env['PATH']}"
        return env

    def prepare(self, *, fresh: bool) -> None:
        """Its state folder, emptied first when `fresh`."""
        if fresh and self.state.exists():
            shutil.rmtree(self.state)
        if fresh or not self.state.exists():
            (self.state / "home").mkdir(parents=True)
            for name, text in self.settings.get("files", {}).items():
                path = self.state / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def once(self, command: list[str]) -> Once:
        """Run a command to its end; its output is in `last.out`."""
        launcher = [os.path.realpath(sys.executable), "-I", "-S", str(HERE / "launch.py"), str(self.state / "last.out")]
        ran = subprocess.run(
            [*launcher, *command], env=self.env(), cwd=self.state, capture_output=True, text=True, check=True
        )
        wall, cpu, peak, code = ran.stdout.split()
        return Once(float(wall), float(cpu), float(peak), int(code))


def read(path: Path, places: Mapping[str, str]) -> dict[str, Product]:
    """The products of a file; `{name}` of `places` and `{state}` are filled in. Unknown ones stay as they are."""
    table = tomllib.loads(path.read_text())
    words = {"{" + name + "}": place for name, place in places.items()}
    return {
        name: Product(name, _filled(settings, {**words, "{state}": str(STATE / name)}))
        for name, settings in table.items()
    }


def _filled(value: Any, places: Mapping[str, str]) -> Any:
    """`value` with each word of `places` replaced wherever it stands in a text."""
    if isinstance(value, str):
        for word, place in places.items():
            value = value.replace(word, place)
        return value
    if isinstance(value, Mapping):
        return {key: _filled(item, places) for key, item in value.items()}
    return [_filled(item, places) for item in value] if isinstance(value, list) else value
