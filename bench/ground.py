"""What every measurement stands on: the book, the fake model, the ports."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench import clients
from bench.clients import Client
from bench.figures import Book
from bench.process import Process, answering, gateway, spawn
from bench.products import Product

MODEL_PORT = 18998
BARE_PORT = 19215
STACK = "bare stack"
"""The product name under which the stack and the machine stand in the book."""
SETTLE_S = 3.0
"""A started gateway is left alone for so long before it is measured."""


@dataclass(frozen=True, slots=True)
class Ground:
    """`python` is the interpreter that Garra runs on."""

    book: Book
    python: str

    def stats(self, *, again: bool = False) -> dict[str, int]:
        """What the fake model has seen (bench.model.Stats); `again`: `max_inflight` is counted anew from now on."""
        url = f"http://127.0.0.1:{MODEL_PORT}/stats{'?again=1' if again else ''}"
        with urllib.request.urlopen(url) as response:
            found: dict[str, int] = json.load(response)
            return found

    def served(self, product: Product, work: Callable[[Process, Client], Awaitable[None]]) -> bool:
        """Start the product's gateway, let `work` measure it. Gives False, having written why, on failure."""
        product.prepare(fresh=False)
        try:
            with gateway(product) as (process, _):
                time.sleep(product.settings.get("settle_s", SETTLE_S))
                asyncio.run(_with_client(product, process, work))
        except (OSError, RuntimeError, TimeoutError) as fault:
            self.book.write(product.name, "failed", error=repr(fault)[:300])
            return False
        return True


async def _with_client(product: Product, process: Process, work: Callable[[Process, Client], Awaitable[Any]]) -> None:
    client = await clients.opened(product.settings)
    try:
        await work(process, client)
    finally:
        await client.close()


@contextmanager
def model(port: int = MODEL_PORT, *more: str, apart: bool = False) -> Iterator[Process]:
    """The fake model, serving, in a process of its own; `more` is said to `bench.model`. `apart`: it runs only where
    nobody else wants the machine, as if it were elsewhere.
    """
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise SystemExit(f"port {port} is in use: another measurement runs; wait for its end or stop it")
    aside = ["nice", "-n", "19"] if apart else []
    process = spawn([*aside, sys.executable, "-m", "bench.model", str(port), *more], cwd=None)
    try:
        answering(process, f"http://127.0.0.1:{port}/stats")
        yield process
    finally:
        process.stop()
