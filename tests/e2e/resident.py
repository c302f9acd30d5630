"""The resident program as a process: its own state folder, a strict model behind it, and a raw client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import websockets

from garra.testing.model_server import Fail, ModelServer, Seen
from tests.core import strict

TOKEN = "test-token-0123456789abcdef"
KEY = "sk-secret-of-the-test"
READY_S = 20.0
ROOT = Path(__file__).resolve().parents[2]
ENDS = ("final", "error", "aborted")


class StrictModel(ModelServer):
    """Refuses, as providers do, a history in which a call has no result or a result no call."""

    refused: list[str]

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        wrong = _fault(seen.body["messages"]) if seen.method == "POST" else None
        if wrong:
            self.refused.append(wrong)
            self.replies.insert(0, Fail(400, wrong))
        return await super()._answer(seen, writer)

    def asked(self, text: str) -> list[Any]:
        """The bodies of the requests that hold `text`."""
        return [seen.body for seen in self.requests if text.encode() in seen.raw]


def _fault(messages: list[dict[str, Any]]) -> str | None:
    said = [{**message, "content": _blocks(message.get("content"))} for message in messages]
    return strict.fault([message for message in said if message["role"] != "system"], signatures="")


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content or [])


@asynccontextmanager
async def strict_model() -> AsyncIterator[StrictModel]:
    model = StrictModel()
    model.refused = []
    async with model:
        yield model


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Resident:
    """One installation with its gateway. `env` is what its processes get, nothing else."""

    module = "garra"

    def __init__(self, root: Path, model_url: str = "", more: dict[str, Any] | None = None) -> None:
        self.root, self.state = root, root / "state"
        self.port = free_port()
        self.state.mkdir(parents=True, exist_ok=True)
        (root / "home").mkdir(exist_ok=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "GARRA_STATE_DIR": str(self.state),
            "NO_COLOR": "1",
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        }
        self.config: dict[str, Any] = {
            "gateway": {"port": self.port, "auth": {"mode": "token", "token": TOKEN}},
            "models": {
                "providers": {
                    "fake": {
                        "api": "openai-completions",
                        "baseUrl": f"{model_url}/v1",
                        "apiKey": KEY,
                        "models": [{"id": "fake", "name": "Fake"}],
                    }
                }
            },
            "agents": {"defaults": {"model": {"primary": "fake/fake"}}},
            **(more or {}),
        }
        if model_url:
            self.write()
        self.process: asyncio.subprocess.Process | None = None

    @property
    def config_file(self) -> Path:
        return self.state / "garra.json"

    def write(self) -> None:
        self.config_file.write_text(json.dumps(self.config, indent=2))

    async def launch(self) -> None:
        """Start the gateway."""
        with (self.root / "gateway.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", self.module, "gateway", "run", env=self.env, cwd=self.root,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    async def start(self) -> None:
        """Start the gateway and wait until it is ready."""
        await self.launch()
        assert self.process is not None
        async with asyncio.timeout(READY_S):
            while not await self.ready():
                assert self.process.returncode is None, self.log()
                await asyncio.sleep(0.02)

    async def ready(self) -> bool:
        status, body = await self.get("/readyz")
        return status == 200 and json.loads(body)["ready"] is True

    async def get(self, path: str, *headers: str) -> tuple[int, bytes]:
        """(status, body) of a GET; status 0 when nobody listens."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return 0, b""
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Connection: close", *headers, "", ""]
        writer.write("\r\n".join(lines).encode())
        try:
            answer = await reader.read()
        except OSError:
            return 0, b""
        finally:
            writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return (int(head.split(b" ")[1]) if head else 0), body

    def kill(self) -> None:
        """SIGKILL to the gateway alone, as the kernel would."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)

    async def stop(self) -> int:
        """SIGTERM, and its exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            return await self.process.wait()

    async def gone(self) -> None:
        assert self.process is not None
        await self.process.wait()

    def log(self) -> str:
        return (self.root / "gateway.log").read_text(errors="replace")[-4000:]

    async def run(self, *arguments: str, given: bytes = b"", env: dict[str, str] | None = None) -> tuple[int, str, str]:
        """A command to its end: (exit code, standard output, standard error)."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "garra", *arguments, env={**self.env, **(env or {})}, cwd=self.root,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate(given)
        return process.returncode or 0, out.decode(), err.decode()

    @asynccontextmanager
    async def client(self, **connect: Any) -> AsyncIterator[Client]:
        url = f"ws://127.0.0.1:{self.port}/"
        async with websockets.connect(url, max_size=64 << 20, compression=None) as connection:
            client = Client(connection)
            await client.connect(**connect)
            yield client


@asynccontextmanager
async def resident(root: Path, model_url: str, more: dict[str, Any] | None = None) -> AsyncIterator[Resident]:
    """A running gateway, ended with the block."""
    made = Resident(root, model_url, more)
    await made.start()
    try:
        yield made
    finally:
        made.kill()
        await made.gone()


class Client:
    """A raw operator client."""

    def __init__(self, connection: websockets.ClientConnection) -> None:
        self._connection = connection
        self._next = 0
        self.events: list[dict[str, Any]] = []

    async def connect(self, **more: Any) -> dict[str, Any]:
        params = {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": {"id": "gateway-client", "version": "1", "platform": "linux", "mode": "backend"},
            "role": "operator",
            "scopes": ["operator.admin", "operator.read", "operator.write"],
            "caps": [],
            "auth": {"token": TOKEN},
            **more,
        }
        return await self.call("connect", params)

    async def call(self, method: str, params: dict[str, Any] | None = None, *, last: bool = False) -> dict[str, Any]:
        """The payload of the answer; of the second one when `last`. Raises RuntimeError with the error."""
        self._next += 1
        wanted = str(self._next)
        await self._connection.send(json.dumps({"type": "req", "id": wanted, "method": method, "params": params or {}}))
        while True:
            frame = await self._read()
            if frame.get("type") == "res" and frame.get("id") == wanted:
                if not frame["ok"]:
                    raise RuntimeError(json.dumps(frame["error"]))
                payload: dict[str, Any] = frame["payload"]
                if not (last and payload.get("status") == "accepted"):
                    return payload

    async def _read(self) -> dict[str, Any]:
        frame: dict[str, Any] = json.loads(await self._connection.recv())
        if frame.get("type") == "event":
            self.events.append(frame)
        return frame

    async def until(self, run_id: str) -> dict[str, Any]:
        """The last chat event of a run."""
        while True:
            for event in self.events:
                payload: dict[str, Any] = event.get("payload") or {}
                if event["event"] == "chat" and payload.get("runId") == run_id and payload["state"] in ENDS:
                    return payload
            await self._read()

    async def send(self, text: str, session: str = "agent:main:main", **more: Any) -> str:
        """Say something; gives the run's id."""
        run_id = more.pop("key", "") or f"run-{os.urandom(4).hex()}"
        await self.call("chat.send", {"sessionKey": session, "message": text, "idempotencyKey": run_id, **more})
        return run_id

    async def say(self, text: str, session: str = "agent:main:main", **more: Any) -> dict[str, Any]:
        """Say something and wait for the end of its run."""
        return await self.until(await self.send(text, session, **more))


def words(payload: dict[str, Any]) -> str:
    """What a chat event says."""
    content = (payload.get("message") or {}).get("content") or []
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)
