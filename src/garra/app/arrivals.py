"""Packages that a running gateway waits for: once they are installed, their channels are taken up by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from garra.domains.delivery.accounts import Setup
from garra.domains.plugins import packages
from garra.domains.plugins.discover import Plugin
from garra.sdk.ports import Clock, Spawn

EVERY_S: Final = 3.0


class Arrivals:
    """Looks for them only while a configured account lacks some; `come` is awaited when one plugin has them all."""

    def __init__(self, clock: Clock, spawn: Spawn, come: Callable[[], Awaitable[None]]) -> None:
        self._clock, self._spawn, self._come = clock, spawn, come
        self._waiting: list[Plugin] = []
        self._looking = False

    async def expect(self, plugins: Iterable[Plugin], setups: Iterable[Setup]) -> None:
        """Wait for what these accounts lack now, and for nothing that was waited for before."""
        named = {setup.channel for setup in setups if setup.enabled}
        wanted = [each for each in plugins if any(part.name in named for part in each.manifest.parts)]
        self._waiting = await asyncio.to_thread(_lacking, wanted)
        if self._waiting and not self._looking:
            self._looking = True
            self._spawn(self._look(), "packages of channels")

    async def _look(self) -> None:
        try:
            while self._waiting:
                await self._clock.sleep(EVERY_S)
                if len(await asyncio.to_thread(_lacking, self._waiting)) < len(self._waiting):
                    await self._come()
        finally:
            self._looking = False


def _lacking(plugins: Iterable[Plugin]) -> list[Plugin]:
    return [plugin for plugin in plugins if packages.missing(plugin.manifest)]
