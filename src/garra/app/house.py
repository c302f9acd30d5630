"""The house around one state folder: every part made, handed what it needs, and closed in the reverse order."""

from __future__ import annotations

import asyncio
import logging
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from garra.app import approvals, brought, commands, compaction, driven, egress, kin, logbook, logins, spending, web
from garra.app.discretion import Discretion
from garra.app.first import FirstPick, Progress, Told
from garra.app.recall import ERRANDS, Recalls, loaded
from garra.app.turnstile import Turnstile
from garra.config.live import Live
from garra.config.load import load
from garra.config.paths import Paths
from garra.core.errors import Conflict, UserError
from garra.core.value import frozen, record
from garra.domains.context import prompt
from garra.domains.context.held import Held
from garra.domains.exec.approvals import Approvals
from garra.domains.exec.planning import Host
from garra.domains.exec.supervisor import Consent, Supervisor
from garra.domains.models.call import Ports as ModelPorts
from garra.domains.models.children import Children
from garra.domains.models.detect import Scout
from garra.domains.models.fetch import Fetcher
from garra.domains.models.registry import Models
from garra.domains.models.weights import LocalWeights
from garra.domains.plugins.registry import Registry
from garra.domains.sessions.store import Sessions
from garra.domains.tools.pipeline import Pipeline
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.http.door import GuardedHttp
from garra.io.process.door import Programs
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.runs import ground, rights
from garra.runs.assemble import Assembler, Parts
from garra.runs.engines import Engines
from garra.runs.errand import Door, Errand
from garra.runs.gate import Gate
from garra.runs.news import News
from garra.runs.purse import Purse
from garra.runs.recorder import Recorder
from garra.runs.review import Reviewer
from garra.runs.runner import Runs
from garra.runs.subagents import Subagents
from garra.runs.switch import SHELF, held

log = logging.getLogger(__name__)


@frozen
class Found:
    """What a resident process has before the house stands."""

    live: Live
    db: Database
    spawn: Tasks


@frozen
class Options:
    """What a command may set. `consent` asks the owner at a terminal; None where nobody sits. `tell` shows the owner a
    line that is no answer. `step` times one named step of the building. `shared`: other processes may have turns in the
    same sessions meanwhile.
    """

    workspace: Path | None = None
    consent: Consent | None = None
    found: Found | None = None
    tell: Callable[[str], None] = log.info
    step: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext()
    shared: bool = False


@record
class _Calls:
    """A session's door to the gateway's methods; shut where no gateway runs."""

    ask_gateway: Any = None
    recalls: Recalls | None = None

    async def ask(self, errand: Errand, method: str, params: Mapping[str, Any]) -> Any:
        if method in ERRANDS and self.recalls is not None:
            return await self.recalls.ask(errand, method, params)
        if self.ask_gateway is None:
            raise UserError(f"{method} needs the gateway; start it with `garra gateway run`")
        return await self.ask_gateway(errand, method, params)


async def _find(paths: Paths, env: Environment, stack: AsyncExitStack) -> Found:
    await asyncio.to_thread(ground.lay, paths, env)
    live = Live(paths, env, await asyncio.to_thread(load, paths, env))
    spawn = await stack.enter_async_context(Tasks())
    db = Database(paths.db)
    stack.push_async_callback(db.close)
    return Found(live, db, spawn)


@record
class House:
    """Everything one process owns."""

    paths: Paths
    env: Environment
    live: Live
    clock: SystemClock
    spawn: Tasks
    db: Database
    sessions: Sessions
    models: Models
    plugins: Registry
    pipeline: Pipeline
    supervisor: Supervisor
    assembler: Assembler
    runs: Runs
    programs: Programs
    http: GuardedHttp
    calls: _Calls
    approvals: Approvals
    subagents: Subagents
    purse: Purse
    reach: web.Reach
    discretion: Discretion
    engines: Engines
    recalls: Recalls
    keeper: logins.Keeper
    recorder: Recorder


def new_id() -> str:
    return str(uuid.uuid4())


def short_id() -> str:
    return uuid.uuid4().hex[:8]


