"""The sub-agents, for the gateway's methods: what ends a session's work ends theirs."""

from __future__ import annotations

from typing import Final

from garra.core.errors import Unavailable
from garra.core.lineage import Child
from garra.gateway.host import Host
from garra.runs.subagents import Subagents

WHERE: Final = "subagents"
"""Where the table stands in `Host.more`."""


def table(host: Host) -> Subagents:
    """Raises Unavailable where there are none."""
    found = host.more.get(WHERE)
    if not isinstance(found, Subagents):
        raise Unavailable("sub-agents are not ready yet; try again in a moment")
    return found


async def stop_under(host: Host, key: str) -> list[Child]:
    """Stop all that work for a session; those that were stopped."""
    found = host.more.get(WHERE)
    return await found.stop_under(key) if isinstance(found, Subagents) else []
