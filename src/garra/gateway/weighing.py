"""What fills the window of a conversation, for the methods and commands of the gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from garra.core.errors import Unavailable
from garra.core.ids import SessionKey
from garra.domains.sessions.session import Session
from garra.gateway.host import Host

WHERE: Final = "context"

Weigh = Callable[[SessionKey, str], Awaitable[Mapping[str, Any]]]
"""The report on a conversation, when a sender of that id writes; the host has it under WHERE."""


async def report(host: Host, session: Session, sender: str = "") -> Mapping[str, Any]:
    """Raises Unavailable where nothing is there to weigh with."""
    weigh = host.more.get(WHERE)
    if not callable(weigh):
        raise Unavailable("the gateway is not ready yet; try again in a moment")
    return await cast(Weigh, weigh)(session.key, sender)
