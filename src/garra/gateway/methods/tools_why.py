"""`tools.policy` and `tools.explain`: which tools a session has, and which step of the policy took the others."""

from __future__ import annotations

from typing import Any

from garra.core.access import NOBODY
from garra.core.keys import agent_of
from garra.domains.access.pairing import Pairing
from garra.domains.sessions.session import Session
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.methods.pairing import WHERE
from garra.gateway.params import Name, Params
from garra.gateway.rows import model_of
from garra.runs.explain import Asked, Paired


class ToolsPolicy(Params, frozen=True):
    """`sender_id` is the platform's id of whoever writes; without it a chat of one person is that person's."""

    session_key: Name | None = None
    agent_id: Name | None = None
    sender_id: Name | None = None


class ToolsExplain(ToolsPolicy, frozen=True, kw_only=True):
    name: Name


async def policy(host: Host, caller: Caller, params: ToolsPolicy) -> dict[str, Any]:
    asked, session = await asked_of(host, params)
    return host.tools.policy(asked, session, paired(host))


async def explain(host: Host, caller: Caller, params: ToolsExplain) -> dict[str, Any]:
    asked, session = await asked_of(host, params)
    return host.tools.explain(params.name, asked, session, paired(host))


async def asked_of(host: Host, params: ToolsPolicy) -> tuple[Asked, Session | None]:
    """Whose tools are meant, with the model that answers there."""
    key = host.key(params.session_key or "main", params.agent_id)
    session = await host.sessions.get(key)
    agent = agent_of(key, host.config.agents.default_id())
    model = model_of(host.models, session.override if session else None, agent)
    sender = params.sender_id or ""
    if model is None:
        return Asked(key, sender), session
    return Asked(key, sender, model.provider, model.id, model.api), session


def paired(host: Host) -> Paired:
    """Who was let in by a code; nobody where no chats run."""
    found = host.more.get(WHERE)
    return found.allowed if isinstance(found, Pairing) else lambda *_: NOBODY


METHODS: tuple[Method, ...] = (
    Method("tools.policy", READ, ToolsPolicy, policy),
    Method("tools.explain", READ, ToolsExplain, explain),
)
