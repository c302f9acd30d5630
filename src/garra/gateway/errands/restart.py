"""The errand of a restart: the gateway begins anew once the turn that asked for it is over, and says so then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from garra.core.errors import Forbidden, UserError
from garra.gateway.errands.sight import Run
from garra.gateway.host import Host
from garra.gateway.restarting import WHERE, Restart
from garra.runs.errand import Errand

REST_S: Final = 1.0
"""Between the turn's end and the restart: its answer is on its way by then."""


async def restart(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Raises Forbidden for anybody but the owner, UserError where this process cannot begin anew."""
    if not errand.owners:
        raise Forbidden("A restart is for the owner's own turns.")
    found = host.more.get(WHERE)
    if not isinstance(found, Restart):
        raise UserError("This gateway cannot begin anew by itself; its owner restarts it as it was started.")
    if raw.get("dry"):
        return {"status": "possible"}
    host.spawn(_after(host, errand, found), "restart")
    return {"status": "scheduled"}


async def _after(host: Host, errand: Errand, found: Restart) -> None:
    run = host.runs.find(errand.run_id)
    if run is not None:
        await run.wait()
    await found.shelf.set(WHERE, msgspec.to_builtins(errand), durable=True)
    await host.clock.sleep(REST_S)
    found.begin()


ERRANDS: Mapping[str, Run] = {"gateway.restart": restart}