@asynccontextmanager
async def opened(paths: Paths, env: Environment, options: Options | None = None) -> AsyncIterator[House]:
    """The house, until the block ends. Raises UserError for a state folder that cannot be used."""
    options = options or Options()
    async with AsyncExitStack() as stack:
        found = options.found or await _find(paths, env, stack)
        building = _Building(paths, env, options, found=found, stack=stack)
        with options.step("stores"):
            await building.stores()
        with options.step("plugins"):
            await building.find_plugins()
        with options.step("tools"):
            await building.find_models()
            await building.gather_tools()
        yield await building.finished()


class _Building:
    """The house while it is built, one step after the other; each uses what those before it made."""

    models: Models

    def __init__(
        self, paths: Paths, env: Environment, options: Options, *, found: Found, stack: AsyncExitStack
    ) -> None:
        self.paths, self.env, self.options, self.stack = paths, env, options, stack
        self.live, self.db, self.spawn = found.live, found.db, found.spawn
        self.clock, self.discretion = SystemClock(), Discretion(found.live)
        self.news = News()
        self.calls = _Calls()
        self.recalls = self.calls.recalls = Recalls(lambda: found.live.config, self._memory)
        self.engines = Engines(lambda name, settings: self.plugins.context(name, settings))

    def _memory(self) -> Any:
        children = Children(self.programs, self.env, str(self.paths.state))
        module = loaded()
        doors = module.Doors(lambda: self.models, self.http, children, self.spawn)
        doors.spent, doors.db = self.purse.counted, self.db
        return module.Remembering(self.live, self.clock, doors)

    async def stores(self) -> None:
        await self.db.open()
        self.sessions = Sessions(self.db, self.paths.agents, self.clock, new_id, blots=self.discretion.now)
        await self.sessions.open()
        self.stack.push_async_callback(self.sessions.close)
        asking = approvals.Asking(
            self.db, self.clock, self.spawn, new_id, lambda: self.runs, lambda question: self.reviewer(question),
            lambda: self.live.config.tools.exec.grant_expiry_days,
        )  # fmt: skip
        self.approvals = approvals.made(asking, self.options.consent)
        await self.approvals.load()
        self.subagents = await kin.made(self.db, self.sessions, self.live, clock=self.clock, spawn=self.spawn)
        self.purse = await spending.made(self.db, self.live, self.subagents, clock=self.clock, spawn=self.spawn)

    async def find_plugins(self) -> None:
        live = self.live
        self.programs = Programs()
        self.stack.push_async_callback(self.programs.close)
        self.http = self.discretion.door()
        self.stack.push_async_callback(self.http.close)
        fetcher = Fetcher(self.http, self.programs, self.env, Progress(self.options.tell, self.clock))
        self.weights = LocalWeights(self.paths.state / "models", fetcher)
        ports = brought.ports(self.paths, self.env, self.spawn, brought.Doors(self.programs, self.http, self.weights))
        reach = web.Ground(live, self.paths, self.env, self.programs, lambda: self.models, self.spawn, self.db)
        self.reach = await web.opened(reach, self.stack)
        ports |= {**self.reach.ports, "recall": self.recalls}
        self.plugins = await asyncio.to_thread(brought.plugins, self.paths, live, ports)

    async def find_models(self) -> None:
        live = self.live
        providers = await asyncio.to_thread(brought.providers, self.plugins)
        ground = logins.Ground(
            self.db, self.clock, self.spawn, self.http, self.paths.agents, self.paths.locks,
            lambda: live.snapshot.env, self.paths.state / "models" / "catalog.json", lambda: self.models,
            logins.looks(self.paths, live),
        )  # fmt: skip
        keeper = self.keeper = logins.Keeper(ground)
        self.stack.push_async_callback(keeper.close)
        ports = ModelPorts(
            self.plugins.api, ground.env, self.spawn, self.clock, self.discretion.now, self.purse.spent,
            keeper.logins, keeper.fresh, self.discretion.learn,
        )  # fmt: skip
        self.models = Models(lambda: live.config, ports, providers)
        self.reviewer = Reviewer(self.models, lambda: live.config, self.clock)

    async def gather_tools(self) -> None:
        live = self.live
        tools = brought.Brought(self.plugins, self.models, await asyncio.to_thread(self.plugins.tools))
        self.stack.callback(live.subscribe(lambda old, new: tools.follow(old, new, self.paths, self.spawn)))
        gate = Gate(self.approvals, lambda name: next((tool for tool in tools.now if tool.info.name == name), None))
        self.pipeline = Pipeline(
            lambda: tools.now,
            lambda scope: [*rights.layers(live.config, self.subagents.scope(scope)), *self.reach.door.switches(),
                           *self.recalls.layers()],
            self.clock, gate=gate, searching=lambda scope: rights.searching(live.config, scope),
            blots=self.discretion.now, after=(self.reach.pictures.after,),
        )  # fmt: skip
        self.supervisor = Supervisor(
            self.programs,
            list(self.plugins.sandboxes().values()),
            self.clock,
            self.spawn,
            new_id=short_id,
            consent=self.options.consent,
            notice=self.news.ended,
            host=Host(
                str(self.paths.home), tuple(self.env.get("PATH", "").split(":")), tuple(map(str, self.paths.private))
            ),
        )
        await commands.wire(self.supervisor, self.approvals, self.db, shared=self.options.shared)
        self.supervisor.egress = egress.made(self.approvals, live, self.spawn, self.stack)
        self.stack.push_async_callback(self.supervisor.close)
        self.stack.push_async_callback(self.recalls.close)

    async def finished(self) -> House:
        prompts = prompt.Prompts(await asyncio.to_thread(prompt.sections))
        parts = Parts(
            self.paths, self.env, self.live, self.clock, self.sessions, self.models, self.pipeline, self.supervisor,
            prompts, self.news, lambda errand: Door(errand, self.calls.ask), self.options.workspace,
            lambda key, run_id: kin.family(self.subagents, key, run_id), self.discretion.now, self.purse,
            compaction.made(
                self.sessions, self.models, self.live, self.clock, blots=self.discretion.now, purse=self.purse
            ),
            self.engines, Held(Shelf(self.db, "begun")), smaller=self.reach.pictures.message,
            crowded=lambda key: self.runs.crowded(key),
        )  # fmt: skip
        assembler = Assembler(parts)
        scout = Scout(self.http, self.weights, self.live.snapshot.env)
        told = Told(self.db, self.options.tell)
        first_pick = FirstPick(self.models, scout, self.http, told, ready=self.keeper.ready)
        shared = self.options.shared
        turnstile = Turnstile(self.paths.locks, self.sessions, self.clock, self.options.tell) if shared else None
        runs = self.runs = driven.runs(parts, assembler, self.spawn, first_pick, turnstile=turnstile)
        if turnstile is not None:
            runs.subscribe(turnstile.watching(self.spawn))
        kin.bound(self.subagents, assembler, runs)
        self.reach.sight.charge(lambda run_id: self.purse.payer(run) if (run := runs.find(run_id)) else None)
        runs.subscribe(self.recalls.heard)
        recorder = Recorder(self.db, runs.find)
        runs.subscribe(recorder.heard)
        self.stack.callback(recorder.flush)
        self.stack.push_async_callback(runs.close)
        return House(
            self.paths, self.env, self.live, self.clock, self.spawn, self.db, self.sessions, self.models, self.plugins,
            self.pipeline, self.supervisor, assembler, runs, self.programs, self.http, self.calls,
            self.approvals, self.subagents, self.purse, self.reach, self.discretion, self.engines, self.recalls,
            self.keeper, recorder,
        )  # fmt: skip


