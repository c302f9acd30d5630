"""`sessions.context`: what fills the window of a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from garra.core.errors import Unavailable
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Scope
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.methods.tools_why import ToolsPolicy, asked_of, paired
from garra.gateway.params import Name, Params
from garra.runs.explain import scope_of

WHERE: Final = "context"

Weigh = Callable[[Session, Scope], Awaitable[dict[str, Any]]]
"""The report on a conversation (`runs.weighing.weighed`), which the host has under WHERE."""


class SessionsContext(Params, frozen=True):
    """`sender_id` as for `tools.policy`."""

    key: Name
    agent_id: Name | None = None
    sender_id: Name | None = None


async def context(host: Host, caller: Caller, params: SessionsContext) -> dict[str, Any]:
    session = await host.session(host.key(params.key, params.agent_id))
    return await report(host, session, params.sender_id)


async def report(host: Host, session: Session, sender: str | None = None) -> dict[str, Any]:
    """Raises Unavailable where nothing is there to weigh with."""
    weigh = host.more.get(WHERE)
    if not callable(weigh):
        raise Unavailable("the gateway is not ready yet; try again in a moment")
    asked, _ = await asked_of(host, ToolsPolicy(session.key, None, sender))
    return await cast(Weigh, weigh)(session, scope_of(asked, session, host.config, paired(host)))


METHODS: tuple[Method, ...] = (Method("sessions.context", READ, SessionsContext, context, advertised=False),)
