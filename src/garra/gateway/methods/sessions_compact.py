"""`sessions.compact`: a conversation is summed up, or its oldest part is no longer shown to the model."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from garra.gateway.compacting import done, summed
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, Caller, Method
from garra.gateway.params import Name, Params
from garra.runs import chore


class SessionsCompact(Params, frozen=True):
    key: Name
    agent_id: Name | None = None
    max_lines: Annotated[int, Meta(ge=1)] | None = None


async def compact(host: Host, caller: Caller, params: SessionsCompact) -> dict[str, Any]:
    """Waits until it is done, behind what runs. Without a summary (`maxLines`) nothing is taken from the transcript
    either: the last so many messages are what the model is shown.
    """
    session = await host.session(host.key(params.key, params.agent_id))
    answer: dict[str, Any] = {"ok": True, "key": session.key}
    if params.max_lines is not None:
        kept = int(await done(host, session, f"{chore.KEEP}{params.max_lines}"))
        return {**answer, "compacted": True, "kept": kept}
    before, after = await summed(host, session)
    return {**answer, "compacted": True, "result": {"tokensBefore": before, "tokensAfter": after}}


METHODS: tuple[Method, ...] = (Method("sessions.compact", ADMIN, SessionsCompact, compact),)
