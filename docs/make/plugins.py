"""The pages for those who write plugins: the manifest, and the contracts with their docstrings."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator

from docs.make.page import docstring, join, table

from garra.sdk import channel, command, context, manifest, model, plugin, ports, sandbox, tool

CONTRACTS: dict[types.ModuleType, str] = {
    plugin: "What a plugin registers",
    tool: "Tools",
    channel: "Channels",
    model: "Model families",
    context: "Context engines",
    sandbox: "Sandboxes",
    command: "Commands",
    ports: "Ports: what a part is handed",
}
KEYS = {
    "id": ("text", "Lower-case letters, digits, dot, dash; at most 64. What the configuration calls it."),
    "kind": ("text", "What it is: " + ", ".join(f"`{each}`" for each in manifest.KINDS) + "."),
    "api": ("number", f"The contract it was written for; now {manifest.API}. A newer one is refused with words."),
    "name": ("text", "What people call it."),
    "description": ("text", "A line about it."),
    "version": ("text", "Its version."),
    "module": (
        "`module:Name`",
        "The one thing it brings, for the kinds that bring one; `provides` is its name, else the id.",
    ),
    "provides": ("text", "The name of what `module` brings."),
    "tool": ("tables", "`[[tool]]`: what it brings, where that is several; each with `name` and `module`."),
    "part": ("tables", "`[[part]]`: the same for other kinds."),
    "command": (
        "tables",
        "`[[command]]`: commands for the command line; each with `name`, `summary`, `module`, `help`.",
    ),
    "needs": ("list", "Ports that each part is handed, shown to the owner at install."),
    "settings": ("JSON Schema", "The keys of its configuration; what does not fit is refused before its code runs."),
    "order": ("number", "Where its parts stand among those of others; 100."),
    "extra": ("text", "The name under which the packages it needs are installed (`garra plugins install`)."),
    "imports": ("list", "Modules of other people's packages without which it cannot serve."),
    "better": ("list", "Modules with which it serves better."),
}
READ = re.compile(r"body\.get\(\"(\w+)\"|\"(\w+)\" in body|body\[\"(\w+)\"\]")


def read() -> set[str]:
    """The keys that the reader of `manifest.toml` looks at."""
    functions = (manifest._own,)  # noqa: SLF001 - the reader itself is asked what it reads
    return {next(filter(None, found)) for each in functions for found in READ.findall(inspect.getsource(each))}


def manifests() -> str:
    """docs/reference/manifest.md"""
    return join(
        "# The manifest of a plugin",
        '```toml\nid = "weather"\nkind = "tool"\napi = 1\n\n[[tool]]\nname = "weather"\nmodule = "tool:Weather"\n```',
        "`manifest.toml` in the plugin's folder says what it is, as data: nothing of it runs before the owner switches it"
        " on. A plugin whose code is broken is still listed, and its settings are still checked."
        " `openclaw.plugin.json` is read beside it (`id`, `name`, `description`, `version`, `configSchema`; with `python`"
        " it runs, plugins for Node are listed and do not run).",
        table(("key", "value", "meaning"), ((f"`{key}`", what, said) for key, (what, said) in KEYS.items())),
        "A key of `settings.properties` may say more than JSON Schema does: `secret` keeps its value out of every print,"
        " `env` names the variable that the default account reads, `file` the key that names a file holding it, `unique`"
        " that no two accounts share it, `pattern` the form of the whole text.",
        "How to write one: [a tool](../howto/add-a-tool.md), [a channel](../howto/add-a-channel.md),"
        " [a provider](../howto/add-a-provider.md), [a command](../howto/add-a-command.md). What code may call:"
        " [the contracts](plugin-api.md).",
    )


def contracts() -> str:
    """docs/reference/plugin-api.md"""
    return join(
        "# Contracts for plugins",
        "```python\nfrom garra.sdk.tool import Call, Result, ToolInfo, Update\n```",
        "What a plugin implements, and what it is handed: all of `garra.sdk` that plugins meet. A contract with `async def`"
        " is implemented, not inherited from; a class that has its methods is one. This page is made from the code.",
        *(join(f"## {title}", f"`{module.__name__}`", docstring(module.__doc__), *_classes(module))
          for module, title in CONTRACTS.items()),
    )  # fmt: skip


def _classes(module: types.ModuleType) -> Iterator[str]:
    for name, found in vars(module).items():
        if inspect.isclass(found) and found.__module__ == module.__name__ and not name.startswith("_"):
            yield join(f"### {name}", docstring(found.__doc__), _fields(found), *_methods(found))


def _fields(found: type) -> str:
    own = inspect.get_annotations(found)
    rows = [(f"`{name}`", f"`{_short(kind)}`") for name, kind in own.items() if not name.startswith("_")]
    return table(("field", "type"), rows)


def _short(kind: object) -> str:
    return str(kind).replace("typing.", "").replace("collections.abc.", "")


def _methods(found: type) -> Iterator[str]:
    for name, each in vars(found).items():
        if inspect.isfunction(each) and (not name.startswith("_") or name == "__call__"):
            yield join(f"```text\n{_signature(name, each)}\n```", docstring(each.__doc__))


def _signature(name: str, each: types.FunctionType) -> str:
    given = ", ".join(
        str(one).replace("'", "") for one in inspect.signature(each).parameters.values() if one.name != "self"
    )
    answer = str(inspect.get_annotations(each).get("return", "None"))
    word = "async def" if inspect.iscoroutinefunction(each) else "def"
    return f"{word} {name}({given}) -> {answer}"


def mute() -> list[str]:
    """Keys of the manifest and contracts without a line."""
    lost = [f"manifest key {key}" for key in read() ^ KEYS.keys()]
    for module in CONTRACTS:
        for name, found in vars(module).items():
            if inspect.isclass(found) and found.__module__ == module.__name__ and not (found.__doc__ or "").strip():
                lost.append(f"{module.__name__}.{name}")
    return lost
