"""Loads plugin code: the one place that imports by name. Nothing loads before it is asked for.

A plugin that fails is off with its reason; it never stops the gateway or another plugin.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from garra.core.errors import GarraError, UserError
from garra.domains.plugins import packages
from garra.domains.plugins.discover import Plugin
from garra.sdk.channel import Account, Channel, Ports
from garra.sdk.command import Context, Run
from garra.sdk.manifest import Command, Part
from garra.sdk.model import Api
from garra.sdk.sandbox import Sandbox
from garra.sdk.tool import Tool

if TYPE_CHECKING:
    from garra.sdk.context import ContextEngine, Make

log = logging.getLogger(__name__)


class Broken(UserError):
    """A plugin's code could not be used; the message names the plugin and the fault."""


class Window:
    """One plugin's register window (`sdk.plugin.PluginApi`): open while `register` runs, then closed for good."""

    def __init__(self, plugin: Plugin, config: Mapping[str, Any], ports: Mapping[str, Any]) -> None:
        self.id, self.config, self._plugin = plugin.id, config, plugin
        self.tools: dict[str, Tool] = {}
        self.apis: dict[str, Api] = {}
        self.sandboxes: dict[str, Sandbox] = {}
        self._ports = {name: ports[name] for name in plugin.manifest.needs if name in ports}
        self._open = True

    def tool(self, tool: Tool) -> None:
        self._add(self.tools, tool.info.name, guest(self._plugin, tool))

    def api(self, api: Api) -> None:
        self._add(self.apis, api.family, api)

    def sandbox(self, name: str, sandbox: Sandbox) -> None:
        self._add(self.sandboxes, name, sandbox)

    def port(self, name: str) -> Any:
        self._check()
        if name not in self._ports:
            raise UserError(f"plugin {self.id} asks for the port {name}, which its manifest does not list under needs")
        return self._ports[name]

    def close(self) -> None:
        self._open = False

    def _add(self, table: dict[str, Any], name: str, value: Any) -> None:
        self._check()
        if name in table:
            raise UserError(f"plugin {self.id} registers {name} twice")
        table[name] = value

    def _check(self) -> None:
        if not self._open:
            raise UserError(f"plugin {self.id}: the register window is closed; register everything inside register()")


def attribute(plugin: Plugin, part: Part) -> Any:
    """Import what `part` names. Raises Broken."""
    module, _, name = part.module.partition(":")
    try:
        found = getattr(_module(plugin, module), name, None)
    except Exception as error:
        log.debug("plugin %s does not import", plugin.id, exc_info=True)
        raise Broken(f"plugin {plugin.id} does not load: {type(error).__name__}: {error}") from error
    if found is None:
        raise Broken(f"plugin {plugin.id} does not load: {module} has no {name}")
    return found


def build(plugin: Plugin, part: Part, ports: Mapping[str, Any]) -> Any:
    """Make what `part` names, handing it the ports its manifest needs. Raises Broken."""
    maker: Callable[..., Any] = attribute(plugin, part)
    missing = [name for name in plugin.manifest.needs if name not in ports]
    if missing:
        raise Broken(f"plugin {plugin.id} needs {', '.join(missing)}, which this host does not have")
    try:
        made = maker(**{name: ports[name] for name in plugin.manifest.needs})
    except Exception as error:
        raise Broken(f"plugin {plugin.id} does not start: {type(error).__name__}: {error}") from error
    return guest(plugin, made) if plugin.manifest.kind == "tool" else made


def guest(plugin: Plugin, tool: Tool) -> Tool:
    """A tool from outside the box is told as one, whatever it says of itself. Raises Broken where it cannot be."""
    if plugin.origin != "bundled" and tool.info.source != "plugin":
        try:
            tool.info = replace(tool.info, source="plugin")
        except AttributeError:
            raise Broken(f'plugin {plugin.id}: its tool {tool.info.name} has to say source="plugin"') from None
    return tool


def channel(plugin: Plugin, part: Part, account: Account, ports: Ports) -> Channel:
    """Make what `part` names for one account. Raises Broken, also when packages it needs are not installed."""
    if lacking := packages.needed(plugin):
        raise Broken(lacking)
    maker: Callable[[Account, Ports], Channel] = attribute(plugin, part)
    try:
        return maker(account, ports)
    except Exception as error:
        log.debug("channel %s does not start", plugin.id, exc_info=True)
        raise Broken(f"channel {plugin.id} cannot serve {account.id}: {type(error).__name__}: {error}") from error


def context(plugin: Plugin, part: Part, settings: Mapping[str, Any], ports: Mapping[str, Any]) -> ContextEngine:
    """Make the context engine that `part` names, with its own settings. Raises Broken."""
    maker: Make = attribute(plugin, part)
    missing = [name for name in plugin.manifest.needs if name not in ports]
    if missing:
        raise Broken(f"plugin {plugin.id} needs {', '.join(missing)}, which this host does not have")
    try:
        return maker(settings, **{name: ports[name] for name in plugin.manifest.needs})
    except Exception as error:
        log.debug("context engine %s does not start", plugin.id, exc_info=True)
        raise Broken(f"plugin {plugin.id} does not start: {type(error).__name__}: {error}") from error


def command(plugin: Plugin, asked: Command, arguments: Sequence[str], context: Context) -> int:
    """Run a command that a plugin brings, and give its exit code. Raises Broken, and what the command says itself."""
    run: Run = attribute(plugin, Part(asked.name, asked.module))
    try:
        code = run(arguments, context)
    except (GarraError, BrokenPipeError):
        raise
    except Exception as error:
        log.debug("command %s of plugin %s failed", asked.name, plugin.id, exc_info=True)
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise Broken(f"plugin {plugin.id}: its command {asked.name} failed: {why}") from error
    if code is not None and not isinstance(code, int):
        raise Broken(f"plugin {plugin.id}: its command {asked.name} gave back {code!r}, which is no exit code")
    return code or 0


def register(plugin: Plugin, config: Mapping[str, Any], ports: Mapping[str, Any]) -> Window:
    """Run a plugin's `register` in its window and close it. Raises Broken."""
    window = Window(plugin, config, ports)
    if plugin.manifest.runtime != "python":
        raise Broken(f"plugin {plugin.id} is written for Node; Garra runs Python plugins")
    for part in plugin.manifest.parts:
        call = attribute(plugin, part)
        try:
            answer = call(window)
        except Exception as error:
            raise Broken(f"plugin {plugin.id} does not register: {type(error).__name__}: {error}") from error
        finally:
            window.close()
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise Broken(f"plugin {plugin.id}: plugin register must be synchronous")
    return window


def _module(plugin: Plugin, name: str) -> ModuleType:
    if plugin.package:
        return importlib.import_module(f"{plugin.package}.{name}")
    return _from_folder(plugin, name)


def _from_folder(plugin: Plugin, name: str) -> ModuleType:
    """Import from a plain folder under a name of its own, without putting the folder on the search path."""
    full = f"garra_extension_{plugin.id.replace('-', '_').replace('.', '_')}"
    package = sys.modules.get(full)
    if package is None:
        spec = importlib.util.spec_from_file_location(
            full, plugin.folder / "__init__.py", submodule_search_locations=[str(plugin.folder)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{plugin.folder} cannot be imported")
        package = importlib.util.module_from_spec(spec)
        sys.modules[full] = package
        if (plugin.folder / "__init__.py").is_file():
            spec.loader.exec_module(package)
    return importlib.import_module(f"{full}.{name}")
