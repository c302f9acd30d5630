"""`config.*`: read and change the configuration file. Secrets are shown as a sentinel, and a sentinel keeps them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from garra.config import schema, view
from garra.config.include import Unreadable, decode
from garra.config.load import Snapshot
from garra.core.errors import NotFound, UserError
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Index, Name, Nothing, Params
from garra.gateway.trials import trials


class ConfigSet(Params, frozen=True):
    """`raw` is JSON5 text, `base_hash` the hash that the caller read it under."""

    raw: Name
    base_hash: Name | None = None


class ConfigApply(ConfigSet, frozen=True):
    session_key: str | None = None
    delivery_context: dict[str, Any] | None = None
    note: str | None = None
    restart_delay_ms: Index | None = None


class ConfigPatch(ConfigApply, frozen=True):
    replace_paths: tuple[str, ...] = ()


class SchemaLookup(Params, frozen=True):
    path: Annotated[str, Meta(min_length=1, max_length=1024)]


async def get(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    return await asyncio.to_thread(view.snapshot, host.paths, host.live.snapshot)


async def put(host: Host, caller: Caller, params: ConfigSet) -> dict[str, Any]:
    """Put a whole new text in place; it serves at once."""
    base = _base(host, params)
    return await _written(host, await host.live.change(lambda writer: writer.replace(params.raw, base)))


async def patch(host: Host, caller: Caller, params: ConfigPatch) -> dict[str, Any]:
    """Merge `raw`, an object, into the file; null removes a key."""
    base = _base(host, params)
    if params.replace_paths:
        raise UserError("config.patch: replacePaths is nothing this gateway can do; send the whole with config.set")
    try:
        change = decode(params.raw)
    except (Unreadable, ValueError) as fault:
        raise UserError(f"config.patch: raw is no JSON5 object: {fault}") from None
    if not isinstance(change, dict):
        raise UserError("config.patch: raw must be an object")
    return await _written(host, await host.merge(change, base))


async def confirm(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """Let a change that is on trial stay."""
    return {"ok": True, "confirmed": await trials(host).confirm("an operator said so")}


def _base(host: Host, params: ConfigSet) -> str | None:
    """The hash to compare. Raises UserError when a file is there and the caller does not say what it saw."""
    if params.base_hash is None and host.live.snapshot.exists:
        raise UserError("config base hash required; read config.get and pass its hash as baseHash")
    return params.base_hash


async def _written(host: Host, found: Snapshot) -> dict[str, Any]:
    shown = await asyncio.to_thread(view.tree, found.merged)
    return {"ok": True, "path": str(host.paths.config_file), "config": shown, "hash": found.hash, "restart": None}


async def whole_schema(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """The JSON Schema, and what a form should know of each place."""
    drawn = await asyncio.to_thread(schema.schema)
    hints = await asyncio.to_thread(schema.hints, drawn)
    return {"schema": drawn, "uiHints": hints, "version": host.version, "generatedAt": host.clock.now_ms()}


async def lookup(host: Host, caller: Caller, params: SchemaLookup) -> dict[str, Any]:
    found = await asyncio.to_thread(schema.lookup, params.path)
    if found is None:
        raise NotFound(f"config schema path not found: {params.path}")
    return found


METHODS: tuple[Method, ...] = (
    Method("config.get", READ, Nothing, get),
    Method("config.set", ADMIN, ConfigSet, put),
    Method("config.apply", ADMIN, ConfigApply, put),
    Method("config.patch", ADMIN, ConfigPatch, patch),
    Method("config.confirm", ADMIN, Nothing, confirm, advertised=False),
    Method("config.schema", READ, Nothing, whole_schema),
    Method("config.schema.lookup", READ, SchemaLookup, lookup),
)
