"""A resident process under measurement: started, weighed with all its children, stopped."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench import clients
from bench.figures import Row
from bench.products import Product

MIB = 1 << 20
READY_S = 180.0


@dataclass(slots=True)
class Process:
    """A started process and its children."""

    root: psutil.Popen

    @property
    def tree(self) -> list[psutil.Process]:
        try:
            return [psutil.Process(self.root.pid), *psutil.Process(self.root.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cpu(self) -> float:
        """User and system seconds of the tree, with those of children that ended and were waited for."""
        total = 0.0
        for process in self.tree:
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def rss(self) -> float:
        """MiB of the tree; pages that processes share count once for each."""
        total = 0
        for process in self.tree:
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue
        return total / MIB

    def weight(self) -> Row:
        pss = threads = processes = 0
        for process in self.tree:
            try:
                pss += process.memory_full_info().pss
                threads += process.num_threads()
            except psutil.Error:
                continue
            processes += 1
        rss = round(self.rss(), 1)
        return {"rss_mib": rss, "pss_mib": round(pss / MIB, 1), "threads": threads, "processes": processes}

    def stop(self) -> float:
        """Ask, wait 15 s, insist. Gives the seconds it took."""
        began, tree = time.monotonic(), self.tree
        if self.root.poll() is None:
            self.root.send_signal(signal.SIGTERM)
        _, late = psutil.wait_procs(tree, timeout=15)
        for process in late:
            process.kill()
        self.root.wait()
        return time.monotonic() - began


@dataclass(slots=True)
class Peak:
    """Watches the memory of a process from a thread until the block ends."""

    process: Process
    mib: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Peak:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.mib = max(self.mib, self.process.rss())

    def __exit__(self, *_: object) -> None:
        self._over.set()


def spawn(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Process:
    """Start a process; what it prints goes to `gateway.log` in its folder, or nowhere."""
    log = (cwd / "gateway.log").open("ab") if cwd else subprocess.DEVNULL
    return Process(
        psutil.Popen(
            list(command), env=dict(env) if env else None, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
    )  # fmt: skip


def answering(process: Process, url: str) -> None:
    """Wait until a GET of `url` is answered with 200. Raises RuntimeError when the process ends or never answers."""
    began = time.monotonic()
    while time.monotonic() - began < READY_S:
        if process.root.poll() is not None:
            raise RuntimeError(f"{url}: the process ended with {process.root.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2) as response:
                if response.status == 200:
                    return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"{url}: no answer in {READY_S:.0f} s")


@contextmanager
def gateway(product: Product) -> Iterator[tuple[Process, Row]]:
    """The product's gateway with a client's handshake done, and what its start took; stopped when the block ends."""
    began = time.monotonic()
    process = spawn(product.settings["gateway"], env=product.env(), cwd=product.state)
    try:
        answering(process, product.settings["ready_url"])
        answered = time.monotonic() - began
        asyncio.run(_shake(product))
        ready = time.monotonic() - began
        start = {"http_s": round(answered, 3), "client_s": round(ready, 3), "cpu_s": round(process.cpu(), 3)}
        yield process, start
    finally:
        process.stop()


async def _shake(product: Product) -> None:
    client = await clients.opened(product.settings)
    await client.close()


@contextmanager
def bare(python: str, port: int) -> Iterator[Process]:
    """The stack without Garra, on the interpreter that Garra runs on."""
    process = spawn([python, str(Path(__file__).with_name("bare.py")), str(port)])
    try:
        answering(process, f"http://127.0.0.1:{port}/healthz")
        yield process
    finally:
        process.stop()
