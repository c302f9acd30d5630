"""The ways out of sandboxes, put together: two doors to the network, and the people who are asked."""

from __future__ import annotations

from contextlib import AsyncExitStack

from garra.config.live import Live
from garra.core.approvals import Question
from garra.domains.exec.approvals import Approvals
from garra.domains.exec.egress import Egress, Ports
from garra.io.clock import SystemClock
from garra.io.http.door import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.ports import Via


def made(approvals: Approvals, live: Live, spawn: Tasks, stack: AsyncExitStack) -> Egress:
    """What gives each sandboxed command its way out; its doors are closed with `stack`."""
    clock = SystemClock()

    def way() -> Via:
        return Via(live.config.proxy_url or None, live.config.ca_file or None)

    def used(question: Question) -> None:
        now = clock.now_ms()
        if grant := approvals.grants.covering(question, now):
            spawn(approvals.grants.use(grant, now), f"use of grant {grant.id}")

    doors = [GuardedHttp(way, guard=True), GuardedHttp(way)]
    for door in doors:
        stack.push_async_callback(door.close)
    return Egress(
        Ports(
            doors[0],
            doors[1],
            approvals,
            lambda question: approvals.grants.covering(question, clock.now_ms()) is not None,
            clock,
            spawn,
            used,
        )
    )
