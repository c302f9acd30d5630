"""Sub-agents as they are in the program: real stores, real runs, the real tools, and a model that follows a plan."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from garra.agent.calls import Tools, Update
from garra.builtin.tools.sessions_spawn import SessionsSpawn
from garra.builtin.tools.sessions_yield import SessionsYield
from garra.builtin.tools.subagents import Subagents as SubagentsTool
from garra.config.sections import Config
from garra.core import lanes
from garra.core.errors import NotFound
from garra.core.events import EntryStored
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.lineage import Child
from garra.core.messages import Assistant, Message, ToolCall, ToolResult, User
from garra.core.taint import CLEAN, Mark, Marks, add
from garra.domains.context.prompt import sections
from garra.domains.sessions.store import Sessions
from garra.domains.subagents.records import Records
from garra.domains.tools.pipeline import Pipeline, Scope
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.runs import rights
from garra.runs.drive import Driver, Setup, said
from garra.runs.kin import Kin
from garra.runs.run import Run, Turn
from garra.runs.runner import Ports as RunPorts
from garra.runs.runner import Runs
from garra.runs.subagents import Bound, Ports, Subagents
from garra.sdk.model import Model
from garra.sdk.tool import Tool, ToolContext
from garra.testing.model import Says, ScriptedModel, says

MODEL = Model("scripted", "scripted", "scripted", "http://localhost")
MAIN = SessionKey("agent:main:main")
TOOLS: tuple[Tool, ...] = (SessionsSpawn(), SessionsYield(), SubagentsTool())
Plan = Mapping[str, list[Says]]
"""By a word of the newest message: what is said to it, and then to the results that follow."""

_ids = itertools.count(1)


def follows(plan: Plan) -> Callable[[tuple[Message, ...]], Says]:
    """The model that follows `plan`; reports, where it says nothing of them, are acknowledged with what they hold."""

    def script(messages: tuple[Message, ...]) -> Says:
        at = max(index for index, message in enumerate(messages) if isinstance(message, User))
        asked = cast(User, messages[at]).text
        step = sum(isinstance(message, Assistant) for message in messages[at:])
        told = asked.startswith("[A sub-agent")
        key = next((key for key in plan if key in asked and (not told or key.startswith("["))), None)
        if key is None:
            return says(f"noted: {asked}")
        return plan[key][min(step, len(plan[key]) - 1)]

    return script


@dataclass
class House:
    """One process. `posted` are the reports that a parent got which is no sub-agent."""

    table: Subagents
    runs: Runs
    sessions: Sessions
    model: ScriptedModel
    db: Database
    config: Config
    posted: list[tuple[Child, Turn]] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)
    marks: Marks = CLEAN
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    def hold(self, word: str) -> asyncio.Event:
        """Runs of sub-agents whose task has `word` begin when this is set."""
        return self.gates.setdefault(word, asyncio.Event())

    async def say(self, text: str, key: SessionKey = MAIN, **more: Any) -> Run:
        """Ask an agent; its run, ended."""
        turn = Turn(RunId(f"run-{next(_ids)}"), key, AgentId("main"), text, **more)
        run = await self.runs.submit(turn)
        await run.wait(10)
        return run

    async def until(self, done: Callable[[], Any], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not done():  # noqa: ASYNC110 - a test looks at what it was not told of
                await asyncio.sleep(0.005)

    async def told(self, count: int = 1) -> None:
        await self.until(lambda: sum(not child.open for child in self.table.every()) >= count)

    def results(self, run: Run) -> list[ToolResult]:
        return [message for message in self.model.requests[-1] if isinstance(message, ToolResult)]

    async def messages(self, key: str) -> tuple[Message, ...]:
        return (await self.sessions.transcript(key)).messages()

    def asked(self, text: str) -> list[tuple[Message, ...]]:
        """The requests in whose newest message of a user `text` stands."""
        found = [(request, [m for m in request if isinstance(m, User)]) for request in self.model.requests]
        return [request for request, users in found if users and text in users[-1].text]


def config(**subagents: Any) -> Config:
    return Config.model_validate({"agents": {"defaults": {"subagents": subagents}}})


@asynccontextmanager
async def house(
    folder: Path, plan: Plan, settings: Config | None = None, *, resident: bool = True, resumed: bool = False
) -> AsyncIterator[House]:
    """A process over `folder`. `resumed`: it goes on with what an earlier one left."""
    async with AsyncExitStack() as stack:
        spawn = await stack.enter_async_context(Tasks())
        db = Database(folder / "state.db")
        stack.push_async_callback(db.close)
        clock = SystemClock()
        sessions = Sessions(db, folder / "agents", clock, lambda: f"id-{next(_ids)}")
        stack.push_async_callback(sessions.close)
        made: list[House] = []
        table = Subagents(
            Ports(Records(db), sessions, clock, spawn, lambda: made[0].config, lambda: f"u{next(_ids)}-{id(db)}")
        )
        await table.load()
        model = ScriptedModel(follows(plan))
        runs = _runs(sessions, spawn, model, made)
        made.append(House(table, runs, sessions, model, db, settings or config()))
        texts = await asyncio.to_thread(sections)
        table.bind(Bound(runs, lambda run: _had(made[0], run), texts.__getitem__, _halt(made), _model, lambda _: "/"))
        if resident:
            table.post = _post(made)
        stack.push_async_callback(runs.close)
        if resumed:
            await table.resume()
        yield made[0]


def _had(made: House, run: Run) -> tuple[str, ...]:
    scope = made.table.scope(Scope(run.agent_id, run.session_key, run.turn.origin, place=run.turn.place))
    pipeline = Pipeline(lambda: TOOLS, lambda _: rights.layers(made.config, scope), SystemClock())
    return ("read", "exec", *pipeline.modes(scope))


def _model(ref: str, _: str) -> str:
    if not ref.startswith("scripted/"):
        raise NotFound(f"there is no model {ref}")
    return ref


def _halt(made: list[House]) -> Callable[[SessionKey], Any]:
    async def halt(key: SessionKey) -> None:
        made[0].halted.append(key)

    return halt


def _post(made: list[House]) -> Callable[[Child, Turn], Any]:
    async def post(child: Child, turn: Turn) -> None:
        made[0].posted.append((child, turn))
        await made[0].runs.submit(turn)

    return post


def _runs(sessions: Sessions, spawn: Tasks, model: ScriptedModel, made: list[House]) -> Runs:
    clock = SystemClock()

    async def enrol(turn: Turn) -> SessionId:
        session = await sessions.ensure(turn.session_key, agent_id=turn.agent_id, cwd="/")
        return session.session_id

    async def keep(run: Run) -> None:
        transcript = await sessions.transcript(run.session_key)
        if not said(transcript.messages(), run.prompt):
            runs.emit(run, EntryStored((await transcript.append(run.prompt)).body))

    async def assemble(run: Run) -> Setup:
        transcript = await sessions.transcript(run.session_key)
        for word, gate in made[0].gates.items():
            if run.turn.origin == "subagent" and word in run.turn.text:
                await gate.wait()
        limit = run.turn.timeout_s or 0.0
        quiet = "group" if run.turn.silent else "never"
        return Setup(transcript, (MODEL,), lambda _, asked: model(asked), _tools(made, run), limit, quiet)  # type: ignore[arg-type]  # one of two words

    driver = Driver(clock, spawn, assemble, lambda run, body: runs.emit(run, body))
    runs = Runs(RunPorts(clock, spawn, enrol, keep, driver.drive, lambda: lanes.Settings(debounce_ms=0)))
    return runs


def _tools(made: list[House], run: Run) -> Tools:
    """The real tools, through the pipeline, for one run."""
    house = made[0]
    scope = house.table.scope(Scope(run.agent_id, run.session_key, run.turn.origin, place=run.turn.place))
    pipeline = Pipeline(lambda: TOOLS, lambda _: rights.layers(house.config, scope), SystemClock())

    async def call(call: ToolCall, update: Update) -> ToolResult:
        nothing: Any = None
        context = ToolContext(
            run.agent_id, run.session_key, run.run_id, run.turn.origin, nothing, nothing, SystemClock(), nothing,
            marks=house.marks, family=Kin(house.table, run.session_key, run.run_id),
        )  # fmt: skip
        return await pipeline.call(call, context, update, scope)

    return Tools(pipeline.modes(scope), call)


def marked(*marks: Mark) -> Marks:
    return add(CLEAN, marks)
