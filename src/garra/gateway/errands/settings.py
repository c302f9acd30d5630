"""The errands of `gateway`: the configuration read, without secrets, and changed in what an agent may propose."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from garra.config import schema, view
from garra.core import tunable
from garra.core.errors import Forbidden, NotFound, UserError
from garra.gateway.errands.sight import Run, parsed
from garra.gateway.host import Host
from garra.gateway.params import Params
from garra.gateway.trials import Change, trials
from garra.runs.errand import Errand

LONGEST: Final = 20_000
"""Characters of a configuration that a model is given at once."""


class Looking(Params, frozen=True):
    path: str = ""


class Patching(Params, frozen=True):
    patch: dict[str, Any]
    base: str = ""


def _owners(errand: Errand) -> None:
    if not errand.owners:
        raise Forbidden("The configuration is for the owner's own turns.")


async def get(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    _owners(errand)
    params = parsed(raw, Looking)
    value: Any = await asyncio.to_thread(view.tree, host.live.snapshot.merged)
    for key in params.path.split(".") if params.path else ():
        if not isinstance(value, Mapping) or key not in value:
            raise NotFound(f"Nothing is set at {params.path[:120]}.")
        value = value[key]
    text = json.dumps(value, ensure_ascii=False, indent=1)
    if len(text) > LONGEST:
        keys = ", ".join(value) if isinstance(value, Mapping) else ""
        raise UserError(f"That is too much at once; give a path. There is: {keys}"[:1000])
    return {"path": params.path, "value": value, "hash": host.live.snapshot.hash}


async def lookup(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    params = parsed(raw, Looking)
    found = await asyncio.to_thread(schema.lookup, params.path)
    if found is None:
        raise NotFound(f"There is no setting {params.path[:120]}.")
    return found


async def preview(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """What a change would come to, as a diff without secrets. Raises for what an agent may not touch."""
    _owners(errand)
    params = parsed(raw, Patching)
    if wrong := tunable.refused(params.patch):
        raise Forbidden(
            f"Not for an agent to change: {', '.join(each or '(nothing)' for each in wrong)[:400]}. "
            "The owner does that: garra config set."
        )
    base = host.live.snapshot.hash
    found = await asyncio.to_thread(host.live.writer.preview, params.patch)
    if not found.diff:
        raise UserError("That changes nothing.")
    return {"diff": list(found.diff), "base": base}


async def patch(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Make it, once this turn is over, and for a while only."""
    params = parsed(raw, Patching)
    found = await preview(host, errand, {"patch": params.patch})
    if params.base and params.base != found["base"]:
        raise UserError("The configuration has changed since the owner was asked; read it and propose it again.")
    hold_s = host.config.tools.gateway.confirm_seconds
    paths = tuple(sorted(".".join(path) for path in _leaves(params.patch)))
    await trials(host).schedule(Change(errand, params.patch, paths, found["base"], hold_s))
    return {"status": "scheduled", "diff": found["diff"], "revertsAfterSeconds": hold_s}


def _leaves(value: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(value, Mapping) and value:
        return [path for key, inner in value.items() for path in _leaves(inner, (*at, str(key)))]
    return [at]


async def confirm(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    _owners(errand)
    return {"confirmed": await trials(host).confirm("its owner's agent said so in a later turn")}


ERRANDS: Mapping[str, Run] = {
    "config.get": get,
    "config.schema.lookup": lookup,
    "config.preview": preview,
    "config.patch": patch,
    "config.confirm": confirm,
}
