"""Whole turns of a gateway, at rest and while it indexes a year of chat beside them: does indexing delay a turn?

    bench/.venv/bin/python -m bench.memory_turns [--rounds 8] [--turns 100]

The environment is that of `bench/run.sh`. In each round one gateway answers so many turns at rest, and as many while
its child reads the year (and makes vectors, where the small model is installed); both halves stand in the same process,
so that they can be compared. The index is deleted between rounds. The model is the fake one that answers at once. Run
it where nothing else is at work.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import sys
import time
from pathlib import Path

from bench import clients, products
from bench.clients import OpenClawSocket
from bench.figures import quantile
from bench.ground import model
from bench.memory_year import made, written
from bench.process import gateway
from bench.products import HERE, Product

BEGUN_S = 1.0
"""Until the child reads."""
WARM = 10
BOUND = 1.10
"""A turn beside indexing may take so many times as long, at the 95th percentile."""


def furnished(garra: str) -> Product:
    """The product with the year among its conversations."""
    found = products.read(HERE / "peers.toml", {"garra": garra, "peers": ""})["garra"].beside("memory-turns")
    found.prepare(fresh=True)
    written(made(), folder(found) / "sessions")
    return found


def folder(product: Product) -> Path:
    return product.state / "home" / ".garra" / "agents" / "main"


async def talked(client: OpenClawSocket, session: str, count: int) -> list[float]:
    """Seconds of each turn."""
    took = []
    for number in range(count):
        began = time.monotonic()
        await client.turn(session, f"hello number {number}")
        took.append(time.monotonic() - began)
    return took


async def compared(product: Product, name: str, count: int) -> tuple[list[float], list[float], bool]:
    """Turns at rest, turns while it indexes, and whether it still did when they were over."""
    client = await clients.opened(product.settings)
    assert isinstance(client, OpenClawSocket)
    try:
        await talked(client, f"{name}-warm", WARM)
        rest = await talked(client, f"{name}-rest", count)
        indexing = asyncio.create_task(client.call("memory.index", {"force": True, "wait": True}, 1_800))
        await asyncio.sleep(BEGUN_S)
        busy = await talked(client, f"{name}-busy", count)
        still = not indexing.done()
        indexing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await indexing
        return rest, busy, still
    finally:
        await client.close()


def main(garra: str, rounds: int, count: int) -> int:
    product = furnished(garra)
    rest: list[float] = []
    busy: list[float] = []
    with model():
        for number in range(rounds):
            for path in folder(product).glob("memory.sqlite*"):
                path.unlink()
            with gateway(product):
                time.sleep(3.0)
                quiet, beside, still = asyncio.run(compared(product, f"r{number}", count))
            rest += quiet
            busy += beside
            told = (
                f"{quantile(quiet, 0.95) * 1e3:.2f} ms at rest, {quantile(beside, 0.95) * 1e3:.2f} ms while it indexes"
            )
            print(f"round {number + 1}: p95 {told}{'' if still else ' (it was done before)'}")
    share = quantile(busy, 0.95) / quantile(rest, 0.95)
    for words, part in (("p50", 0.5), ("p95", 0.95)):
        quiet_ms, busy_ms = (quantile(times, part) * 1e3 for times in (rest, busy))
        print(f"{words}: {quiet_ms:.2f} ms at rest, {busy_ms:.2f} ms while it indexes")
    print(f"p95 is {share:.3f} times that at rest; {'within' if share <= BOUND else 'NOT within'} 10 %")
    shutil.rmtree(product.state)
    return 0 if share <= BOUND else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--garra", default=str(HERE.parent / ".venv" / "bin" / "garra"))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--turns", type=int, default=100)
    asked = parser.parse_args()
    sys.exit(main(asked.garra, asked.rounds, asked.turns))
