"""`work.*`: stop everything at once, begin nothing, go on."""

from __future__ import annotations

from typing import Any

from garra.gateway import own
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Params
from garra.gateway.work import switch


class Nothing(Params, frozen=True):
    """No parameters."""


class StopAll(Params, frozen=True):
    """`pause`: nothing begins any more until `work.resume`, over restarts too."""

    pause: bool = False


async def stop_all(host: Host, caller: Caller, params: StopAll) -> dict[str, Any]:
    return (await switch(host).stop(pause=params.pause)).body


async def resume(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    await own.refuse(caller)
    return {"resumed": await switch(host).resume()}


def state(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    found = switch(host)
    return {"paused": found.paused, "since": found.since_ms or None}


METHODS: tuple[Method, ...] = (
    Method("work.stop", ADMIN, StopAll, stop_all),
    Method("work.resume", ADMIN, Nothing, resume),
    Method("work.state", READ, Nothing, state),
)
