"""Messages of chats, in Garra alone: a platform of the measurement's own inside the gateway, no limits, no waiting."""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.clients import Client
from bench.figures import Row, latency, quantile, spread
from bench.ground import MODEL_PORT, Ground, model
from bench.process import Process
from bench.products import HERE, Product
from bench.turns import LONG

PORT = 19223
HUGE_PORT = 18997
"""The huge chat has a fake model of its own, which skims what it is sent and runs with the lowest priority (`nice`): a
real one is none of this machine's work. Reading a request of 1.5 MB takes the stand-in 2 to 3 ms, on one of the two
cores that the gateway and the others' model need at that moment."""
PLUGINS = HERE / "plugins"
CHATS = 100
RUNNING = 50
"""Turns that run while it is measured how fast a message is stored."""
OTHERS, ROUNDS, PAUSE_S = 20, 8, 1.0
"""Chats beside a hung and a huge one, the turns of each, and the time between an answer and the next message."""
TIMES = 5
"""So often the others talk by themselves, and so often beside those."""
WAITING = 100
"""Messages behind the hung one in its chat."""
PROBE_S = 0.005
"""So often it is looked how late the gateway's loop is."""
SETTLE_S = 2.0
"""Until those are taken in: what is looked at is a chat that hangs, not a burst."""
BULK, EACH, FILLED = 100_000, 5, 250
"""Bytes of a tool's result, how many turns a conversation has of them, and how many are made before it counts."""

Work = Callable[[Process, Client], Awaitable[None]]
Says = Mapping[str, Sequence[str]]


def chats(ground: Ground, products: Sequence[Product], each: int) -> None:
    """`each` messages at once from each of 100 chats; storing while turns run; what a hung and a huge chat do."""
    for product in filter(_serves, products):
        mine = _furnished(product)

        async def first(process: Process, client: Client, product: Product = product) -> None:
            await _warm()
            ground.book.write(product.name, "chats", **await _burst(process, each))
            ground.book.write(product.name, "chats stored", **await _stored())
            await _ask({"huge": ["hello"]})

        if not ground.served(mine, first):
            continue
        grow = [sys.executable, "-m", "bench.synth", mine.settings["grow"], str(mine.state), str(LONG)]
        subprocess.run([*grow, "agent:main:bench:direct:huge"], check=True)

        async def second(process: Process, client: Client, product: Product = product) -> None:
            await _warm()
            ground.book.write(product.name, "chats beside", **await _beside(process))

        with model(HUGE_PORT, "skim", apart=True):
            ground.served(mine, second)


def soak(ground: Ground, products: Sequence[Product], turns: int) -> None:
    """`turns` turns, each with a tool's result of 100 KB: whether the last fifth weighs as much as the first."""
    for product in filter(_serves, products):

        async def work(process: Process, client: Client, product: Product = product) -> None:
            await _warm()
            ground.book.write(product.name, "soak", **await _soaked(process, turns))

        ground.served(_furnished(product), work)


def _serves(product: Product) -> bool:
    return "extensions" in product.settings


def _furnished(product: Product) -> Product:
    """The product beside itself, with the measurement's plugins, on an empty state folder."""
    mine = product.beside("chats")
    mine.prepare(fresh=True)
    for plugin in PLUGINS.iterdir():
        shutil.copytree(plugin, mine.state / mine.settings["extensions"] / plugin.name)
    name = next(name for name in mine.settings["files"] if name.endswith(".json"))
    path: Path = mine.state / name
    written = json.loads(path.read_text())
    written["channels"] = {"bench": {"port": PORT, "dmPolicy": "open", "allowFrom": ["*"]}}
    written["plugins"] = {"entries": {f"bench-{plugin.name}": {"enabled": True} for plugin in PLUGINS.iterdir()}}
    written["messages"] = {
        "inbound": {"debounceMs": 0},
        "queue": {"mode": "followup", "debounceMs": 0, "cap": 1_000},
    }
    fake = written["models"]["providers"]["fake"]
    there = {"baseUrl": fake["baseUrl"].replace(str(MODEL_PORT), str(HUGE_PORT))}
    written["models"]["providers"]["apart"] = {**fake, **there}
    path.write_text(json.dumps(written))
    return mine


async def _ask(say: Says, **how: object) -> Row:
    """Have the platform say it (bench.plugins.chats.network.Asked); gives its `Told`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=64 << 20)
    writer.write(json.dumps({"say": say, **how}).encode() + b"\n")
    told: Row = json.loads(await reader.readline())
    writer.close()
    return told


async def _warm() -> None:
    await _ask({f"warm{number}": ["hi 0", "hi 1"] for number in range(5)}, turns=True)


def _texts(chats: Iterable[object], each: int, text: str = "hello number {}") -> Says:
    return {f"{chat}": [text.format(f"{chat}-{number}") for number in range(each)] for chat in chats}


def _failures(told: Row) -> Row:
    wrong = told["wrong"]
    return {"failures": len(wrong), "first_failure": wrong[0] if wrong else None}


async def _burst(process: Process, each: int) -> Row:
    cpu, rss = process.cpu(), process.rss()
    told = await _ask(_texts(range(CHATS), each))
    turns = len(told["answered_s"])
    return {
        "turns": turns,
        "turns_per_s": round(turns / told["wall_s"], 1),
        "cpu_ms": round((process.cpu() - cpu) / turns * 1e3, 2),
        "rss_mib_before": round(rss, 1),
        "rss_growth_mib": round(process.rss() - rss, 1),
        **_failures(told),
    }


async def _stored() -> Row:
    """Each chat's turn waits a second for its model, so that about 50 turns run all the time."""
    say = _texts((f"running{number}" for number in range(RUNNING)), 20, "sleep:1 {}")
    told = await _ask(say, answer="slept", turns=True, stagger_s=1 / RUNNING)
    return {**latency(told["accepted_s"]), **_failures(told)}


