"""The clock: the only module that asks what time it is."""

from __future__ import annotations

import time


class SystemClock:
    """The machine's clock, as `sdk.ports.Clock`."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def hold(self, seconds: float) -> None:
        """Wait where there is no loop; it holds up the thread."""
        time.sleep(seconds)

    async def sleep(self, seconds: float) -> None:
        from asyncio import sleep  # noqa: PLC0415 - commands that never wait need not load asyncio

        await sleep(seconds)
