"""`gateway.restart.*`: whether it is a good moment to begin anew, and to do so."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final

from garra.core.errors import UserError
from garra.gateway import own
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Nothing, Params
from garra.gateway.restarting import WHERE, Restart

PATIENCE_S: Final = 300.0
"""So long a safe restart waits for running work; then it goes ahead, and what is not over is gone on with."""
ASKED: Final = "restart.asked"
"""Where in `Host.more` it stands that a restart is on its way."""


class Asked(Params, frozen=True):
    """`safe` waits until nothing runs, `skipDeferral` does not. `target` {pid, port} holds for that process alone;
    `restartIntent` is what some clients send along.
    """

    reason: str = ""
    safe: bool = False
    skip_deferral: bool = False
    target: dict[str, Any] | None = None
    restart_intent: dict[str, Any] | None = None


def preflight(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    return moment(host)


def moment(host: Host) -> dict[str, Any]:
    """What runs now, as `{safe, counts, blockers, summary}`."""
    runs = [run for run in host.runs.every() if run.state != "ended"]
    waiting = sum(run.state == "queued" for run in runs)
    counts = {
        "queueSize": waiting,
        "pendingReplies": 0,
        "embeddedRuns": len(runs) - waiting,
        "cronRuns": 0,
        "backgroundExecSessions": 0,
        "rootRequests": 0,
        "activeTasks": 0,
        "totalActive": len(runs),
    }
    words = (("embedded-run", len(runs) - waiting, "run"), ("queue", waiting, "waiting message"))
    blockers = [
        {"kind": kind, "count": count, "message": f"{count} {word}{'' if count == 1 else 's'}"}
        for kind, count, word in words
        if count
    ]
    said = "; ".join(str(blocker["message"]) for blocker in blockers)
    summary = f"restart deferred: {said}" if blockers else "safe to restart now"
    return {"safe": not runs, "counts": counts, "blockers": blockers, "summary": summary}


async def request(host: Host, caller: Caller, params: Asked) -> dict[str, Any]:
    """Raises Forbidden for an agent's own command, UserError where it is not this process that is meant."""
    await own.refuse(caller)
    found = host.more.get(WHERE)
    if not isinstance(found, Restart):
        raise UserError("this gateway cannot begin anew by itself; restart it as it was started")
    _aimed(params.target)
    before = moment(host)
    wait = (params.safe or params.target is None) and not params.skip_deferral and not before["safe"]
    status = "coalesced" if host.more.get(ASKED) else "deferred" if wait else "scheduled"
    if status != "coalesced":
        host.more[ASKED] = True
        reason = params.reason.strip()[:200] or "gateway.restart.request"
        host.spawn(_begin(host, found, reason, wait=wait), "restart")
    return {"ok": True, "status": status, "preflight": before, "pid": os.getpid()}


async def _begin(host: Host, found: Restart, reason: str, *, wait: bool) -> None:
    end = host.clock.monotonic() + PATIENCE_S * wait
    while wait and (left := end - host.clock.monotonic()) > 0:
        runs = [run for run in host.runs.every() if run.state != "ended"]
        if not runs:
            break
        with suppress(TimeoutError):
            await runs[0].wait(left)
    await host.clock.sleep(0.05)  # the answer leaves first
    found.begin(reason)


def _aimed(target: dict[str, Any] | None) -> None:
    if target is not None and target.get("pid") != os.getpid():
        raise UserError("target gateway no longer owns the active lock")


METHODS: tuple[Method, ...] = (
    Method("gateway.restart.preflight", READ, Nothing, preflight),
    Method("gateway.restart.request", ADMIN, Asked, request),
)
