"""Long work on the loop and those who wait meanwhile: a turn with a long history lets the turns of others pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from garra.sdk.written import Rest

PAUSE_S: Final = 0.001
"""A turn of another session takes some dozen rounds of the loop. With a round in between each would wait for a slice;
so long are they let through, about as long as a slice takes."""


def breathing(crowded: Callable[[], bool]) -> Rest:
    """What is awaited between two slices: a pause while others are under way, else one round of the loop."""

    async def rest() -> None:
        await asyncio.sleep(PAUSE_S if crowded() else 0)

    return rest