async def _beside(process: Process) -> Row:
    """The others by themselves and beside a hung and a huge chat, in turns."""
    alone, beside, huge, wrong = _Others("alone"), _Others("beside"), [], []
    await _ask({"huge": ["/model apart/fake"]}, answer="model")
    first = await _ask({"huge": ["read me"]})
    for _ in range(TIMES):
        await alone.talk(process)
        await _ask({"hung": ["sleep:3600", *(f"waiting {number}" for number in range(WAITING))]}, answer="")
        await asyncio.sleep(SETTLE_S)
        talk = _ask(_texts(["huge"], ROUNDS), turns=True, pause_s=PAUSE_S)
        told, _ = await asyncio.gather(talk, beside.talk(process))
        huge += told["answered_s"]
        wrong += told["wrong"]
        await _ask({"hung": ["/stop"]}, answer="")
    return {
        "alone_p50_ms": alone.figure(0.5),
        "beside_p50_ms": beside.figure(0.5),
        "alone_p95_ms": alone.figure(0.95),
        "beside_p95_ms": beside.figure(0.95),
        "p95_ratio": round(beside.figure(0.95) / alone.figure(0.95), 2),
        "alone_late_ms": alone.late(),
        "beside_late_ms": beside.late(),
        "alone_cpu_pct": spread(alone.cpu_pct, 1),
        "beside_cpu_pct": spread(beside.cpu_pct, 1),
        "huge_first_ms": round(first["answered_s"][0] * 1e3, 1),
        "huge_p50_ms": round(quantile(huge, 0.5) * 1e3, 1),
        **_failures({"wrong": [*wrong, *alone.wrong, *beside.wrong]}),
    }


@dataclass(slots=True)
class _Others:
    """The chats that have nothing to do with the hung and the huge one."""

    name: str
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    cpu_pct: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    async def talk(self, process: Process) -> None:
        cpu = process.cpu()
        say = _texts((f"{self.name}{number}" for number in range(OTHERS)), ROUNDS)
        told = await _ask(say, turns=True, pause_s=PAUSE_S, stagger_s=PAUSE_S / OTHERS, probe_s=PROBE_S)
        self.late_s += told["late_s"]
        self.seconds += told["answered_s"]
        self.wrong += told["wrong"]
        self.cpu_pct.append((process.cpu() - cpu) / told["wall_s"] * 100)

    def late(self) -> Row:
        """How late the gateway's loop came to what was due, ms."""
        return {f"p{share * 100:g}": round(quantile(self.late_s, share) * 1e3, 2) for share in (0.5, 0.99, 0.999)}

    def figure(self, share: float) -> float:
        return round(quantile(self.seconds, share) * 1e3, 2)


async def _soaked(process: Process, turns: int) -> Row:
    """In five parts, each of conversations of its own; memory is looked at all the time. Before, what is kept in memory
    on purpose (the conversations used last) is filled."""
    weights: list[float] = []
    rss = process.rss()
    await _ask(_bulky("filled", FILLED // EACH), answer="tool done", turns=True, at_once=10)
    filled = process.rss()
    cpu, began, wrong = process.cpu(), time.monotonic(), []
    for part in range(5):
        seen: list[float] = []
        asking = asyncio.create_task(_ask(_bulky(part, turns // 5 // EACH), answer="tool done", turns=True, at_once=10))
        while not asking.done():
            await asyncio.wait([asking], timeout=0.25)
            seen.append(process.rss())
        told = await asking
        wrong += told["wrong"]
        weights.append(statistics.mean(seen))
    return {
        "turns": turns,
        "rss_mib_before_and_filled": [round(rss, 1), round(filled, 1)],
        "rss_mib_by_fifth": [round(weight, 1) for weight in weights],
        "rss_growth": round(weights[-1] / weights[0], 3),
        "cpu_ms": round((process.cpu() - cpu) / turns * 1e3, 1),
        "turns_per_s": round(turns / (time.monotonic() - began), 1),
        **_failures({"wrong": wrong}),
    }


def _bulky(part: object, count: int) -> Says:
    call: dict[str, Any] = {"bytes": BULK}
    return _texts(
        (f"bulk{part}-{number}" for number in range(count)),
        EACH,
        "{} tool:bulky " + json.dumps(call).replace("{", "{{").replace("}", "}}"),
    )
