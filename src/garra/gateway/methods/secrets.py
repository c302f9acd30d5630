"""`secrets.*`: the store, and fetching anew what is referred to. No secret leaves but by `secrets.resolve`."""

from __future__ import annotations

import asyncio
import importlib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

from garra.config.variables import listed
from garra.core import dotted
from garra.core.errors import UserError
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, Caller, Method
from garra.gateway.params import Name, Nothing, Params

if TYPE_CHECKING:
    from garra.io.secrets import Entry, Store


class StoreSet(Params, frozen=True):
    """`value` may be left out to bind an entry that is there to `allowed_hosts`."""

    name: Name
    value: str | None = None
    kind: Literal["secret", "env"] | None = None
    allowed_hosts: tuple[str, ...] | None = None
    scope: dict[str, Any] | None = None
    scope_kind: Literal["team"] | None = None


class StoreDelete(Params, frozen=True):
    name: Name
    scope: dict[str, Any] | None = None
    scope_kind: Literal["team"] | None = None


class StoreList(Params, frozen=True):
    scope: dict[str, Any] | None = None
    scope_kind: Literal["team"] | None = None


class Resolve(Params, frozen=True):
    """Which references: `target_ids` are dotted paths of which each part may be `*`."""

    command_name: Name
    target_ids: tuple[str, ...]
    allowed_paths: tuple[str, ...] | None = None
    forced_active_paths: tuple[str, ...] = ()
    optional_active_paths: tuple[str, ...] = ()
    provider_overrides: dict[str, str] | None = None


def _store(host: Host) -> Store:
    """Loaded when somebody asks for it."""
    found: Store = importlib.import_module("garra.io.secrets").Store(host.paths.secrets)
    return found


async def reload(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """Fetch every secret anew. What cannot be had now goes on serving as it was, with a warning."""
    found = await host.live.reload()
    troubled = {issue.at for issue in found.warnings}
    lacking = [at for at, _ in listed(found.merged) if at in troubled]
    stale = [issue for issue in found.warnings if issue.at == ("secrets",)]
    return {"ok": True, "warningCount": len(lacking) + len(stale)}


async def entries(host: Host, caller: Caller, params: StoreList) -> dict[str, Any]:
    found = await asyncio.to_thread(_store(host).entries)
    return {"entries": [shown(name, entry) for name, entry in found.items()]}


def shown(name: str, entry: Entry) -> dict[str, Any]:
    """An entry as anybody may see it: a secret's value is not in it."""
    stamps = {"createdAtMs": entry.updated_at, "updatedAtMs": entry.updated_at}
    row: dict[str, Any] = {"name": name, "scopeKind": "team", "scopeId": "", **stamps, "kind": entry.kind}
    if entry.kind == "env":
        return {**row, "value": entry.value.reveal()}
    return {**row, "allowedHosts": list(entry.hosts)}


async def put(host: Host, caller: Caller, params: StoreSet) -> dict[str, Any]:
    kept = await asyncio.to_thread(_put, host, params)
    return {"ok": True, "entry": kept, **await _followed(host, params.name)}


def _put(host: Host, params: StoreSet) -> dict[str, Any]:
    store, own = _store(host), importlib.import_module("garra.io.secrets")
    bound = params.allowed_hosts and tuple(map(own.exact, params.allowed_hosts))
    if params.value is None:
        if bound is None:
            raise UserError("secrets.store.set: give a value, or allowedHosts")
        store.bind(params.name, bound)
    else:
        old = store.entries().get(params.name, own.Entry(kind=params.kind or own.kind_of(params.name)))
        entry = own.Entry(
            kind=params.kind or old.kind, hosts=old.hosts if bound is None else bound, updated_at=host.clock.now_ms(),
            keyring=old.keyring,
        )  # fmt: skip
        store.set(params.name, params.value, entry)
    return shown(params.name, store.entries()[params.name])


async def delete(host: Host, caller: Caller, params: StoreDelete) -> dict[str, Any]:
    gone = await asyncio.to_thread(_store(host).remove, [params.name])
    return {"ok": True, "deleted": bool(gone), **await _followed(host, params.name)}


async def _followed(host: Host, name: str) -> dict[str, Any]:
    """The configuration is read again where it refers to `name`; else only what must not be shown is learnt."""
    used = any(value["source"] == "store" and value["id"] == name for _, value in listed(host.live.snapshot.merged))
    await host.live.reload()
    return {"reloaded": used}


async def resolve(host: Host, caller: Caller, params: Resolve) -> dict[str, Any]:
    """The values of references, for a command of the owner's that must use them itself."""
    found = host.live.snapshot
    assignments, inactive = [], []
    for at, _ in listed(found.merged):
        path = dotted.show(at)
        if not any(fnmatchcase(path, pattern) for pattern in params.target_ids):
            continue
        if params.allowed_paths is not None and path not in params.allowed_paths:
            continue
        value: Any = found.resolved
        for part in at:
            value = value[int(part)] if isinstance(value, list) else (value or {}).get(part)
        if isinstance(value, str) and value:
            assignments.append({"path": path, "pathSegments": list(map(str, at)), "value": value})
        else:
            inactive.append(path)
    diagnostics = [str(issue) for issue in found.warnings if dotted.show(issue.at) in inactive]
    return {"ok": True, "assignments": assignments, "diagnostics": diagnostics, "inactiveRefPaths": inactive}


METHODS: tuple[Method, ...] = (
    Method("secrets.reload", ADMIN, Nothing, reload),
    Method("secrets.resolve", ADMIN, Resolve, resolve),
    Method("secrets.store.list", ADMIN, StoreList, entries),
    Method("secrets.store.set", ADMIN, StoreSet, put),
    Method("secrets.store.delete", ADMIN, StoreDelete, delete),
)