@asynccontextmanager
async def embedded(
    paths: Paths,
    env: Environment,
    *,
    workspace: Path | None = None,
    consent: Consent | None = None,
    tell: Callable[[str], None] | None = None,
) -> AsyncIterator[House]:
    """The house for one command. Raises Conflict when a gateway owns the state folder."""
    owner = await asyncio.to_thread(lock.holder, paths.lock)
    if owner is not None:
        raise Conflict(
            f"A gateway is running on {paths.state} (process {owner.get('pid')}, port {owner.get('port')}). "
            "Ask it, or stop it first.",
            details={"holder": owner},
        )
    tell = tell or _note
    async with opened(paths, env, Options(workspace, consent, tell=tell, shared=True)) as house:
        kept = logbook.opened(house.live, stderr=False)
        try:
            if complaint := logbook.complaint(house.live):
                tell(complaint)
            house.runs.held = await held(Shelf(house.db, SHELF))
            house.purse.tellers.append(lambda _, warned: None if warned.over else tell(warned.text))
            compaction.heard(house.runs, lambda _, text: tell(text))
            house.engines.tellers.append(tell)
            yield house
        finally:
            await asyncio.to_thread(kept.close)


def _note(line: str) -> None:
    """A line for the person, beside the answer."""
    sys.stderr.write(f"{line}\n")
