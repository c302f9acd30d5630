"""Many at once: turns, cheap requests, idle connections. Garra is set beside its own stack."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence

from bench import clients
from bench.clients import Asker, Client, EchoSocket
from bench.figures import Row, latency, spread
from bench.ground import BARE_PORT, STACK, Ground
from bench.process import Peak, Process, bare
from bench.products import Product

ROUND_S = 1.5
OPENING = 20
"""So many connections are opened at a time."""

Opener = Callable[[], Awaitable[Asker]]


async def _echo() -> Asker:
    client = EchoSocket({"ws_url": f"ws://127.0.0.1:{BARE_PORT}/"})
    await client.open()
    return client


def conc(ground: Ground, products: Sequence[Product], _: int) -> None:
    """50, then 200 sessions that each make one turn at the same time, against a model that takes one second."""
    for product in products:

        async def work(process: Process, client: Client, product: Product = product) -> None:
            for number in range(3):
                await client.turn("warm", f"hi {number}")
            for sessions in (50, 200):
                ground.book.write(product.name, f"conc{sessions}", **await _together(ground, process, client, sessions))

        ground.served(product, work)


async def _together(ground: Ground, process: Process, client: Client, sessions: int) -> Row:
    failures: list[str] = []

    async def one(number: int) -> None:
        try:
            reply = await client.turn(f"c{sessions}-{number}", "sleep:1", 400)
        except (RuntimeError, OSError, TimeoutError) as fault:
            failures.append(repr(fault)[:200])
        else:
            failures.extend([] if "slept" in reply else [reply[:200]])

    ground.stats(again=True)
    before = process.cpu()
    with Peak(process) as peak:
        began = time.monotonic()
        await asyncio.gather(*(one(number) for number in range(sessions)))
        wall = time.monotonic() - began
    return {
        "wall_s": round(wall, 2),
        "most_in_flight": ground.stats()["max_inflight"],
        "failures": len(failures),
        "first_failure": failures[0] if failures else None,
        "cpu_ms": round((process.cpu() - before) / sessions * 1e3, 1),
        "peak_rss_mib": round(peak.mib, 1),
    }


def rpc(ground: Ground, products: Sequence[Product], rounds: int) -> None:
    """The cheapest requests, one after the other and 4 on each of 10 connections; and the bare echo in between."""
    with bare(ground.python, BARE_PORT) as stack:
        for product in products:

            async def work(process: Process, client: Client, product: Product = product) -> None:
                echo = await _echo()

                async def opened() -> Asker:
                    return await clients.opened(product.settings)

                for method in product.settings["asks"]:
                    sides = [_Side(process, client, opened, method), _Side(stack, echo, _echo, method)]
                    for side in [*sides * rounds]:
                        await side.measure()
                    ground.book.write(product.name, f"rpc {method}", **_compared(*sides))
                await echo.close()

            ground.served(product, work)


class _Side:
    """One of two servers that are asked in turns."""

    def __init__(self, process: Process, client: Asker, opened: Opener, what: str) -> None:
        self._process, self._client, self._opened, self._what = process, client, opened, what
        self.took: list[float] = []
        self.rates: list[float] = []
        self.cpu_us: list[float] = []

    async def measure(self) -> None:
        for _ in range(20):
            await self._client.ask(self._what)
        end = time.monotonic() + ROUND_S
        while (began := time.monotonic()) < end:
            await self._client.ask(self._what)
            self.took.append(time.monotonic() - began)
        await self._crowd()

    async def _crowd(self) -> None:
        crowd = [await self._opened() for _ in range(10)]
        answered = itertools.count()
        began, before = time.monotonic(), self._process.cpu()

        async def work(client: Asker) -> None:
            while time.monotonic() < began + ROUND_S:
                await client.ask(self._what)
                next(answered)

        await asyncio.gather(*(work(client) for client in crowd for _ in range(4)))
        count, took = next(answered), time.monotonic() - began
        self.rates.append(count / took)
        self.cpu_us.append((self._process.cpu() - before) / count * 1e6)
        for client in crowd:
            await client.close()


def _compared(ours: _Side, echo: _Side) -> Row:
    mine, bare_ = latency(ours.took), latency(echo.took)
    sequential = sum(echo.took) / len(echo.took) / (sum(ours.took) / len(ours.took))
    return {
        **mine,
        "rate_40_in_flight": spread(ours.rates, 0),
        "cpu_us": spread(ours.cpu_us, 1),
        "echo_p50_ms": bare_["p50_ms"],
        "echo_rate_40_in_flight": spread(echo.rates, 0),
        "echo_cpu_us": spread(echo.cpu_us, 1),
        "of_echo_sequential": round(sequential, 2),
        "of_echo_40_in_flight": round(sum(ours.rates) / sum(echo.rates), 2),
    }


def conns(ground: Ground, products: Sequence[Product], count: int) -> None:
    """Idle connections: what each weighs, and whether the second half weighs as much as the first."""
    with bare(ground.python, BARE_PORT) as stack:
        time.sleep(3)
        ground.book.write(STACK, "conns", **asyncio.run(_crowded(stack, _echo, count)))
    for product in products:
        if product.settings["transport"] == "http":
            continue

        async def work(process: Process, client: Client, product: Product = product) -> None:
            async def opened() -> Asker:
                return await clients.opened(product.settings)

            figures = await _crowded(process, opened, count)
            began = time.monotonic()
            await client.ask(product.settings["asks"][0])
            ground.book.write(product.name, "conns", **figures, ask_ms=round((time.monotonic() - began) * 1e3, 1))

        ground.served(product, work)


async def _crowded(process: Process, opened: Opener, count: int) -> Row:
    crowd: list[Asker] = []
    weights, began, spent = [process.rss()], time.monotonic(), 0.0
    for half in range(2):
        for _ in range(0, count // 2, OPENING):
            crowd += await asyncio.gather(*(opened() for _ in range(OPENING)))
        spent += time.monotonic() - began
        await asyncio.sleep(3 + half)
        weights.append(process.rss())
        began = time.monotonic()
    before = process.cpu()
    await asyncio.sleep(10)
    idle = (process.cpu() - before) * 10
    alive = sum(client.alive for client in crowd)
    await asyncio.gather(*(client.close() for client in crowd))
    halves = [(later - earlier) * 1024 / (count / 2) for earlier, later in itertools.pairwise(weights)]
    return {
        "opened": len(crowd),
        "alive": alive,
        "kib_each": round(sum(halves) / 2, 1),
        "kib_each_halves": [round(half, 1) for half in halves],
        "opened_per_s": round(len(crowd) / spent),
        "idle_cpu_pct": round(idle, 1),
    }
