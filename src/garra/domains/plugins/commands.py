"""The commands that plugins add to the command line: found in manifests, refused where a name is taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from garra.config.paths import Paths
from garra.core.value import frozen
from garra.domains.plugins import discover
from garra.domains.plugins.discover import Plugin
from garra.sdk.manifest import Command


@frozen
class Brought:
    """One command and the plugin it comes from."""

    command: Command
    plugin: Plugin


@frozen
class Found:
    """What the plugins that are on bring; `refused` says by plugin, in one line, why a command is not taken."""

    brought: tuple[Brought, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    def named(self, name: str) -> Brought | None:
        return next((one for one in self.brought if one.command.name == name), None)


def find(paths: Paths, settings: Mapping[str, Any], shipped: Collection[str]) -> Found:
    """The commands of the plugins that `settings` (the section `plugins`) switch on. No plugin code runs. Blocks.

    A plugin cannot take the name of one of the `shipped` commands, nor one that another plugin took before it.
    """
    found = [item for root in discover.roots(paths) for item in root if isinstance(item, Plugin)]
    on = [plugin for plugin in discover.choose(found, _sound(settings)) if plugin.enabled]
    return sorted_out([Brought(command, plugin) for plugin in on for command in plugin.manifest.commands], shipped)


def off(paths: Paths, settings: Mapping[str, Any], name: str) -> Plugin | None:
    """The plugin that is off (`reason` says why) and would bring the command `name`. No plugin code runs. Blocks."""
    found = [item for root in discover.roots(paths) for item in root if isinstance(item, Plugin)]
    bringing = (plugin for plugin in found if any(command.name == name for command in plugin.manifest.commands))
    return next((plugin for plugin in discover.choose([*bringing], _sound(settings)) if not plugin.enabled), None)


def sorted_out(declared: list[Brought], shipped: Collection[str]) -> Found:
    """Which of the declared commands are taken."""
    taken: dict[str, Brought] = {}
    refused = []
    for one in declared:
        name, plugin = one.command.name, one.plugin.id
        first = taken.get(name)
        if name in shipped:
            refused.append((plugin, f"plugin {plugin}: its command {name} is not taken: Garra has one of that name"))
        elif first is not None:
            owner = first.plugin.id
            refused.append((plugin, f"plugin {plugin}: its command {name} is not taken: plugin {owner} has one"))
        else:
            taken[name] = one
    return Found(tuple(taken.values()), tuple(refused))


def _sound(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The section with what has another form than it should left out: nothing has checked it here."""
    entries = settings.get("entries")
    named = entries.items() if isinstance(entries, Mapping) else ()
    kept: dict[str, Any] = {key: settings[key] for key in ("allow", "deny") if isinstance(settings.get(key), list)}
    kept["entries"] = {name: entry for name, entry in named if isinstance(entry, Mapping)}
    return kept if settings.get("enabled") is not False else {**kept, "enabled": False}
