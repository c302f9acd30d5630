"""A whole gateway on a real port with its own sessions, files and configuration, and a model that does as it is told.

What a message says is what the run does: `say WORDS`, `wait` (until it is stopped), `go` (until `release` is called),
`fail`, `tool`. Everything but the model is the real thing.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from typing import Any

import httpx2

from garra.config.live import Live
from garra.config.paths import resolve
from garra.core import lanes
from garra.core.errors import Failure, FailureKind, NotFound
from garra.core.events import (
    AgentStarted,
    EntryStored,
    MessageEnded,
    MessageStarted,
    MessageUpdated,
    ModelChosen,
    RunEnded,
    RunPhase,
    TextDelta,
    ToolEnded,
    ToolStarted,
)
from garra.core.ids import SessionId, SessionKey
from garra.core.messages import Assistant, Text, ToolCall, ToolResult, Usage
from garra.core.secret import Secret
from garra.domains.access.devices import Devices
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.domains.spending.ledger import Ledger
from garra.gateway import table, work
from garra.gateway.broadcast import EMITTED
from garra.gateway.dispatch import Dispatcher
from garra.gateway.door import Door
from garra.gateway.errands import letters
from garra.gateway.hello import Greeting
from garra.gateway.hello import House as Known
from garra.gateway.host import Host, Parts
from garra.gateway.opening import Opening
from garra.gateway.serve import Server, bind
from garra.gateway.server import Gateway
from garra.gateway.site import Site
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.runs.explain import Asked, Paired
from garra.runs.lane import Lane
from garra.runs.run import Run, Turn
from garra.runs.runner import Ports, Runs
from garra.sdk.model import Model
from garra.sdk.tool import ToolInfo
from tests.gateway import house
from tests.gateway.house import TOKEN

BEARER = {"authorization": f"Bearer {TOKEN}"}
FAKE = Model("fake", "fake", "openai-completions", "http://127.0.0.1:9/v1", "Fake", 200_000)


@dataclass(frozen=True)
class Row:
    id: str = "fake"
    provider: str = "fake"
    ref: str = "fake/fake"
    name: str = "Fake"
    reasoning: bool = False
    context_window: int = 200_000
    input: tuple[str, ...] = ("text",)
    available: bool = True
    configured: bool = True


class Models:
    """One model, and words about every other."""

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        if ref not in (None, "fake", "fake/fake"):
            raise NotFound(f"no model {ref!r}: see `garra models list`")
        return FAKE

    def rows(self) -> Sequence[Row]:
        return [Row(), Row("other", "else", "else/other", "Other", available=False, configured=False)]


class Tools:
    """`echo` says what it is told; `exec` is there and never let out."""

    def infos(self, agent_id: str) -> Sequence[ToolInfo]:
        schema = {"type": "object", "additionalProperties": False}
        return [ToolInfo("echo", "Echo", "Say it again.", schema), ToolInfo("exec", "Run", "Run it.", schema)]

    def explain(self, name: str, asked: Asked, session: Session | None, paired: Paired) -> dict[str, Any]:
        return {"tool": name, "sessionKey": asked.key, "model": asked.model, "senderId": asked.sender}

    def policy(self, asked: Asked, session: Session | None, paired: Paired) -> dict[str, Any]:
        return {"sessionKey": asked.key, "tools": []}

    async def call(self, name: str, arguments: Mapping[str, Any], session_key: SessionKey) -> ToolResult:
        return ToolResult("c", name, (Text(f"{arguments.get('text')} in {session_key}"),), 0, details={"n": 1})


class Acting:
    """Drives runs as their words say."""

    def __init__(self, sessions: Sessions, clock: SystemClock) -> None:
        self._sessions, self._clock = sessions, clock
        self.runs: Runs | None = None
        self.seen: list[Turn] = []
        self.release = asyncio.Event()

    async def drive(self, run: Run, lane: Lane, brief: str) -> RunEnded:
        assert self.runs is not None
        emit = self.runs.emit
        if run.turn.chore:
            return self._ended(run, "ok", "The conversation was summed up: about 2,000 tokens are 300 now.")
        self.seen.append(run.turn)
        emit(run, RunPhase("preparing_workspace"))
        emit(run, RunPhase("starting_model"))
        emit(run, AgentStarted())
        emit(run, ModelChosen("fake", "fake"))
        if "fail" in run.turn.text:
            line = "The provider refused the key."
            failure = Failure(FailureKind.AUTH, line, 401, provider="fake", model="fake")
            return self._ended(run, "error", line, failure=failure)
        if "wait" in run.turn.text:
            return await self._wait(run)
        if "go" in run.turn.text.split():
            run.cancel.attach(self.release.set)
            await self.release.wait()
            if run.cancel.is_set:
                return self._ended(run, "aborted", "")
        if "tool" in run.turn.text:
            await self._tool(run)
        return await self._say(run)

    async def _say(self, run: Run) -> RunEnded:
        assert self.runs is not None
        _, found, words = run.turn.text.rpartition("say ")
        pieces = (words if found else "pong").split(" ")
        self.runs.emit(run, MessageStarted(Assistant((), 0)))
        for at, piece in enumerate(pieces):
            word = piece if at == len(pieces) - 1 else f"{piece} "
            self.runs.emit(run, MessageUpdated(TextDelta(0, word), ""))
            await asyncio.sleep(0)
        message = Assistant(
            (Text(" ".join(pieces)),), 5, "x", "fake", "fake", Usage(100, 5), meta={"__openclaw": {"runId": run.run_id}}
        )
        await self._store(run, message)
        self.runs.emit(run, MessageEnded(message))
        run.trace.usage = run.trace.usage + message.usage
        return self._ended(run, "ok", message.text, message)

    async def _tool(self, run: Run) -> None:
        assert self.runs is not None
        call = ToolCall("call_1", "exec", {"command": "echo hi"})
        await self._store(run, Assistant((call,), 5, "x", "fake", "fake", stop="toolUse"))
        self.runs.emit(run, ToolStarted(call))
        result = ToolResult("call_1", "exec", (Text("hi"),), 5, details={"exitCode": 0})
        self.runs.emit(run, ToolEnded(call, result, 3))
        await self._store(run, result)

    async def _wait(self, run: Run) -> RunEnded:
        stopped = asyncio.Event()
        run.cancel.attach(stopped.set)
        await stopped.wait()
        return self._ended(run, "aborted", "")

    async def _store(self, run: Run, message: Any) -> None:
        assert self.runs is not None
        transcript = await self._sessions.transcript(run.session_key)
        self.runs.emit(run, EntryStored((await transcript.append(message)).body))

    def _ended(
        self, run: Run, ending: Any, reply: str, message: Assistant | None = None, failure: Failure | None = None
    ) -> RunEnded:
        return RunEnded(ending, reply, message, failure, run.started_at, self._clock.now_ms())


@dataclass
class Standing:
    """A gateway that serves."""

    gateway: Gateway
    host: Host
    acting: Acting
    port: int
    folder: Path
    guests: list[Any] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/"

    def door(self, **changes: Any) -> None:
        """Change how one gets in."""
        self.gateway.change(replace(self.gateway.door, **changes))

    def http(self, **headers: str) -> httpx2.AsyncClient:
        """A client of the HTTP side; it shows the token unless told otherwise."""
        return httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers=headers or BEARER)

    def guest(self, **asked: Any) -> Any:
        """A connected client; see `tests.gateway.house.guest`."""
        return house.guest(self, **asked)  # type: ignore[arg-type]


CONFIG: dict[str, Any] = {
    "gateway": {
        "auth": {"mode": "token", "token": TOKEN},
        "http": {"endpoints": {"chatCompletions": {"enabled": True}, "responses": {"enabled": True}}},
    },
    "agents": {"defaults": {"model": {"primary": "fake/fake"}}},
}


def _load() -> None:
    """What a running gateway loads with the first call of a method. To load it may read files, which no test lets pass
    on the event loop.
    """
    for module in table.METHODS:
        importlib.import_module(f"garra.gateway.methods.{module}")
    importlib.import_module("garra.gateway.errands.every")


@asynccontextmanager
async def standing(folder: Path, config: dict[str, Any] | None = None) -> AsyncIterator[Standing]:
    """Open one below `folder`; the same folder again is the same gateway after a restart."""
    env = Environment({"GARRA_STATE_DIR": str(folder), "HOME": str(folder)})
    live = await asyncio.to_thread(_live, folder, env, config)
    await asyncio.to_thread(_load)
    paths = live.paths
    clock, db = SystemClock(), Database(paths.db)
    sessions = Sessions(db, paths.agents, clock, lambda: str(uuid.uuid4()))
    async with Tasks() as spawn:
        acting = Acting(sessions, clock)
        runs = acting.runs = Runs(_ports(sessions, clock, spawn, acting))
        devices = Devices(Shelf(db, "device"), Shelf(db, "pairing"), clock)
        await devices.load()
        gateway = Gateway(Door(token=Secret(TOKEN)), devices, clock, spawn, version="1.0.0")
        host = Host(
            Parts(
                "1.0.0", 0, clock.now_ms(), live, sessions, runs, Models(), Tools(), gateway.hub, clock, spawn,
                asyncio.get_running_loop().call_later, lambda: str(uuid.uuid4()),
            )
        )  # fmt: skip
        ledger = Ledger(db, clock, lambda: UTC)
        await ledger.load()
        ledger.since_ms = 1 << 60  # nobody counts here: all is in the transcripts
        host.more[work.LEDGER] = ledger
        host.more[letters.WHERE] = letters.Letters(Shelf(db, letters.WHERE), host)
        registry = table.of(gateway)
        greeting = Greeting(Known("1.0.0", "boot", registry.advertised, EMITTED), lambda: house.now(gateway))
        gateway.open(Dispatcher(registry, host, spawn, lambda: gateway.ready), greeting)
        server = Server(gateway, Opening(Site(host, lambda: gateway.door, lambda: gateway.ready, registry)))
        await server.start(bind(("127.0.0.1",), 0))
        try:
            yield Standing(gateway, host, acting, server.port, folder)
        finally:
            host.close()
            await runs.close()
            await gateway.close()
            await server.close()
    await sessions.close()
    await db.close()


def _live(folder: Path, env: Environment, config: dict[str, Any] | None) -> Live:
    file = folder / "garra.json"
    if config is not None or not file.exists():
        file.write_text(json.dumps(CONFIG if config is None else config, indent=2))
    return Live(resolve(env), env)


def _ports(sessions: Sessions, clock: SystemClock, spawn: Tasks, acting: Acting) -> Ports:
    async def enrol(turn: Turn) -> SessionId:
        session = await sessions.ensure(turn.session_key, agent_id=turn.agent_id, cwd="/")
        return session.session_id

    async def keep(run: Run) -> None:
        assert acting.runs is not None
        if run.turn.chore:
            return
        transcript = await sessions.transcript(run.session_key)
        acting.runs.emit(run, EntryStored((await transcript.append(run.prompt)).body))

    return Ports(clock, spawn, enrol, keep, acting.drive, lambda: lanes.Settings(mode="followup"))
