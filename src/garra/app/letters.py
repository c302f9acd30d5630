"""What sessions say to each other, tied to the gateway."""

from __future__ import annotations

from garra.gateway.errands.letters import WHERE, Letters
from garra.gateway.host import Host
from garra.gateway.work import SWITCH
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs.switch import Switch


def serve(host: Host, db: Database) -> None:
    """Go on with what an earlier process left, as soon as work may begin."""
    made = host.more[WHERE] = Letters(Shelf(db, WHERE), host)
    host.spawn(_resumed(host, made), "what sessions said to each other")


async def _resumed(host: Host, made: Letters) -> None:
    switch = host.more.get(SWITCH)
    if isinstance(switch, Switch):
        await switch.cleared()
    await made.resume()
