"""`tools.*` and `commands.list`: what an agent can do, what may be called from outside, what can be typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from garra.core.errors import GarraError, NotFound, ToolFailed
from garra.gateway import commands, toolbox
from garra.gateway.host import Host
from garra.gateway.method import READ, WRITE, Caller, Method
from garra.gateway.methods.tools_why import ToolsPolicy, asked_of, paired
from garra.gateway.params import Name, Params
from garra.sdk.tool import ToolInfo

LABELS = {"core": "Built-in tools", "shell": "Built-in tools", "plugin": "Connected tools", "channel": "Channel tools"}


class ToolsCatalog(Params, frozen=True):
    agent_id: Name | None = None
    include_plugins: bool = True


class ToolsEffective(Params, frozen=True):
    session_key: Name
    agent_id: Name | None = None


class ToolsInvoke(Params, frozen=True):
    name: Name
    args: dict[str, Any] | None = None
    session_key: Name | None = None
    agent_id: Name | None = None
    confirm: bool | None = None
    idempotency_key: Name | None = None
    conversation_read_origin: str | None = None


class CommandsList(Params, frozen=True):
    session_key: Name | None = None
    agent_id: Name | None = None
    provider: Name | None = None
    scope: Literal["text", "native", "both"] = "both"
    include_args: bool = True


def catalog(host: Host, caller: Caller, params: ToolsCatalog) -> dict[str, Any]:
    return _tools(host, host.agent(params.agent_id))


async def effective(host: Host, caller: Caller, params: ToolsEffective) -> dict[str, Any]:
    """What that very session has, by the rules of its chat."""
    key = host.key(params.session_key, params.agent_id)
    shown = _tools(host, key.split(":")[1] if key.startswith("agent:") else host.agent(params.agent_id))
    asked, session = await asked_of(host, ToolsPolicy(session_key=params.session_key, agent_id=params.agent_id))
    rows = host.tools.policy(asked, session, paired(host))["tools"]
    gone = {row["name"] for row in rows if row["verdict"] == "deny"}
    groups = [{**group, "tools": [row for row in group["tools"] if row["id"] not in gone]} for group in shown["groups"]]
    return {**shown, "groups": [group for group in groups if group["tools"]]}


def _tools(host: Host, agent_id: str) -> dict[str, Any]:
    agent = host.config.agents.find(agent_id)
    own = agent.tools.profile if agent and agent.tools else None
    profile = own or host.config.tools.profile or "full"
    return {"agentId": agent_id, "profile": profile, "groups": _groups(host.tools.infos(agent_id))}


def _groups(infos: Iterable[ToolInfo]) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for info in infos:
        row = {"id": info.name, "label": info.label, "description": info.description, "source": info.source}
        groups.setdefault("core" if info.source == "shell" else info.source, []).append(row)
    return [
        {"id": source, "label": LABELS.get(source, source), "source": source, "tools": rows}
        for source, rows in groups.items()
    ]


async def invoke(host: Host, caller: Caller, params: ToolsInvoke) -> dict[str, Any]:
    """Refusals are part of the answer, not of the frame."""
    key = host.key(params.session_key or "main", params.agent_id)
    try:
        output = await toolbox.invoke(host, params.name, params.args or {}, key)
    except NotFound as fault:
        return _refused(params.name, "not_found", fault)
    except ToolFailed as fault:
        return _refused(params.name, "tool_error", fault)
    return {"ok": True, "toolName": params.name, "source": "core", "output": output}


def _refused(name: str, code: str, fault: GarraError) -> dict[str, Any]:
    return {"ok": False, "toolName": name, "error": {"code": code, "message": fault.message}}


def commands_list(host: Host, caller: Caller, params: CommandsList) -> dict[str, Any]:
    return {"commands": [commands.listed(each, args=params.include_args) for each in commands.COMMANDS]}


METHODS: tuple[Method, ...] = (
    Method("tools.catalog", READ, ToolsCatalog, catalog),
    Method("tools.effective", READ, ToolsEffective, effective, startup=True),
    Method("tools.invoke", WRITE, ToolsInvoke, invoke),
    Method("commands.list", READ, CommandsList, commands_list),
)
