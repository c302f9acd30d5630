"""Finds plugins by reading their manifests; no plugin code runs here.

Roots in order: the box (`garra.builtin`), installed packages (entry-point group `garra.plugins`), and
`STATE/extensions`. The first plugin with an id wins; a later one is listed as shadowed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources, util
from pathlib import Path
from typing import Any, Literal

from garra.config.paths import Paths
from garra.core.value import frozen
from garra.sdk.manifest import FILES, Manifest, ManifestInvalid, parse

Origin = Literal["bundled", "package", "global"]
GROUP = "garra.plugins"


@frozen
class Plugin:
    """One plugin as it was found. `package` is what its modules are imported from; empty for a plain folder.

    `reason` says why it is off; empty when it is on.
    """

    manifest: Manifest
    folder: Path
    origin: Origin
    package: str = ""
    reason: str = ""

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def enabled(self) -> bool:
        return not self.reason


@frozen
class Broken:
    """A folder that looks like a plugin and cannot be one, and why."""

    folder: Path
    origin: Origin
    reason: str


def read(folder: Path) -> Manifest | None:
    """The manifest in `folder`, None where there is none. Raises ManifestInvalid."""
    for name in FILES:
        file = folder / name
        if file.is_file():
            return parse(name, file.read_text("utf-8"), str(file))
    return None


def roots(paths: Paths) -> tuple[Iterator[Plugin | Broken], ...]:
    """What every root of an installation holds, in their order. Reading them blocks."""
    return (bundled(box()), installed(), extensions(paths.extensions))


def box() -> Path:
    """The folder of `garra.builtin`."""
    return Path(str(resources.files("garra") / "builtin"))


def bundled(root: Path) -> Iterator[Plugin | Broken]:
    """What is in the box below `root`, the folder of `garra.builtin`."""
    for file in sorted([*root.glob("*/manifest.toml"), *root.glob("*/*/manifest.toml")]):
        folder = file.parent
        package = ".".join(["garra.builtin", *folder.relative_to(root).parts])
        yield from _one(folder, "bundled", package)


def installed() -> Iterator[Plugin | Broken]:
    """Installed packages that name themselves in the entry-point group; they are found, not imported."""
    if not _named():
        return
    for point in importlib.import_module("importlib.metadata").entry_points(group=GROUP):
        spec = util.find_spec(point.value)
        if spec is not None and spec.submodule_search_locations:
            yield from _one(Path(spec.submodule_search_locations[0]), "package", point.value)


def _named() -> bool:
    """Whether an installed package may name itself; who looks closer loads a reader of mail and of archives."""
    for folder in map(Path, sys.path):
        if folder.is_file():
            return True  # an archive
        for found in folder.glob("*-info/entry_points.txt"):
            if GROUP in found.read_text("utf-8", "replace"):
                return True
    return False


def extensions(root: Path) -> Iterator[Plugin | Broken]:
    """Folders below `STATE/extensions`. Backups (`*.bak`) and hidden folders are nobody's plugins."""
    if not root.is_dir():
        return
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and not folder.name.startswith(".") and not folder.name.endswith(".bak"):
            yield from _one(folder, "global", "")


def _one(folder: Path, origin: Origin, package: str) -> Iterator[Plugin | Broken]:
    try:
        manifest = read(folder)
    except (ManifestInvalid, OSError, UnicodeDecodeError) as error:
        yield Broken(folder, origin, str(error))
        return
    if manifest is not None:
        yield Plugin(manifest, folder, origin, package)


def choose(found: list[Plugin], settings: Mapping[str, Any]) -> list[Plugin]:
    """Which of `found` are on, after `plugins` of the configuration.

    What is in the box is on unless denied. Everything else is off until `plugins.entries.<id>.enabled` is true.
    `plugins.enabled: false` turns off all but the box; `deny` beats everything; a non-empty `allow` lists who may.
    """
    entries, seen = settings.get("entries") or {}, set[str]()
    chosen = []
    for plugin in found:
        reason = _off(plugin, settings, entries.get(plugin.id) or {})
        if plugin.id in seen:
            reason = "another plugin with this id was found first"
        seen.add(plugin.id)
        chosen.append(replace(plugin, reason=reason))
    return chosen


def _off(plugin: Plugin, settings: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    if plugin.id in (settings.get("deny") or ()):
        return "denied by plugins.deny"
    if entry.get("enabled") is False:
        return f"plugins.entries.{plugin.id}.enabled is false"
    if plugin.origin == "bundled":
        return ""
    if settings.get("enabled") is False:
        return "plugins.enabled is false"
    allow = settings.get("allow") or ()
    if allow and plugin.id not in allow:
        return "not in plugins.allow"
    if entry.get("enabled") is not True:
        return f"off until plugins.entries.{plugin.id}.enabled is true"
    return ""
