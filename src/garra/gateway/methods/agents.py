"""`agents.list`, `.create`, `.update`, `.delete`: who answers."""

from __future__ import annotations

import re
from typing import Any

from msgspec import UNSET, UnsetType

from garra.config.sections.agents import Agent
from garra.core.errors import Conflict, UserError
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Name, Nothing, Params
from garra.gateway.rows import RUNTIME, default_level, model_of, thinking


class AgentsCreate(Params, frozen=True):
    name: Name
    workspace: Name | None = None
    model: Name | None = None
    emoji: str | None = None
    avatar: str | None = None


class AgentsUpdate(Params, frozen=True):
    agent_id: Name
    name: Name | None = None
    workspace: Name | None = None
    model: str | UnsetType | None = UNSET
    agent_runtime: Name | None = None
    emoji: str | None = None
    avatar: str | None = None


class AgentsDelete(Params, frozen=True):
    agent_id: Name
    delete_files: bool = False


class AgentIdentity(Params, frozen=True):
    agent_id: Name | None = None
    session_key: str | None = None


def listed(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """Each row says which model answers; without that a client's composer stays shut."""
    config = host.config
    return {
        "defaultId": config.agents.default_id(),
        "ownership": "sole",
        "selectionRequired": False,
        "mainKey": host.main,
        "scope": config.session.scope,
        "agents": [_row(host, agent_id) for agent_id in config.agents.ids()],
    }


def _row(host: Host, agent_id: str) -> dict[str, Any]:
    config = host.config
    agent = config.agents.find(agent_id)
    model = model_of(host.models, None, agent_id)
    choice = (agent.model if agent else None) or config.agents.defaults.model
    chosen: dict[str, Any] = {"primary": model.ref if model else choice.primary}
    if choice.fallbacks:
        chosen["fallbacks"] = list(choice.fallbacks)
    row: dict[str, Any] = {
        "id": agent_id,
        "kind": "agent",
        "workspace": str(host.paths.workspace(agent_id, config)),
        "agentRuntime": RUNTIME,
        **thinking(model, default_level(config, agent_id)),
        "model": chosen,
        "defaultPermissionMode": "guarded",
    }
    return {**row, **_identity(agent)} if agent else row


def _identity(agent: Agent) -> dict[str, Any]:
    about = {
        "name": agent.name,
        "identity": {key: said for key in ("name", "emoji", "avatar") if (said := getattr(agent.identity, key))},
    }
    return {key: value for key, value in about.items() if value}


def identity(host: Host, caller: Caller, params: AgentIdentity) -> dict[str, Any]:
    """What an agent is called and shown as."""
    agent_id = host.agent(params.agent_id)
    if params.session_key and not params.agent_id:
        agent_id = str(host.key(params.session_key).split(":")[1])
    agent = host.config.agents.find(agent_id)
    name = (agent.identity.name or agent.name) if agent else ""
    shown = {"agentId": agent_id, "name": name or "Assistant", "nameSource": "config" if name else "default"}
    face = (agent.identity.avatar or agent.identity.emoji) if agent else ""
    return {**shown, "avatar": face or shown["name"][:1].upper()}


def slug(name: str) -> str:
    """An agent's id from its name. Raises UserError when nothing is left of it."""
    plain = re.sub(r"[^a-z0-9_-]+", "-", name.strip().lower()).strip("-")[:64]
    if not plain:
        raise UserError(f"agent name {name[:40]!r} needs a letter or a digit")
    return plain


async def create(host: Host, caller: Caller, params: AgentsCreate) -> dict[str, Any]:
    """Add an agent to the configuration."""
    agent_id = slug(params.name)
    config = host.config
    if agent_id in config.agents.ids():
        raise Conflict(f'agent "{agent_id}" already exists')
    model = host.models.resolve(params.model, agent_id).ref if params.model else None
    entry: dict[str, Any] = {"name": params.name, **_settings(params.workspace, model)}
    if face := _face(params.emoji, params.avatar):
        entry["identity"] = face
    await host.merge({"agents": _entries(host, agent_id, entry)})
    answer = {"ok": True, "agentId": agent_id, "name": params.name}
    answer["workspace"] = str(host.paths.workspace(agent_id, host.config))
    return {**answer, "model": model} if model else answer


def _settings(workspace: str | None, model: str | None) -> dict[str, Any]:
    given = {"workspace": workspace, "model": {"primary": model} if model else None}
    return {key: value for key, value in given.items() if value is not None}


def _face(emoji: str | None, avatar: str | None) -> dict[str, Any]:
    return {key: value for key, value in {"emoji": emoji, "avatar": avatar}.items() if value is not None}


def _entries(host: Host, agent_id: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The change of `agents` that puts `entry` there; a first agent does not take `main`'s place."""
    if host.config.agents.list:
        return {"entries": {agent_id: entry}}
    return {"entries": {"main": {"default": True}, agent_id: entry}}


async def update(host: Host, caller: Caller, params: AgentsUpdate) -> dict[str, Any]:
    agent_id = host.agent(params.agent_id)
    if params.agent_runtime is not None:
        raise UserError("agents.update: agentRuntime is nothing this gateway can set")
    entry: dict[str, Any] = _settings(params.workspace, None)
    if params.name:
        entry["name"] = params.name
    if params.model is None:
        entry["model"] = None
    elif params.model is not UNSET:
        entry["model"] = {"primary": host.models.resolve(params.model, agent_id).ref}
    if face := _face(params.emoji, params.avatar):
        entry["identity"] = face
    if entry:
        await host.merge({"agents": _change(host, agent_id, entry)})
    return {"ok": True, "agentId": agent_id}


def _change(host: Host, agent_id: str, entry: dict[str, Any]) -> dict[str, Any]:
    agents = host.config.agents
    if not any(agent.id.lower() == agent_id for agent in agents.listed):
        return _entries(host, agent_id, entry)
    rows = host.live.snapshot.parsed["agents"]["list"]
    return {"list": [{**row, **entry} if str(row.get("id", "")).lower() == agent_id else row for row in rows]}


async def delete(host: Host, caller: Caller, params: AgentsDelete) -> dict[str, Any]:
    """Take an agent out of the configuration. Its files stay: they are the owner's."""
    agent_id = host.agent(params.agent_id)
    agents = host.config.agents
    if agent_id == agents.default_id():
        raise UserError(f'"{agent_id}" is the default agent and cannot be deleted; make another one the default first')
    if params.delete_files:
        raise UserError("agents.delete: files are never deleted; remove the workspace by hand")
    if any(agent.id.lower() == agent_id for agent in agents.listed):
        rows = host.live.snapshot.parsed["agents"]["list"]
        await host.put("agents.list", [row for row in rows if str(row.get("id", "")).lower() != agent_id])
    else:
        name = next(key for key in agents.entries if key.lower() == agent_id)
        await host.merge({"agents": {"entries": {name: None}}})
    return {"ok": True, "agentId": agent_id, "removedBindings": 0}


METHODS: tuple[Method, ...] = (
    Method("agents.list", READ, Nothing, listed),
    Method("agents.create", ADMIN, AgentsCreate, create),
    Method("agents.update", ADMIN, AgentsUpdate, update),
    Method("agents.delete", ADMIN, AgentsDelete, delete),
    Method("agent.identity.get", READ, AgentIdentity, identity),
)
