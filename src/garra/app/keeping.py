"""Old conversations are put away while the gateway runs, by the rules of `session.maintenance`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from garra.app.house import House

FIRST_S: Final = 900.0
EVERY_S: Final = 6 * 3_600.0
MODULE: Final = "garra.domains.sessions.keeping"


async def keep(house: House) -> None:
    """Until cancelled. The first look comes a while after the start, when nobody waits for anything."""
    await house.clock.sleep(FIRST_S)
    keeping: Any = importlib.import_module(MODULE)  # loaded when it is first needed, not at the start
    while True:
        config = house.live.config
        if config.session.maintenance.mode == "enforce":
            desk = keeping.Keeping(house.sessions, house.paths.agents, lambda key: _busy(house, key), main_of(house))
            await desk.clean(keeping.policy(config.session.maintenance), house.clock.now_ms(), dry=False)
        await house.clock.sleep(EVERY_S)


def main_of(house: House) -> str:
    """What an agent's own conversation is called."""
    return house.live.config.session.main_key


def _busy(house: House, key: str) -> bool:
    return any(run.session_key == key and run.state != "ended" for run in house.runs.every())
