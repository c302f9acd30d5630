"""How this program came onto the machine, and where its versions stand side by side.

Versions that `garra update` installs stand in ~/.local/share/garra/versions/<version>, each a virtual environment of
its own; `current` and `previous` there point to two of them.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from garra.config.paths import Paths
from garra.core.value import frozen
from garra.io.store import copies

Kind = Literal["versions", "venv", "pipx", "uv", "source", "container", "system"]

ADVICE: Final[dict[Kind, str]] = {
    "pipx": "pipx owns this installation: run `pipx upgrade garra`, then `garra gateway restart`",
    "uv": "uv owns this installation: run `uv tool upgrade garra`, then `garra gateway restart`",
    "source": "this is a source tree: update it with `git pull`, then `garra gateway restart`",
    "container": "this runs in a container: pull or build the new image and start it with the same volume",
    "system": "the system's own Python holds this installation: update it with what installed it",
}
"""What to do where another program owns the installation."""


@frozen
class Install:
    """One installation. `owned`: `garra update` may put another version in its place."""

    kind: Kind
    prefix: Path

    @property
    def owned(self) -> bool:
        return self.kind in ("versions", "venv")

    @property
    def advice(self) -> str:
        return ADVICE.get(self.kind, "")


def base(paths: Paths) -> Path:
    """Where the versions stand."""
    return paths.home / ".local" / "share" / "garra"


def versions(paths: Paths) -> Path:
    return base(paths) / "versions"


def python(folder: Path) -> Path:
    """The interpreter of a virtual environment."""
    return folder / "bin" / "python"


def current(paths: Paths) -> Path | None:
    """The interpreter of the version that `garra update` has put in place; None where it never did. Blocks."""
    found = python(base(paths) / "current")
    with suppress(OSError):
        if found.exists() and found.lstat().st_uid == os.getuid():
            return found
    return None


def program(paths: Paths) -> Path:
    """The interpreter that the next start of Garra is to use: the version in place, where this program is one of those
    that `garra update` knows. Blocks.
    """
    mine, place = Path(sys.executable), Path(sys.prefix).resolve()
    known = place.is_relative_to(versions(paths).resolve()) or place == (base(paths) / "previous").resolve()
    return (current(paths) if known else None) or mine


def detect(paths: Paths, prefix: Path | None = None) -> Install:
    """Which installation `prefix` (this program's) is. Blocks."""
    place = (prefix or Path(sys.prefix)).resolve()
    if place.is_relative_to(versions(paths).resolve()):
        return Install("versions", place)
    if (place / "garra-image").exists():  # our image leaves that mark; a container alone says nothing of it
        return Install("container", place)
    if (place / "pipx_metadata.json").exists():
        return Install("pipx", place)
    if (place / "uv-receipt.toml").exists():
        return Install("uv", place)
    if editable(place):
        return Install("source", place)
    return Install("venv" if (place / "pyvenv.cfg").exists() else "system", place)


def editable(prefix: Path) -> bool:
    """Whether Garra runs from its source tree there."""
    for found in metadata.distributions(path=list(map(str, prefix.glob("lib/python*/site-packages"))), name="garra"):
        text = found.read_text("direct_url.json")
        with suppress(ValueError, AttributeError, TypeError):
            if text and json.loads(text).get("dir_info", {}).get("editable"):
                return True
    return False


def kept(paths: Paths) -> Path:
    """The state database as it was before the last update."""
    return paths.state / "backups" / "state.db.before-update"


def keep(paths: Paths) -> Path:
    """Copy the state database before another version opens it. Blocks. Raises UserError, Unavailable."""
    copies.copy(paths.db, kept(paths))
    return kept(paths)
