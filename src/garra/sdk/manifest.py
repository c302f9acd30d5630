"""A plugin's manifest: what it is, told as data, so that nothing of it runs before it is wanted.

`manifest.toml` is Garra's own form; `openclaw.plugin.json` is read beside it. Discovery reads only these files: a
plugin whose code is broken is still listed, and its settings are still checked.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, get_args

import msgspec

from garra.core.errors import UserError
from garra.core.patterns import later
from garra.core.value import frozen

API = 1
"""The version of this contract. A manifest that asks for a newer one is refused with words."""

Kind = Literal["channel", "api", "provider", "tool", "memory", "context", "sandbox", "leaf", "hooks", "plugin"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FILES = ("manifest.toml", "openclaw.plugin.json")
_ID = later(r"^[a-z0-9][a-z0-9._-]{0,63}$")
_EXTRA = later(r"^[a-z0-9][a-z0-9-]{0,63}$")
_COMMAND = later(r"^[a-z][a-z0-9-]{0,39}$")
_MODULE = later(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")


class ManifestInvalid(UserError):
    """The manifest does not say what it must; the message names the file and the fault."""


@frozen
class Part:
    """One thing a plugin brings: `name` as others ask for it, `module` as `module:attribute` inside the package."""

    name: str
    module: str


@frozen
class Command:
    """One command of the command line: `name` is what a person types after `garra`, `summary` its line in `--help`.

    `module` is `module:attribute` inside the package, a function as `sdk.command.Run`; `help` is what
    `garra NAME --help` says below the summary.
    """

    name: str
    summary: str
    module: str
    help: str = ""


@frozen
class Manifest:
    """What a plugin says of itself.

    `parts` lists what it brings; one part for most kinds, several for `tool`. `commands` are what it adds to the
    command line, whatever its kind. `needs` are the ports the host hands to each part as keyword arguments, shown
    to the owner at install. `settings` is a JSON Schema of the plugin's configuration. `runtime` is `python`, or
    `node` for packages of the original. `imports` are the top-level modules of other people's packages without
    which its parts cannot serve, `better` those with which they serve better, `extra` the name under which those
    packages are installed (`garra plugins install`, or `garra[extra]`).
    """

    id: str
    kind: Kind
    parts: tuple[Part, ...] = ()
    needs: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    description: str = ""
    version: str = ""
    runtime: Literal["python", "node"] = "python"
    order: int = 100
    extra: str = ""
    imports: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()


def parse(name: str, text: str, where: str) -> Manifest:
    """Read a manifest file called `name` holding `text`; `where` is shown in errors.

    Raises ManifestInvalid.
    """
    if name == "manifest.toml":
        try:
            body = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ManifestInvalid(f"{where}: not TOML: {error}") from None
        return _own(body, where)
    try:
        body = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ManifestInvalid(f"{where}: not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ManifestInvalid(f"{where}: a manifest is an object")
    return _original(body, where)


def _own(body: Mapping[str, Any], where: str) -> Manifest:
    if int(body.get("api", API)) > API:
        raise ManifestInvalid(
            f"{where}: written for plugin contract {body['api']}; this Garra speaks {API}. Update Garra."
        )
    kind = _kind(body.get("kind"), where)
    listed = body.get("part", body.get("tool", []))
    if "module" in body:
        listed = [{"name": body.get("provides", body.get("id")), "module": body["module"]}, *listed]
    return Manifest(
        _checked_id(body.get("id"), where),
        kind,
        tuple(_part(part, where) for part in listed),
        needs=tuple(map(str, body.get("needs", ()))),
        settings=dict(body.get("settings", {})) if isinstance(body.get("settings", {}), Mapping) else {},
        name=str(body.get("name", body.get("id", ""))),
        description=str(body.get("description", "")),
        version=str(body.get("version", "")),
        order=int(body.get("order", 100)),
        extra=_extra(body.get("extra", ""), where),
        imports=_imports("imports", body.get("imports", []), where),
        better=_imports("better", body.get("better", []), where),
        commands=_commands(body.get("command", []), where),
    )


def _original(body: Mapping[str, Any], where: str) -> Manifest:
    schema = body.get("configSchema")
    if not isinstance(schema, Mapping):
        raise ManifestInvalid(f"{where}: configSchema is missing; it must be a JSON Schema object")
    python = body.get("python")
    parts = (_part({"name": body.get("id"), "module": python}, where),) if python else ()
    return Manifest(
        _checked_id(body.get("id"), where),
        "plugin",
        parts,
        settings=dict(schema),
        name=str(body.get("name", body.get("id", ""))),
        description=str(body.get("description", "")),
        version=str(body.get("version", "")),
        runtime="python" if python else "node",
    )


def _kind(value: Any, where: str) -> Kind:
    for kind in KINDS:
        if kind == value:
            return kind
    raise ManifestInvalid(f"{where}: kind is {value!r}; one of {', '.join(KINDS)}")


def _checked_id(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _ID.match(value):
        raise ManifestInvalid(f"{where}: id is {value!r}; lower-case letters, digits, dot, dash, at most 64")
    return value


def _extra(value: Any, where: str) -> str:
    if value != "" and (not isinstance(value, str) or not _EXTRA.match(value)):
        raise ManifestInvalid(f"{where}: extra is {value!r}; lower-case letters, digits and dashes")
    return str(value)


def _imports(key: str, value: Any, where: str) -> tuple[str, ...]:
    """Names of modules, without dots: looking for one inside a package would run the package."""
    if not isinstance(value, list) or not all(isinstance(name, str) and name.isidentifier() for name in value):
        raise ManifestInvalid(f'{where}: {key} is {value!r}; a list of top-level modules, such as ["nio"]')
    return tuple(value)


def _part(body: Mapping[str, Any], where: str) -> Part:
    name, module = body.get("name"), body.get("module")
    if not isinstance(name, str) or not name:
        raise ManifestInvalid(f"{where}: a part has no name")
    if not isinstance(module, str) or not _MODULE.match(module):
        raise ManifestInvalid(f"{where}: part {name}: module is {module!r}; write it as module:Name")
    return Part(name, module)


def _commands(listed: Any, where: str) -> tuple[Command, ...]:
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise ManifestInvalid(f"{where}: a command is written as a table: [[command]] with name, summary and module")
    return tuple(_command(one, where) for one in listed)


def _command(body: Mapping[str, Any], where: str) -> Command:
    name, module = body.get("name"), body.get("module")
    if not isinstance(name, str) or not _COMMAND.match(name):
        raise ManifestInvalid(f"{where}: a command's name is {name!r}; lower-case letters, digits and dashes")
    if not isinstance(module, str) or not _MODULE.match(module):
        raise ManifestInvalid(f"{where}: command {name}: module is {module!r}; write it as module:function")
    summary = " ".join(str(body.get("summary", "")).split())
    if not summary:
        raise ManifestInvalid(f"{where}: command {name} has no summary: one line that garra --help shows")
    return Command(name, summary, module, str(body.get("help", "")).strip())
