"""`skills.*`: what an agent can read up on, and its care. What an install would bring is told first; the seal of that
answer is the yes to it, so that what was shown is what is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from garra.core.errors import Conflict, NotFound, Unavailable, UserError
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Name, Nothing, Params

WHERE: Final = "skills"
"""Where `app.skilled` puts what opens the shop."""
NO_REGISTRY: Final = (
    "Garra reads no registry of skills: give origin, a folder, an archive, its https address or git:OWNER/REPO"
)
NO_INSTALLER: Final = "Garra runs no installer that a skill names; what it names is in skills.status, to be run by you"
NO_UPLOAD: Final = "archives are not taken by upload here: put it on the gateway's machine and give origin, its path"


class SkillsStatus(Params, frozen=True):
    agent_id: Name | None = None


class SkillsSearch(Params, frozen=True):
    query: str | None = None
    limit: int | None = None


class SkillsDetail(Params, frozen=True):
    """`slug` is a skill in a registry, `name` one that is here."""

    slug: Name | None = None
    name: Name | None = None
    agent_id: Name | None = None


class SkillsInstall(Params, frozen=True):
    """`origin` is where it is; without `confirm`, the seal of what is to be installed, that is only told."""

    origin: Name | None = None
    as_name: Name | None = None
    path: str = ""
    agent_id: Name | None = None
    confirm: Name | None = None
    force: bool = False
    sha256: str = ""
    source: str | None = None
    slug: Name | None = None
    version: Name | None = None
    upload_id: Name | None = None
    name: Name | None = None
    install_id: Name | None = None
    timeout_ms: int | None = None
    dangerously_force_unsafe_install: bool | None = None


class SkillsUpdate(Params, frozen=True):
    """`skill_key` with settings, or `name` of an installed skill that is to be fetched anew."""

    skill_key: Name | None = None
    enabled: bool | None = None
    api_key: str | None = None
    env: dict[str, str] | None = None
    name: Name | None = None
    agent_id: Name | None = None
    confirm: Name | None = None
    force: bool = False
    source: str | None = None
    slug: Name | None = None
    all: bool | None = None


class SkillsRemove(Params, frozen=True):
    name: Name
    agent_id: Name | None = None


def _shop(host: Host) -> Any:
    found = host.more.get(WHERE)
    if found is None:
        raise Unavailable("the gateway is only starting; try again in a moment", retryable=True)
    return found()


async def status(host: Host, caller: Caller, params: SkillsStatus) -> dict[str, Any]:
    async with _shop(host) as shop:
        found: dict[str, Any] = await asyncio.to_thread(shop.status, host.agent(params.agent_id))
        return found


async def bins(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """The programs that skills of any agent call for."""
    names: set[str] = set()
    async with _shop(host) as shop:
        for agent in host.config.agents.ids():
            for row in (await asyncio.to_thread(shop.status, agent))["skills"]:
                names |= {*row["requirements"]["bins"], *row["requirements"]["anyBins"]}
                names |= {name for hint in row["install"] for name in hint["bins"]}
    return {"bins": sorted(names)}


def search(host: Host, caller: Caller, params: SkillsSearch) -> dict[str, Any]:
    """There is no registry to find anything in."""
    return {"results": []}


async def detail(host: Host, caller: Caller, params: SkillsDetail) -> dict[str, Any]:
    if not params.name:
        raise NotFound(NO_REGISTRY if params.slug else "name the skill")
    async with _shop(host) as shop:
        rows = (await asyncio.to_thread(shop.status, host.agent(params.agent_id)))["skills"]
        row = next((each for each in rows if params.name in (each["name"], each["skillKey"])), None)
        if row is None:
            raise NotFound(f"there is no skill {params.name[:80]!r}")
        found: dict[str, Any] = await asyncio.to_thread(shop.detail, row)
        return found


async def install(host: Host, caller: Caller, params: SkillsInstall) -> dict[str, Any]:
    if params.origin is None:
        raise UserError(NO_UPLOAD if params.upload_id else NO_INSTALLER if params.install_id else NO_REGISTRY)
    async with _shop(host) as shop:
        agent = host.agent(params.agent_id) if params.agent_id else ""
        offer = await shop.wanted(
            params.origin, name=params.as_name or "", agent=agent, sha256=params.sha256, inside=params.path
        )
        told = offer.told()
        if not params.confirm:
            return {"ok": False, "needsConfirm": True, "offer": told}
        _agreed(params.confirm, told)
        record = await shop.install(offer, force=params.force)
    host.hub.publish("skills.changed", {"name": record.name, "reason": "install"})
    return {"ok": True, "message": f"installed in {record.folder}", "offer": told}


def _agreed(seal: str, told: Mapping[str, Any]) -> None:
    if seal != told["seal"]:
        raise Conflict("it is not what was shown any more: look at it again", details={"offer": dict(told)})


async def update(host: Host, caller: Caller, params: SkillsUpdate) -> dict[str, Any]:
    if params.skill_key is not None:
        return await _configured(host, params, params.skill_key)
    if params.name is None:
        raise UserError(NO_REGISTRY if params.slug or params.all else "give skillKey with settings, or name")
    async with _shop(host) as shop:
        record = shop.found(params.name, host.agent(params.agent_id) if params.agent_id else "")
        anew = await shop.anew(record)
        changes = {name: list(getattr(anew.changes, name)) for name in ("added", "changed", "gone")}
        told = {"offer": anew.offer.told(), "changes": changes, "own": [*anew.own.changed, *anew.own.added]}
        if not anew.changes:
            return {"ok": True, "message": "as it was", **told}
        if not params.confirm:
            return {"ok": False, "needsConfirm": True, **told}
        _agreed(params.confirm, told["offer"])
        _, aside = await shop.update(anew, force=params.force)
    host.hub.publish("skills.changed", {"name": record.name, "reason": "update"})
    return {"ok": True, "message": "updated", "kept": aside or None, **told}


async def _configured(host: Host, params: SkillsUpdate, key: str) -> dict[str, Any]:
    """The settings of one skill. An empty text takes a value away."""
    entry: dict[str, Any] = {}
    if params.enabled is not None:
        entry["enabled"] = params.enabled
    if params.api_key is not None:
        entry["apiKey"] = params.api_key.strip() or None
    if params.env is not None:
        entry["env"] = {name.strip(): text.strip() or None for name, text in params.env.items() if name.strip()}
    snapshot = await host.merge({"skills": {"entries": {key: entry}}})
    found = snapshot.config.skills.entries.get(key)
    shown = {"enabled": found.enabled, "apiKey": found.api_key is not None, "env": sorted(found.env)} if found else {}
    return {"ok": True, "skillKey": key, "config": shown}


async def remove(host: Host, caller: Caller, params: SkillsRemove) -> dict[str, Any]:
    async with _shop(host) as shop:
        record = shop.found(params.name, host.agent(params.agent_id) if params.agent_id else "")
        gone, written = await shop.remove(record)
    host.hub.publish("skills.changed", {"name": record.name, "reason": "remove"})
    said = {"files": list(gone.files), "kept": list(gone.kept), "aside": gone.aside or None, "written": written}
    return {"ok": True, "name": record.name, "folder": str(Path(record.folder)), **said}


METHODS: tuple[Method, ...] = (
    Method("skills.status", READ, SkillsStatus, status),
    Method("skills.bins", READ, Nothing, bins, role="node"),
    Method("skills.search", READ, SkillsSearch, search),
    Method("skills.detail", READ, SkillsDetail, detail),
    Method("skills.install", ADMIN, SkillsInstall, install),
    Method("skills.update", ADMIN, SkillsUpdate, update),
    Method("skills.remove", ADMIN, SkillsRemove, remove),
)
