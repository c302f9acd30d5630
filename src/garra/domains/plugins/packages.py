"""The packages of others that a plugin needs: whether they are there, and the lock they are installed from.

Nothing is imported to find out.
"""

from __future__ import annotations

import importlib
from importlib import resources, util
from pathlib import Path

from garra.domains.plugins.discover import Plugin
from garra.sdk.manifest import Manifest


def missing(manifest: Manifest) -> tuple[str, ...]:
    """Which of its `imports` this interpreter does not find now, what was installed since its start included."""
    if not manifest.imports:
        return ()
    importlib.invalidate_caches()
    return tuple(name for name in manifest.imports if util.find_spec(name) is None)


def lock(plugin: Plugin) -> Path | None:
    """The pinned packages of its extra: beside its manifest, or Garra's own for what is in the box; None without."""
    name = f"{plugin.manifest.extra}.lock"
    places = [plugin.folder]
    if plugin.origin == "bundled":
        package = Path(str(resources.files("garra")))
        places += [package / "locks", package.parents[1] / "requirements" / "channels"]
    found = (folder / name for folder in places if plugin.manifest.extra)
    return next((file for file in found if file.is_file()), None)


def needed(plugin: Plugin) -> str:
    """One line on what its owner does about packages that are missing; empty when none is. Blocks."""
    lacking = missing(plugin.manifest)
    if not lacking:
        return ""
    name = plugin.manifest.name or plugin.id
    if lock(plugin):
        return f"{name} needs packages that are not installed yet: run `garra channels install {plugin.id}`"
    return f"{name} needs packages that are not installed: install what provides the modules {', '.join(lacking)}"
