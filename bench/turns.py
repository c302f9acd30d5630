"""One turn after the other: how long, how much CPU, and whether a long conversation costs more than a short one."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from bench.clients import Client
from bench.figures import latency, quantile, spread
from bench.ground import Ground
from bench.process import Process
from bench.products import Product

LONG = 10_000
"""Messages of the long conversation."""


async def _timed(client: Client, session: str, text: str, expect: str) -> float:
    """Seconds of one turn. Raises RuntimeError when the reply lacks what is expected."""
    began = time.monotonic()
    reply = await client.turn(session, text)
    took = time.monotonic() - began
    if expect not in reply:
        raise RuntimeError(f"{text!r} was answered with {reply[:200]!r}")
    return took


async def _warm(client: Client) -> None:
    for number in range(3):
        await client.turn("warm", f"hi {number}")


def turns(ground: Ground, products: Sequence[Product], count: int) -> None:
    """A growing conversation; also the size of what the model is sent in its first and last turn."""
    for product in products:

        async def work(process: Process, client: Client, product: Product = product) -> None:
            await _warm(client)
            first = ground.stats()
            before, rss = process.cpu(), process.rss()
            session = f"grow-{time.monotonic_ns()}"
            took = [await _timed(client, session, "hello number 0", "pong")]
            opening = ground.stats()
            took += [await _timed(client, session, f"hello number {n}", "pong") for n in range(1, count)]
            cpu, last = process.cpu() - before, ground.stats()
            tenth = max(1, count // 10)
            early, late = quantile(took[:tenth], 0.5), quantile(took[-tenth:], 0.5)
            ground.book.write(
                product.name,
                "turns",
                **latency(took),
                first_tenth_p50_ms=round(early * 1e3, 2),
                last_tenth_p50_ms=round(late * 1e3, 2),
                growth=round(late / early, 2),
                cpu_ms=round(cpu / count * 1e3, 2),
                requests_per_turn=round((last["requests"] - first["requests"]) / count, 2),
                request_bytes_last=last["newest_bytes"],
                rss_mib_before=round(rss, 1),
                rss_mib_after=round(process.rss(), 1),
            )
            ground.book.write(
                product.name,
                "request",
                bytes=opening["newest_bytes"],
                system_and_tools_bytes=opening["system_bytes"] + opening["tools_bytes"],
                system_bytes=opening["system_bytes"],
                tools_bytes=opening["tools_bytes"],
                tools=opening["tools"],
            )

        ground.served(product, work)


def tool(ground: Ground, products: Sequence[Product], pairs: int) -> None:
    """What one call of the shell tool with `true` adds to a turn."""
    for product in products:

        async def work(process: Process, client: Client, product: Product = product) -> None:
            text = product.settings["tool_text"]
            for _ in range(3):
                await client.turn("tool", "hi")
                await client.turn("tool", text)
            plain, called = [], []
            before, seen = process.cpu(), ground.stats()["requests"]
            for _ in range(pairs):
                plain.append(await _timed(client, "tool", "hi", "pong"))
                called.append(await _timed(client, "tool", text, "tool done"))
            ground.book.write(
                product.name,
                "tool",
                extra_ms=spread([(b - a) * 1e3 for a, b in zip(plain, called, strict=True)], 2),
                plain_p50_ms=latency(plain)["p50_ms"],
                tool_p50_ms=latency(called)["p50_ms"],
                cpu_ms_a_pair=round((process.cpu() - before) / pairs * 1e3, 1),
                requests_a_pair=round((ground.stats()["requests"] - seen) / pairs, 2),
            )

        ground.served(product, work)


def load(ground: Ground, products: Sequence[Product], count: int) -> None:
    """Turns in a conversation of 10,000 stored messages; the first reads it from disk."""

    async def begin(_: Process, client: Client) -> None:
        await client.turn("big", "hello")

    for product in products:
        if not product.settings.get("grow") or not ground.served(product, begin):
            continue
        grow = [sys.executable, "-m", "bench.synth", product.settings["grow"], str(product.state), str(LONG)]
        subprocess.run(grow, check=True)

        async def work(process: Process, client: Client, product: Product = product) -> None:
            await _warm(client)
            rss = process.rss()
            first = await _timed(client, "big", "hi 0", "pong")
            before = process.cpu()
            later = [await _timed(client, "big", f"hi {n}", "pong") for n in range(1, count)]
            ground.book.write(
                product.name,
                "load",
                first_ms=round(first * 1e3, 1),
                later_ms=spread([took * 1e3 for took in later], 1),
                cpu_ms=round((process.cpu() - before) / len(later) * 1e3, 1),
                request_bytes=ground.stats()["newest_bytes"],
                rss_mib_before=round(rss, 1),
                rss_mib_after=round(process.rss(), 1),
            )

        ground.served(product, work)
