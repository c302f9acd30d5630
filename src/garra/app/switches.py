"""The kill switch of this house: what it ends beside runs, and where its pause is kept."""

from __future__ import annotations

from garra.app.house import House
from garra.io.store.shelf import Shelf
from garra.runs.switch import SHELF, Switch, Works


async def made(house: House) -> Switch:
    """A pause that an earlier process was given holds from here on."""
    browser = house.reach.browser

    async def browsing() -> str:
        running = browser.running
        await browser.stop()
        return "the browser" if running else ""

    works = Works(house.runs, house.subagents, house.supervisor, house.clock, Shelf(house.db, SHELF), (browsing,))
    switch = Switch(works)
    await switch.load()
    return switch
