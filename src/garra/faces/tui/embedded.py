"""The chat's port to a gateway inside this process: the same methods and events, and no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from inspect import isawaitable
from typing import Any

import msgspec

import garra
from garra.app.house import House, new_id
from garra.client.wire import Event
from garra.core.errors import UserError
from garra.faces.tui.backend import NOTICE, Ask, Listener
from garra.faces.tui.remote import CAPS, SCOPES
from garra.gateway.host import Host, Parts
from garra.gateway.method import READ, Caller, Client, Link, Registry, Reply, Scope, Who
from garra.gateway.methods import agents, chat, models, sessions, sessions_change, sessions_say, sessions_watch
from garra.io.files.root import Root
from garra.runs.toolbox import Toolbox

HERE = "in this process"
Consent = Callable[[str, str], Awaitable[bool]]
Enter = Callable[[Consent, Callable[[str], None]], AbstractAsyncContextManager[House]]
"""Opens the house; it asks by the first and tells by the second."""


class Screen:
    """The one connection there is: the screen."""

    def __init__(self, listener: Listener) -> None:
        self.who = Who(
            "tui", Client("openclaw-tui", "ui"), scopes=frozenset(SCOPES), caps=frozenset(CAPS), loopback=True
        )
        self.watching: set[str] = set()
        self._listener = listener

    def send(self, event: str, payload: Any) -> None:
        self._listener(Event(event, plain(payload)))

    def respond(self, request_id: str | int, payload: Any) -> None:
        """An early answer: the screen waits for the last one."""

    def fence(self) -> None:
        """The screen takes each thing as it is said."""


class Hub:
    """Broadcast to the screen alone, as `gateway.parts.Broadcast`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def publish(
        self, event: str, payload: Any, *, scope: Scope = READ, where: Callable[[Link], bool] | None = None
    ) -> None:
        del scope  # the screen is the owner's
        if where is None or where(self._screen):
            self._screen.send(event, payload)

    def watched(self, topic: str) -> bool:
        return topic in self._screen.watching

    def anybody(self, where: Callable[[Link], bool]) -> bool:
        return where(self._screen)


class Embedded:
    """`enter` opens the house when the screen opens; it is closed with it."""

    where = HERE

    def __init__(self, enter: Enter) -> None:
        self._enter = enter
        self._stack = AsyncExitStack()
        self._host: Host | None = None
        self._screen: Screen | None = None
        rows = (agents, chat, models, sessions, sessions_change, sessions_say, sessions_watch)
        self._table = Registry.of(*(module.METHODS for module in rows))

    async def open(self, listener: Listener, ask: Ask) -> None:
        async def consent(session_key: str, reason: str) -> bool:
            del session_key
            return await ask(reason)

        def tell(line: str) -> None:
            listener(Event(NOTICE, {"text": line}))

        house = await self._stack.enter_async_context(self._enter(consent, tell))
        self._screen = screen = Screen(listener)
        self._host = Host(
            Parts(
                version=garra.__version__,
                port=0,
                started_at=house.clock.now_ms(),
                live=house.live,
                sessions=house.sessions,
                runs=house.runs,
                models=house.models,
                tools=Toolbox(house.assembler),
                hub=Hub(screen),
                clock=house.clock,
                spawn=house.spawn,
                later=asyncio.get_running_loop().call_later,
                new_id=new_id,
                files=Root,
            )
        )
        self._stack.callback(self._host.close)

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        if self._host is None or self._screen is None:
            raise UserError("the agent has not started yet")
        if method == "status":
            return {"runtimeVersion": garra.__version__}
        row = self._table.pick(method, self._screen.who)
        try:
            given = params if row.params is None else msgspec.convert(dict(params), row.params)
        except msgspec.ValidationError as fault:
            raise UserError(f"invalid {method} params: {fault}") from fault
        result = row.run(self._host, Caller(self._screen, method), given)
        if isawaitable(result):
            result = await result
        if isinstance(result, Reply):
            if result.error is not None:
                raise result.error
            result = result.payload
        return plain(result)

    async def close(self) -> None:
        self._host = None
        await self._stack.aclose()


def plain(value: Any) -> Any:
    """As it would come over the wire."""
    return msgspec.json.decode(msgspec.json.encode(value))
