"""Long work on the loop and those who wait meanwhile: a turn with a long history lets the turns of others pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from garra.sdk.written import Rest

PAUSE_S: Final = 0.001
"""How long at a time it is waited while others go first, about as long as a slice takes."""
PATIENCE: Final = 100
"""So many pauses a turn lets others go first; then it takes its share, a slice a pause."""


def breathing(crowded: Callable[[], bool]) -> Rest:
    """What is awaited between two slices of one turn: the way of those who have just begun, else one round of the loop.

    A turn takes some dozen rounds of the loop. Were there a slice in each round, or in each second one, a short turn
    that meets a long one would take as long as both; so the short one goes first, and the long one after it.
    """
    patience = PATIENCE

    async def rest() -> None:
        nonlocal patience
        if not crowded():
            await asyncio.sleep(0)
            return
        await asyncio.sleep(PAUSE_S)
        while patience > 0 and crowded():
            patience -= 1
            await asyncio.sleep(PAUSE_S)

    return rest
