"""The commands that plugins bring. Their manifests are read only where the configuration's text names plugins."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from garra.domains.plugins import commands
from garra.domains.plugins.commands import Brought, Found
from garra.faces.cli import output, place, table
from garra.faces.cli.place import Place
from garra.faces.cli.table import Command
from garra.sdk import manifest


class Here:
    """What a command is given (`sdk.command.Context`)."""

    def __init__(self, place: Place, config: Mapping[str, Any]) -> None:
        self._place = place
        self._config = config

    @property
    def config(self) -> Mapping[str, Any]:
        return self._config

    @property
    def state(self) -> Path:
        return self._place.paths.state

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        quick = importlib.import_module("garra.client.quick")  # not for a command that asks no gateway
        return quick.call(self._place.target(), method, params, scopes=("operator.admin",))


def found(here: Place) -> Found:
    """The commands of the plugins that are on, and those that are refused. Reads manifests; no plugin code runs."""
    settings = here.config.get("plugins")
    return commands.find(here.paths, settings if isinstance(settings, dict) else {}, shipped())


def shipped() -> frozenset[str]:
    """The names that no plugin can take."""
    words = {name.split()[0] for row in table.COMMANDS for name in (row.name, *row.aliases)}
    return frozenset(words | {"help", "version"})


def overview() -> str:
    """The whole of `garra --help`; why a command is refused is said on standard error."""
    look = found(place.here())
    for _plugin, line in look.refused:
        output.note(f"garra: {line}")
    rows = (Command(one.command.name, output.harmless(one.command.summary), "") for one in look.brought)
    return table.overview(tuple(rows))


def listed() -> list[manifest.Command]:
    return [one.command for one in found(place.here()).brought]


def names() -> list[str]:
    return [command.name for command in listed()]


def off(name: str) -> str:
    """How to switch on the plugin that would bring the command `name`, in a line; empty when none would."""
    where = place.here()
    settings = where.config.get("plugins")
    plugin = commands.off(where.paths, settings if isinstance(settings, dict) else {}, name)
    if plugin is None:
        return ""
    key = f"plugins.entries.{plugin.id}.enabled"
    why = (
        f"; switch it on with: {where.command} config set {key} true" if key in plugin.reason else f": {plugin.reason}"
    )
    return f"{name} is a command of the plugin {plugin.id}, which is off{why}"


def run(arguments: Sequence[str]) -> int | None:
    """Run the command that the arguments begin with, None when no plugin brings it.

    Raises UserError when its plugin is broken.
    """
    here = place.here()
    one = found(here).named(arguments[0])
    if one is None:
        return None
    rest = list(arguments[1:])
    if rest[:1] in (["--help"], ["-h"]):
        sys.stdout.write(told(one))
        return 0
    load = importlib.import_module("garra.domains.plugins.load")  # not for --help
    code: int = load.command(one.plugin, one.command, rest, Here(here, _settings(here, one)))
    return code


def told(one: Brought) -> str:
    """What `--help` says of a command: its manifest's words."""
    command = one.command
    text = f"usage: garra {command.name} ...\n\n{command.summary}\n"
    text += f"\n{command.help}\n" if command.help else ""
    return output.harmless(f"{text}\nA command of the plugin {one.plugin.id}.\n")


def _settings(here: Place, one: Brought) -> Mapping[str, Any]:
    value: Any = here.config
    for key in ("plugins", "entries", one.plugin.id, "config"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
