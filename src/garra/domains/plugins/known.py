"""The plugins of one installation: where they lie, which are on, and what those bring that are data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import UserError
from garra.core.schema import faults
from garra.domains.plugins import discover
from garra.domains.plugins.discover import Plugin
from garra.domains.plugins.registry import Registry, Row
from garra.sdk.manifest import FILES
from garra.sdk.provider import Provider, parse

log = logging.getLogger(__name__)

PORTS = (
    "http",
    "spawn",
    "clock",
    "probe",
    "children",
    "weights",
    "web",
    "bounded",
    "sight",
    "shelf",
    "browsing",
    "recall",
    "cloud",
)
"""What a host hands out, by name."""


def scan(registry: Registry, paths: Paths, config: Config) -> None:
    """Find the plugins of this installation. Blocks: reads manifests."""
    registry.scan(discover.roots(paths), _settings(config), faults)


def tried(paths: Paths, config: Config) -> list[Row]:
    """Every plugin as the owner is shown it: those that are on are loaded, so that what is broken says so.

    No house is opened, nothing is connected. Blocks.
    """
    registry = Registry(dict.fromkeys(PORTS))
    scan(registry, paths, config)
    for plugin in registry.of("provider"):
        try:
            _provider(plugin)
        except UserError as error:
            registry.blame(plugin.id, error.message)
    registry.prove()
    return registry.rows()


def brought(paths: Paths, config: Config) -> tuple[Provider, ...]:
    """The providers of the plugins that are on; no plugin code runs. Blocks: reads files."""
    return providers(_on(paths, config))


def channels(paths: Paths, config: Config) -> list[Plugin]:
    """The channels that are on; no plugin code runs. Blocks: reads manifests."""
    return [plugin for plugin in _on(paths, config) if plugin.manifest.kind == "channel"]


def tools(paths: Paths, config: Config) -> list[Plugin]:
    """What brings tools and is on; no plugin code runs. Blocks: reads manifests."""
    return [plugin for plugin in _on(paths, config) if plugin.manifest.kind == "tool"]


def providers(plugins: Iterable[Plugin]) -> tuple[Provider, ...]:
    """What those of `plugins` bring that are providers, which are data; one that cannot be read is logged. Blocks."""
    return tuple(_readable(plugin for plugin in plugins if plugin.manifest.kind == "provider"))


def box_providers() -> frozenset[str]:
    """The ids and other names of the providers in the box. Blocks: reads files."""
    files = sorted((discover.box() / "providers").glob("*.toml"))
    found = [parse(file.read_text("utf-8"), file.name) for file in files]
    return frozenset(name for provider in found for name in (provider.id, *provider.aliases))


def builtin_tools() -> frozenset[str]:
    """The names of the tools in the box. Blocks: reads manifests."""
    box = [item for item in discover.bundled(discover.box()) if isinstance(item, Plugin)]
    return frozenset(part.name for plugin in box if plugin.manifest.kind == "tool" for part in plugin.manifest.parts)


def _on(paths: Paths, config: Config) -> list[Plugin]:
    found = [item for root in discover.roots(paths) for item in root if isinstance(item, Plugin)]
    return [plugin for plugin in discover.choose(found, _settings(config)) if plugin.enabled]


def _settings(config: Config) -> Mapping[str, Any]:
    return config.plugins.model_dump(by_alias=True)


def _readable(plugins: Iterable[Plugin]) -> Iterator[Provider]:
    for plugin in plugins:
        try:
            yield _provider(plugin)
        except UserError as error:
            log.warning("%s", error.message)


def _provider(plugin: Plugin) -> Provider:
    file = plugin.folder / FILES[0]
    return parse(file.read_text("utf-8"), str(file))
