"""`sessions.context`: what fills the window of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.params import Name, Params
from garra.gateway.weighing import report


class SessionsContext(Params, frozen=True):
    """`sender_id` is the platform's id of whoever writes; without it a chat of one person is that person's."""

    key: Name
    agent_id: Name | None = None
    sender_id: Name | None = None


async def context(host: Host, caller: Caller, params: SessionsContext) -> Mapping[str, Any]:
    session = await host.session(host.key(params.key, params.agent_id))
    return await report(host, session, params.sender_id or "")


METHODS: tuple[Method, ...] = (Method("sessions.context", READ, SessionsContext, context, advertised=False),)
