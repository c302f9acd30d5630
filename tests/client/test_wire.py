"""The lasting client: signature, events, coming back."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.client.quick import Refused
from garra.client.socket import Unreachable
from garra.client.target import Target
from garra.client.wire import Event, Link, Self, Wire
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks
from tests.client.gateway import TOKEN, Caller, Gateway, running

SCOPES = ("operator.admin", "operator.read")


class Hasty(SystemClock):
    """Sleeps are noted and cut short."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0.01)


async def reached(true: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is waited for is another's plain value
            await asyncio.sleep(0.005)


class Heard(list[Event | Link]):
    """Everything a listener was told."""

    async def until(self, fits: Any) -> Any:
        async with asyncio.timeout(10):
            while True:
                for news in self:
                    if fits(news):
                        return news
                await asyncio.sleep(0.005)


@asynccontextmanager
async def wired(
    gateway: Gateway, folder: Path | None = None, token: str = TOKEN
) -> AsyncIterator[tuple[Wire, Heard, Hasty]]:
    clock, heard = Hasty(), Heard()
    async with Tasks() as tasks:
        me = Self("openclaw-tui", "ui", SCOPES, ("tool-events",), folder)
        wire = Wire(lambda: Target(gateway.url, token), me, spawn=tasks, clock=clock)
        wire.listen(heard.append)
        try:
            yield wire, heard, clock
        finally:
            await wire.close()


async def echo(caller: Caller, params: dict[str, Any]) -> Any:
    await caller.event("chat", {"state": "delta"}, 7)
    return params


async def test_connects_with_a_signed_device_and_calls(tmp_path: Path) -> None:
    async with running({"echo": echo}) as gateway, wired(gateway, tmp_path / "identity") as (wire, heard, _):
        hello = await wire.start()
        assert hello["protocol"] == 4
        assert await wire.call("echo", {"a": 1}) == {"a": 1}
        assert await heard.until(lambda news: isinstance(news, Event)) == Event("chat", {"state": "delta"}, 7)
    device = gateway.connects[0]["device"]
    file = tmp_path / "identity" / "device.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(device["id"]) == 64


async def test_the_same_folder_is_the_same_device_and_keeps_its_token(tmp_path: Path) -> None:
    async with running() as gateway:
        for _ in range(2):
            async with wired(gateway, tmp_path) as (wire, _, _):
                await wire.start()
        async with wired(gateway, tmp_path, token="") as (wire, _, _):
            with pytest.raises(Refused):
                await wire.start()
    first, second, third = gateway.connects
    assert first["device"]["id"] == second["device"]["id"]
    assert third["auth"] == {"deviceToken": "device-token"}


async def test_a_refusal_at_the_start_is_raised_and_not_repeated() -> None:
    async with running() as gateway, wired(gateway, token="wrong") as (wire, _, _):
        with pytest.raises(Refused, match="token mismatch"):
            await wire.start()
        assert len(gateway.connects) == 1


async def test_a_gateway_that_is_still_starting_is_waited_for() -> None:
    async with running({"echo": echo}) as gateway, wired(gateway) as (wire, _, _):
        gateway.starting = 2
        assert (await wire.start())["protocol"] == 4
        assert len(gateway.connects) == 3


async def test_nobody_there_is_unreachable() -> None:
    async with running() as gateway:
        pass
    async with wired(gateway) as (wire, _, _):
        with pytest.raises(Unreachable, match="no gateway answers"):
            await wire.start()
        with pytest.raises(Unreachable, match="not connected"):
            await wire.call("health")


async def test_a_broken_link_fails_what_waits_and_comes_back_by_itself() -> None:
    async def hang(_: Caller, params: dict[str, Any]) -> Any:
        await asyncio.sleep(0.5)

    async with running({"hang": hang, "echo": echo}) as gateway, wired(gateway) as (wire, heard, clock):
        await wire.start()
        await heard.until(lambda news: isinstance(news, Link) and news.state == "connected")
        waiting = asyncio.ensure_future(wire.call("hang"))
        await reached(lambda: bool(gateway.calls))
        await gateway.stop()
        with pytest.raises(Unreachable, match="service restart"):
            await waiting
        lost = await heard.until(lambda news: isinstance(news, Link) and news.state == "lost")
        assert (lost.wait_s, "service restart" in lost.reason) == (1.0, True)
        await reached(lambda: len(clock.slept) >= 7)
        assert clock.slept[:7] == [1, 2, 4, 8, 16, 30, 30]
        heard.clear()
        await gateway.start(gateway.port)
        await heard.until(lambda news: isinstance(news, Link) and news.state == "connected")
        assert await wire.call("echo", {}) == {}


async def test_silence_longer_than_two_ticks_is_a_broken_link() -> None:
    async with running(tick_ms=60) as gateway, wired(gateway) as (wire, heard, _):
        await wire.start()
        lost = await heard.until(lambda news: isinstance(news, Link) and news.state == "lost")
        assert "nothing heard" in lost.reason
        async with asyncio.timeout(20):
            await gateway.callers[0].socket.wait_closed()
        assert gateway.callers[0].socket.close_code == 4000


async def test_a_call_without_an_answer_ends_in_time() -> None:
    async def hang(_: Caller, params: dict[str, Any]) -> Any:
        await asyncio.sleep(0.5)

    async with running({"hang": hang}) as gateway, wired(gateway) as (wire, _, _):
        await wire.start()
        with pytest.raises(Unreachable, match="no answer to hang"):
            await wire.call("hang", timeout_s=0.05)


async def test_of_two_answers_the_last_can_be_waited_for() -> None:
    async def agent(caller: Caller, params: dict[str, Any]) -> Any:
        await caller.early({"status": "accepted"})
        return {"status": "ok"}

    async with running({"agent": agent}) as gateway, wired(gateway) as (wire, _, _):
        await wire.start()
        assert await wire.call("agent", last=True) == {"status": "ok"}
