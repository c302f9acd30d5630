"""The packages of others that a plugin needs: whether they are there, and the lock they are installed from.

Nothing is imported to find out.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources, util
from pathlib import Path

from garra.domains.plugins.discover import Plugin
from garra.sdk.manifest import Manifest

APART: Mapping[str, Manifest] = {
    "keyring": Manifest("keyring", "plugin", name="The system's keyring", extra="keyring", imports=("keyring",)),
    "migrate": Manifest(
        "migrate", "plugin", name="Taking over from others", extra="migrate", imports=("zstandard", "yaml")
    ),
    "otel": Manifest(
        "otel", "plugin", name="OpenTelemetry", extra="otel", imports=("opentelemetry.exporter.otlp.proto.http",)
    ),
}
"""Extras of Garra itself, which no plugin brings."""


def apart(name: str) -> Plugin | None:
    """An extra of that name, as what is installed; None where there is none."""
    found = APART.get(name)
    return Plugin(found, Path(str(resources.files("garra"))), "bundled") if found else None


def missing(manifest: Manifest) -> tuple[str, ...]:
    """Which of its `imports` this interpreter does not find now, what was installed since its start included."""
    return _absent(manifest.imports)


def _absent(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return ()
    importlib.invalidate_caches()
    return tuple(name for name in names if not _there(name))


def _there(name: str) -> bool:
    with suppress(ModuleNotFoundError):  # of a name with dots: what it stands below
        return util.find_spec(name) is not None
    return False


def lock(plugin: Plugin) -> Path | None:
    """The pinned packages of its extra: beside its manifest, or Garra's own for what is in the box; None without."""
    name = f"{plugin.manifest.extra}.lock"
    places = [plugin.folder]
    if plugin.origin == "bundled":
        package = Path(str(resources.files("garra")))
        places += [package / "locks", package.parents[1] / "requirements" / "extras"]
    found = (folder / name for folder in places if plugin.manifest.extra)
    return next((file for file in found if file.is_file()), None)


def needed(plugin: Plugin) -> str:
    """One line on what its owner does about packages that are missing; empty when none is. Blocks."""
    lacking = missing(plugin.manifest)
    if not lacking:
        return ""
    name = plugin.manifest.name or plugin.id
    if lock(plugin):
        return f"{name} needs packages that are not installed yet: run `{command(plugin)}`"
    return f"{name} needs packages that are not installed: install what provides the modules {', '.join(lacking)}"


def welcome(plugin: Plugin) -> str:
    """One line on packages without which it serves, but not as well; empty when all are there. Blocks."""
    lacking = _absent(plugin.manifest.better)
    if not lacking:
        return ""
    name = plugin.manifest.name or plugin.id
    how = f"run `{command(plugin)}`" if lock(plugin) else f"install what provides {', '.join(lacking)}"
    return f"{name} would do better with packages that are not installed: {how}"


def command(plugin: Plugin) -> str:
    """What installs its packages."""
    return f"garra {'channels' if plugin.manifest.kind == 'channel' else 'plugins'} install {plugin.id}"
