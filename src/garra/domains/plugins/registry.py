"""What is switched on, by what it brings: tools, API families, sandboxes. Code loads when one is asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from garra.core.errors import NotFound
from garra.core.value import frozen
from garra.domains.plugins import discover, load
from garra.domains.plugins.discover import Plugin
from garra.sdk.channel import Account, Channel, Ports
from garra.sdk.manifest import Kind
from garra.sdk.model import Api
from garra.sdk.sandbox import Sandbox
from garra.sdk.tool import Tool

if TYPE_CHECKING:
    from garra.sdk.context import ContextEngine

log = logging.getLogger(__name__)

Check = Callable[[Mapping[str, Any], Any], Iterable[str]]
"""Checks a value against a JSON Schema and gives its faults, each a line."""


@frozen
class Row:
    """One plugin as the owner is shown it. `broken`: it cannot serve, whatever the owner wants."""

    id: str
    kind: Kind
    origin: str
    enabled: bool
    status: str
    folder: Path
    broken: bool = False


class Registry:
    """All plugins of one process. `ports` are what the host can hand out, by name."""

    def __init__(self, ports: Mapping[str, Any]) -> None:
        self._ports = ports
        self._plugins: list[Plugin] = []
        self._broken: list[discover.Broken] = []
        self._faults: dict[str, str] = {}
        self._made: dict[tuple[str, str], Any] = {}
        self._windows: dict[str, load.Window] = {}

    def scan(
        self, roots: Iterable[Iterable[Plugin | discover.Broken]], settings: Mapping[str, Any], check: Check
    ) -> None:
        """Find plugins, decide which are on, check their settings. No plugin code runs."""
        found = [item for root in roots for item in root]
        self._broken = [item for item in found if isinstance(item, discover.Broken)]
        plugins = [item for item in found if isinstance(item, Plugin)]
        self._plugins = sorted(discover.choose(plugins, settings), key=lambda plugin: plugin.manifest.order)
        entries = settings.get("entries") or {}
        on = {plugin.id for plugin in self._plugins if plugin.enabled}
        self._windows = {name: window for name, window in self._windows.items() if name in on}
        self._faults = {}
        for plugin in self._plugins:
            config = (entries.get(plugin.id) or {}).get("config") or {}
            checked = plugin.enabled and plugin.manifest.settings and plugin.manifest.kind != "channel"
            faults = list(check(plugin.manifest.settings, config)) if checked else []  # a channel's are per account
            if faults:
                self._faults[plugin.id] = f"plugins.entries.{plugin.id}.config: {faults[0]}"
            elif plugin.enabled and plugin.manifest.kind == "plugin":
                self._register(plugin, config)

    def _register(self, plugin: Plugin, config: Mapping[str, Any]) -> None:
        try:
            self._windows[plugin.id] = load.register(plugin, config, self._ports)
        except load.Broken as error:
            self._fault(plugin.id, str(error))

    def _fault(self, plugin: str, reason: str) -> None:
        self.blame(plugin, reason)
        log.warning("%s", reason)

    def blame(self, plugin: str, reason: str) -> None:
        """Say why a plugin that is on cannot serve."""
        self._faults[plugin] = reason

    def prove(self) -> None:
        """Load the tools of every plugin that is on, so that `rows` says which are broken. Blocks.

        A tool that needs ports is imported only, for the ports at hand may be none.
        """
        for plugin in self.of("tool"):
            try:
                for part in plugin.manifest.parts:
                    if plugin.manifest.needs:
                        load.attribute(plugin, part)
                    else:
                        self._one("tool", part.name)
            except load.Broken as error:
                self.blame(plugin.id, str(error))

    def rows(self) -> list[Row]:
        hidden = self._hidden()
        listed = [
            Row(
                plugin.id,
                plugin.manifest.kind,
                plugin.origin,
                plugin.enabled and plugin.id not in self._faults,
                self._faults.get(plugin.id) or plugin.reason or hidden.get(plugin.id) or "ready",
                plugin.folder,
                plugin.id in self._faults,
            )
            for plugin in self._plugins
        ]
        broken = [
            Row(item.folder.name, "plugin", item.origin, False, item.reason, item.folder, broken=True)
            for item in self._broken
        ]
        return [*listed, *broken]

    def _hidden(self) -> dict[str, str]:
        """By plugin, why a tool of it is never offered: the first of a name counts."""
        first: dict[str, Plugin] = {}
        hidden = {}
        for plugin, name in self._tool_names():
            holder = first.setdefault(name, plugin)
            if holder is not plugin:
                whose = "the built-in tool" if holder.origin == "bundled" else f"the tool of plugin {holder.id}"
                hidden[plugin.id] = f"its tool {name} is hidden by {whose} of that name: give it another name"
        return hidden

    def _tool_names(self) -> Iterator[tuple[Plugin, str]]:
        """The tools in the order in which `tools` gives them, by the name that a model would call."""
        for plugin in self.of("tool"):
            for part in plugin.manifest.parts:
                made = self._made.get((plugin.id, part.name))
                yield plugin, made.info.name if made is not None else part.name
        for plugin in self.of("plugin"):
            window = self._windows.get(plugin.id)
            yield from ((plugin, name) for name in (window.tools if window is not None else ()))

    def remove(self, plugin: str) -> None:
        """Take away everything a plugin brought."""
        self._windows.pop(plugin, None)
        self._made = {key: made for key, made in self._made.items() if key[0] != plugin}
        self._plugins = [found for found in self._plugins if found.id != plugin]

    def api(self, family: str) -> Api:
        """The API family of that name, loaded now if need be. Raises NotFound, or Broken when its code is."""
        for window in self._windows.values():
            if family in window.apis:
                return window.apis[family]
        made: Api = self._one("api", family)
        return made

    def sandboxes(self) -> dict[str, Sandbox]:
        """Every sandbox by name, preferred first; one that does not load is left out and logged."""
        made: dict[str, Sandbox] = dict(self._all("sandbox"))
        for window in self._windows.values():
            made.update(window.sandboxes)
        return made

    def tools(self) -> list[Tool]:
        """Every tool; one that does not load is left out and logged."""
        listed: list[Tool] = [made for _, made in self._all("tool")]
        return listed + [tool for window in self._windows.values() for tool in window.tools.values()]

    def channel(self, name: str, account: Account, ports: Ports) -> Channel:
        """A new channel of that name for one account. Raises NotFound, or Broken when its code is."""
        for plugin in self._on("channel"):
            for part in plugin.manifest.parts:
                if part.name == name:
                    return load.channel(plugin, part, account, ports)
        known = ", ".join(plugin.id for plugin in self._on("channel"))
        raise NotFound(f"no channel is called {name!r}; there is {known}")

    def context(self, name: str, settings: Mapping[str, Any]) -> ContextEngine:
        """A new context engine of that name. Raises NotFound, or Broken when its code or its settings are."""
        for plugin in self._on("context"):
            for part in plugin.manifest.parts:
                if part.name == name:
                    if fault := self._faults.get(plugin.id):
                        raise load.Broken(fault)
                    return load.context(plugin, part, settings, self._ports)
        known = ", ".join(["legacy", *(part.name for plugin in self._on("context") for part in plugin.manifest.parts)])
        raise NotFound(f"no context engine is called {name!r}; there is {known}")

    def of(self, kind: Kind) -> list[Plugin]:
        """The plugins of a kind that are on and sound."""
        return [plugin for plugin in self._on(kind) if plugin.id not in self._faults]

    def names(self, kind: Kind) -> frozenset[str]:
        """What the plugins of a kind bring by name, those that are off too."""
        listed = (plugin.manifest for plugin in self._plugins if plugin.manifest.kind == kind)
        return frozenset(part.name for manifest in listed for part in manifest.parts)

    def _one(self, kind: Kind, name: str) -> Any:
        for plugin in self._on(kind):
            for part in plugin.manifest.parts:
                if part.name == name:
                    key = (plugin.id, name)
                    if key not in self._made:
                        self._made[key] = load.build(plugin, part, self._ports)
                    return self._made[key]
        known = ", ".join(part.name for plugin in self._on(kind) for part in plugin.manifest.parts)
        raise NotFound(f"no {kind} is called {name!r}; there is {known}")

    def _all(self, kind: Kind) -> Iterable[tuple[str, Any]]:
        for plugin in self._on(kind):
            for part in plugin.manifest.parts:
                try:
                    yield part.name, self._one(kind, part.name)
                except load.Broken as error:
                    self._fault(plugin.id, str(error))

    def _on(self, kind: Kind) -> list[Plugin]:
        return [plugin for plugin in self._plugins if plugin.enabled and plugin.manifest.kind == kind]
