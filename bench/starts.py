"""Commands that end, and the start and rest of the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from bench import clients
from bench.figures import Row, spread
from bench.ground import BARE_PORT, STACK, Ground
from bench.process import Process, bare, gateway
from bench.products import Once, Product

REST_S = 30.0
TURNS = 20


def cli(ground: Ground, products: Sequence[Product], rounds: int) -> None:
    """`--version`, `--help` and a command that tells the state."""
    _commands(ground, products, rounds, {p.name: p.settings.get("cli", {}) for p in products})


def oneshot(ground: Ground, products: Sequence[Product], rounds: int) -> None:
    """One turn in one process, without a gateway."""
    _commands(ground, products, rounds, {p.name: {"oneshot": p.settings["oneshot"]} for p in products})


def _commands(
    ground: Ground, products: Sequence[Product], rounds: int, commands: Mapping[str, Mapping[str, list[str]]]
) -> None:
    """Round robin, so that a drift of the machine hits all alike; the first round warms the caches."""
    for product in products:
        product.prepare(fresh=False)
    runs: dict[tuple[str, str], list[Once]] = {}
    for number in range(rounds + 1):
        for product in products:
            for what, command in commands[product.name].items():
                once = product.once(command)
                if number:
                    runs.setdefault((product.name, what), []).append(once)
    for (name, what), found in runs.items():
        ground.book.write(
            name,
            what,
            wall_s=spread([once.wall_s for once in found]),
            cpu_s=spread([once.cpu_s for once in found]),
            peak_mib=spread([once.peak_mib for once in found], 1),
            codes=sorted({once.code for once in found}),
        )


def start(ground: Ground, products: Sequence[Product], rounds: int) -> None:
    """Seconds and CPU until a client's handshake is done; the first start, on an empty state folder, apart."""
    for product in products:
        product.prepare(fresh=True)
        starts: list[Row] = []
        for _ in range(rounds + 1):
            with gateway(product) as (_, took):
                starts.append(took)
        fresh, warm = starts[0], starts[1:] or starts
        ground.book.write(product.name, "start", fresh=fresh, **{key: spread([s[key] for s in warm]) for key in fresh})


def rest(ground: Ground, products: Sequence[Product], rounds: int) -> None:
    """Memory and CPU at rest on an empty state folder, and memory again after turns; the bare stack's beside it."""
    with bare(ground.python, BARE_PORT) as stack:
        time.sleep(5)
        ground.book.write(STACK, "rest", **stack.weight())
    for product in products:
        for _ in range(rounds):
            product.prepare(fresh=True)
            with gateway(product) as (process, _):
                ground.book.write(product.name, "rest", **_resting(process, product))


def _resting(process: Process, product: Product) -> Row:
    time.sleep(REST_S)
    weight, before, began = process.weight(), process.cpu(), time.monotonic()
    time.sleep(REST_S)
    idle = (process.cpu() - before) / (time.monotonic() - began) * 100
    asyncio.run(_talk(product))
    time.sleep(REST_S)
    return {**weight, "idle_cpu_pct": round(idle, 2), "used_rss_mib": round(process.rss(), 1)}


async def _talk(product: Product) -> None:
    client = await clients.opened(product.settings)
    for number in range(TURNS):
        await client.turn("rest", f"hello number {number}")
    await client.close()
