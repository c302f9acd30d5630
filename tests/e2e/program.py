"""The real program in a home of its own: run it, and look at what it said."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from garra.io.lock import holder
from garra.testing.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Program:
    """An installation below `home`, and the command that runs on it."""

    home: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.home / ".garra"

    @property
    def config(self) -> Path:
        return self.state / "garra.json"

    @property
    def variables(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **self.env}

    def configure(self, **config: Any) -> None:
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.config.write_text(json.dumps(config))

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "garra", *words]

    def run(self, *words: str, text: str | None = "", cwd: Path | None = None) -> Ran:
        ran = subprocess.run(
            self.argv(*words),
            env=self.variables,
            cwd=cwd or self.home,
            input=text.encode() if text is not None else None,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    async def arun(self, *words: str, text: str = "") -> Ran:
        """The same beside a server that lives in this loop."""
        return await asyncio.to_thread(self.run, *words, text=text)


def speaking(url: str, **more: Any) -> dict[str, Any]:
    """A configuration whose model is a test server at `url`."""
    provider = {
        "api": "openai-completions",
        "baseUrl": f"{url}/v1",
        "apiKey": "test",
        "models": [{"id": "fake", "name": "Fake"}],
    }
    return {
        "models": {"providers": {"fake": provider}},
        "agents": {"defaults": {"model": {"primary": "fake/fake"}}},
        **more,
    }


@contextmanager
def gateway(program: Program, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A gateway of the installation, from its being ready to its end by SIGTERM."""
    log = (program.home / "gateway.log").open("ab")
    process = subprocess.Popen(
        program.argv("gateway", "run", "--port", "0", *words),
        env=program.variables,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=program.home,
    )
    try:
        awaited(lambda: port(program) is not None or process.poll() is not None)
        assert process.poll() is None, (program.home / "gateway.log").read_text()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)
        log.close()


def port(program: Program) -> int | None:
    """Where the installation's gateway listens, None when none does."""
    held = holder(program.state / "gateway.lock")
    found = held.get("port") if held else None
    return found if isinstance(found, int) and found else None


def awaited(true: Callable[[], bool], seconds: float = 30.0, what: Callable[[], str] = lambda: "it") -> None:
    """Wait until something is so; fail, with what was waited for, when it does not become so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"did not come about in {seconds} s: {what()}"
        time.sleep(0.02)


@contextmanager
def model(server: ModelServer) -> Iterator[ModelServer]:
    """A model server in a thread of its own, for tests that wait for programs."""
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(5)
    try:
        yield server
    finally:
        over.set()
        thread.join(5)
