"""A session's own door to the gateway's methods: whatever goes through it is asked as that very turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from garra.core.groups import Place
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen
from garra.runs.run import Run
from garra.sdk.channel import Address
from garra.sdk.tool import Origin

BETWEEN: Final = "interSession"
"""Under which name a stored message says that another session sent it, and how often it went back and forth."""


@frozen
class Errand:
    """Who asks: the turn, where it was asked for, and which tools it has. `hops` counts how often sessions have
    answered each other up to it, `message_id` is the platform's id of the message that is answered, `since` when the
    turn began, in milliseconds since 1970, `session_id` the conversation.
    """

    session_key: SessionKey
    agent_id: AgentId
    run_id: RunId
    origin: Origin
    place: Place | None = None
    address: Address | None = None
    tools: tuple[str, ...] = ()
    hops: int = 0
    message_id: str = ""
    since: int = 0
    session_id: str = ""

    @property
    def owners(self) -> bool:
        """Whether the turn is the owner's own: at his screen, or in his own direct chat."""
        if self.place is None:
            return self.origin in ("local", "operator")
        return self.place.owner and not self.place.group

    @property
    def requester(self) -> str:
        """The immutable id of whoever asked, by channel and account; empty for the owner at his own screen."""
        place = self.place
        return f"{place.channel}:{place.account}:{place.sender}" if place else ""


Asking = Callable[[Errand, str, Mapping[str, Any]], Awaitable[Any]]
"""Calls a method as a turn. Raises UserError as the method does."""


@frozen
class Door:
    """`sdk.ports.Grants` of one turn."""

    errand: Errand
    asking: Asking

    async def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        return await self.asking(self.errand, method, params)


def errand_of(run: Run, tools: tuple[str, ...]) -> Errand:
    """The errands of a run that may call `tools`."""
    turn = run.turn
    between = turn.meta.get(BETWEEN)
    hops = between.get("hops") if isinstance(between, Mapping) else 0
    return Errand(
        run.session_key,
        run.agent_id,
        run.run_id,
        turn.origin,
        turn.place,
        turn.address,
        tools,
        hops if isinstance(hops, int) else 0,
        _answered(turn.meta),
        run.started_at,
        run.session_id,
    )


def _answered(meta: Mapping[str, Any]) -> str:
    """The last message of a chat that made the turn."""
    rows = (meta.get("provenance") or {}).get("messages") or ()
    return str(rows[-1].get("id", "")) if rows else ""
