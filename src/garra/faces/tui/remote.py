"""The chat's port to a gateway that runs elsewhere: a kept WebSocket connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from garra.client.target import Target
from garra.client.wire import Event, Link, Self, Wire
from garra.core.errors import GarraError
from garra.faces.tui import waiting
from garra.faces.tui.backend import NOTICE, Ask, Listener
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks

SCOPES = tuple(f"operator.{name}" for name in ("admin", "read", "write", "approvals"))
CAPS = ("agent-kind", "tool-events", "approvals", "exec-approvals", "plugin-approvals")


class Remote:
    """`locate` is asked before each try to connect; `identity` is the folder of this device's key."""

    def __init__(self, locate: Callable[[], Target], identity: Path) -> None:
        self._tasks = Tasks()
        me = Self("openclaw-tui", "ui", SCOPES, CAPS, identity)
        self._wire = Wire(locate, me, spawn=self._tasks, clock=SystemClock())

    @property
    def where(self) -> str:
        return self._wire.url.partition("://")[2]

    async def open(self, listener: Listener, ask: Ask) -> None:
        del ask  # a gateway elsewhere asks by its own events

        def heard(news: Event | Link) -> None:
            listener(news)
            if isinstance(news, Link):
                if news.state == "connected":
                    self._tasks(self._waiting(listener), "what waits for an answer")
            elif text := waiting.told(news.name, news.payload):
                listener(Event(NOTICE, {"text": text}))

        self._wire.listen(heard)
        await self._wire.start()

    async def _waiting(self, listener: Listener) -> None:
        """What was asked before this window was there."""
        for kind in ("exec", "plugin"):
            try:
                rows = await self.call(f"{kind}.approval.list", {})
            except GarraError:
                return  # a gateway that asks nobody
            for row in rows:
                listener(Event(NOTICE, {"text": waiting.told(f"{kind}.approval.requested", row)}))

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        return await self._wire.call(method, params)

    async def close(self) -> None:
        await self._wire.close()
        await self._tasks.close()
