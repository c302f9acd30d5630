"""Runs the commands of every session: where they may run, in the foreground or behind, and until when.

What a command needs to be started is decided in `core.execplan`; this carries it out. A session sees its own commands
only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from garra.core import execplan, fence
from garra.core.errors import ToolFailed, Unavailable
from garra.core.execplan import Settings
from garra.core.execrules import Rules
from garra.core.fence import CLOSE, Fence
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen
from garra.domains.exec import fenced, guard
from garra.domains.exec.behind import Behind
from garra.domains.exec.boxes import Boxes
from garra.domains.exec.egress import Asked, Egress
from garra.domains.exec.errand import Errand, settled
from garra.domains.exec.job import After, Facts, Job
from garra.domains.exec.matching import match
from garra.domains.exec.planning import LIMITS, Ground
from garra.domains.exec.planning import Host as Host
from garra.domains.exec.records import Records
from garra.io.process.child import Child
from garra.io.process.door import Programs, Start
from garra.sdk.ports import Asker, Clock, Hit, Launch, Ran, Spawn
from garra.sdk.sandbox import Plan, Prepares, Sandbox, Wrapped
from garra.sdk.tool import Origin

KEPT, KEPT_S = 50, 1_800.0
"""How many ended background commands are remembered, and for how many seconds."""
MAX_RUNNING = 64
"""Background commands of one session that may run at once."""
TERMINAL = (40, 120)

Consent = Callable[[SessionKey, str], Awaitable[bool]]
Notice = Callable[[SessionKey, Ran], None]
WHETHER = "May commands run on this machine itself while this window is open?"


NO_HOST = Host()


@frozen
class Place:
    """Where a command runs: in `sandbox`, or on the machine itself. `consented`: the person at the terminal, who has
    just been asked, lets commands run there.
    """

    sandbox: Sandbox | None
    consented: bool = False


@frozen
class Behalf:
    """For whom commands run: what a person who is asked about one is told of it."""

    agent_id: AgentId = AgentId("main")
    run_id: RunId = RunId("")
    requester: str = ""


NO_ONE = Behalf()


class Supervisor:
    """Every command of every session.

    `consent` asks the owner at a terminal, once, whether commands may run without a sandbox; None where nobody sits.
    `notice` hears of each background command that ended by itself. `asker`, set before the first command, asks a person
    about one; where there is none, what is to be asked is refused. `rules`, set like it, gives what the document of
    approvals says now, `records` outlive the process, `egress` makes the ways out of sandboxes.
    """

    def __init__(
        self,
        programs: Programs,
        sandboxes: Sequence[Sandbox],
        clock: Clock,
        spawn: Spawn,
        *,
        new_id: Callable[[], str],
        consent: Consent | None = None,
        notice: Notice | None = None,
        host: Host = NO_HOST,
    ) -> None:
        self.programs, self.clock, self.spawn = programs, clock, spawn
        self.boxes = Boxes(sandboxes, clock)
        self.host = host
        self.asker: Asker | None = None
        self.rules: Callable[[], Rules] = Rules
        self.records: Records | None = None
        self.egress: Egress | None = None
        self.holder = guard.Holder()
        self.notice = notice
        self._new_id = new_id
        self._consent = consent
        self._consented: bool | None = None
        self._asking = asyncio.Lock()
        self._jobs: dict[SessionKey, dict[str, Job]] = {}

    def exec_for(
        self,
        session_key: SessionKey,
        workspace: str,
        origin: Origin,
        settings: Settings,
        *,
        behalf: Behalf = NO_ONE,
        fence: Fence = CLOSE,
    ) -> Commands:
        """The commands of one session, as `sdk.ports.Exec`."""
        return Commands(self, session_key, workspace, origin, settings, behalf, fence)

    def jobs(self, session_key: SessionKey) -> dict[str, Job]:
        """What a session runs and remembers, oldest first."""
        jobs = self._jobs.setdefault(session_key, {})
        now = self.clock.monotonic()
        ended = [job for job in jobs.values() if job.background and job.ended.is_set()]
        old = [job for job in ended if now - job.ended_at > KEPT_S]
        for job in {*old, *ended[: max(0, len(ended) - KEPT)]}:
            del jobs[job.facts.id]
        return jobs

    def every(self) -> Mapping[SessionKey, Sequence[Ran]]:
        """All commands that are running or remembered, for people."""
        return {key: [job.whole() for job in self.jobs(key).values()] for key in list(self._jobs)}

    async def stop(self, session_key: SessionKey, *, background: bool = False) -> int:
        """End what a session runs in the foreground, and `background` commands too when asked; says how many."""
        jobs = [job for job in self._jobs.get(session_key, {}).values() if background or not job.background]
        running = [job for job in jobs if not job.ended.is_set()]
        await asyncio.gather(*(job.kill() for job in running))
        return len(running)

    async def close(self) -> None:
        """End everything."""
        self.records = None  # that it ended with us is told by what was written of it before
        await asyncio.gather(*(self.stop(key, background=True) for key in list(self._jobs)))

    async def allowed(self, session_key: SessionKey, reason: str) -> bool:
        """Whether the owner lets commands run on the machine itself; asked once, the answer is kept."""
        if self._consent is None:
            return False
        async with self._asking:
            if self._consented is None:
                self._consented = await self._consent(session_key, f"{reason}\n{WHETHER}")
            return self._consented

    def new_id(self, session_key: SessionKey) -> str:
        jobs = self._jobs.get(session_key, {})
        while (name := self._new_id()) in jobs:
            pass
        return name


@frozen
class Commands:
    """The commands of one session, as `sdk.ports.Exec`."""

    supervisor: Supervisor
    session_key: SessionKey
    workspace: str
    origin: Origin
    settings: Settings
    behalf: Behalf = NO_ONE
    fence: Fence = CLOSE

    async def run(self, launch: Launch, update: Callable[[str], None]) -> Ran:
        execplan.check_command(launch.command)
        execplan.check_environment(launch.env)
        jobs = self.supervisor.jobs(self.session_key)
        if sum(not job.ended.is_set() for job in jobs.values()) >= MAX_RUNNING:
            raise ToolFailed(
                f"{MAX_RUNNING} commands of this session are running; end some with the process tool first"
            )
        where = await self._place(launch)
        sandbox = where.sandbox
        why = self.settings.why if self.settings.why and not await self._is_confined(launch) else ()
        found = await settled(replace(self._errand(launch, where), why=why))
        plan = replace(found.plan, argv=found.argv)
        if plan.closed and sandbox and not sandbox.hides:
            raise ToolFailed(
                f"No command was run: the gateway's own {plan.closed[0]} lies in the workspace {plan.workspace}, and "
                f"the sandbox {sandbox.name} cannot hide it; install bubblewrap, or set agents.defaults.workspace"
            )
        holder = self.supervisor.holder
        if sandbox is not None and sandbox.hides and self.settings.guarded:
            plan = replace(plan, fixed=await holder.hold(plan.workspace, self.settings.guarded))
        try:
            child, after = await self._begin(plan, sandbox, launch, found.same)
        except BaseException:
            await holder.free(plan.fixed)
            raise
        if plan.fixed:
            after = replace(after, free=lambda: holder.free(plan.fixed))
        timeout_s = self.settings.timeout_s if launch.timeout_s is None else launch.timeout_s
        facts = Facts(
            self.supervisor.new_id(self.session_key),
            launch,
            plan.workdir,
            timeout_s,
            bool(plan.fixed) and not plan.network,
        )
        job = Job(facts, child, self.supervisor.clock, after)
        jobs[facts.id] = job
        job.start(self.supervisor.spawn, update)
        return await self._attend(job)

    async def _where(self, launch: Launch) -> tuple[execplan.Place, Sandbox | None]:
        """Where a command is to run, and the sandbox there is."""
        chosen = await self.supervisor.boxes.choose(self.fence.backend)
        where = execplan.place(
            launch.host,
            fence.host(self.settings.host, self.fence),
            elevated=launch.elevated,
            missing=None if chosen.sandbox else chosen.missing,
            interactive=self.origin == "local",
            barred=self.settings.barred,
        )
        return where, chosen.sandbox

    async def _place(self, launch: Launch) -> Place:
        """Where it runs. Raises ToolFailed when it may not run at all."""
        where, sandbox = await self._where(launch)
        match where:
            case execplan.InSandbox():
                return Place(sandbox)
            case execplan.OnHost():
                return Place(None)
            case execplan.AskOwner(reason):
                if await self.supervisor.allowed(self.session_key, reason):
                    return Place(None, consented=True)
                raise ToolFailed(f"No command was run: {reason}", details={"kind": "no-sandbox"})
            case execplan.Refused(reason):
                raise ToolFailed(reason, details={"kind": "refused"})

    def _errand(self, launch: Launch, where: Place) -> Errand:
        house, behalf = self.supervisor, self.behalf
        return Errand(
            launch, Ground(self.workspace, self.settings, house.host), house.rules, house.asker, house.clock.now_ms,
            self.session_key, behalf.agent_id, behalf.run_id, behalf.requester, where.sandbox is not None,
            where.consented,
        )  # fmt: skip

    async def _begin(self, plan: Plan, sandbox: Sandbox | None, launch: Launch, same: str) -> tuple[Child, After]:
        """Start it within its fence, with its way out."""
        if sandbox is None:
            return await self._start(plan, None, background=launch.background, same=same), After()
        name = self.supervisor.new_id(self.session_key)
        plan = await asyncio.to_thread(fenced.fenced, plan, self.fence, name)
        if isinstance(sandbox, Prepares):
            plan = await sandbox.prepare(plan)
        behalf, marked = self.behalf, bool(self.settings.guarded)
        asked = Asked(behalf.agent_id, self.session_key, behalf.run_id, behalf.requester, launch.command, marked=marked)
        way = fenced.passage(self.supervisor.egress, self.fence, sandbox, asked)
        plan = fenced.through(plan, way)
        try:
            child = await self._start(plan, sandbox, background=launch.background, same=same)
        except BaseException:
            if way is not None:
                await way.close()
            raise
        if way is not None:
            way.begin()
        made = sandbox.wrap(plan)
        undo = Start(made.undo, "/", made.env)
        after = (lambda: self.supervisor.programs.run(undo)) if undo.argv else None
        return child, After(way, after, closed=fenced.closed(self.fence, sandbox, plan))

    async def _start(self, plan: Plan, sandbox: Sandbox | None, *, background: bool, same: str = "") -> Child:
        made = Wrapped(plan.argv, plan.env, plan.workdir, closed=False)
        if sandbox:
            made = sandbox.wrap(plan)
            if not await asyncio.to_thread(os.access, made.argv[0], os.X_OK):
                self.supervisor.boxes.forget()
                raise ToolFailed(f"No command was run: the sandbox's program {made.argv[0]} is gone")
        start = Start(
            made.argv,
            made.cwd,
            made.env,
            stdin=background,
            terminal=TERMINAL if plan.terminal else None,
            keep=not made.closed,
            wrapper=made.closed,
            limited=made.limited,
            limits=LIMITS,
            fds=(plan.way_out.handover,) if plan.way_out else (),
            same=same,
            apart=made.apart,
        )
        try:
            return await self.supervisor.programs.start(start)
        except Unavailable as error:
            raise ToolFailed(error.message) from None

    async def _attend(self, job: Job) -> Ran:
        launch = job.facts.launch
        wait_ms = execplan.window_ms(launch.yield_ms, self.settings.yield_ms, background=launch.background)
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await job.ended.wait()
        except TimeoutError:
            return self._to_background(job)
        except asyncio.CancelledError:
            await asyncio.shield(self._drop(job))
            raise
        await job.settle()
        self.supervisor.jobs(self.session_key).pop(job.facts.id, None)
        return job.whole()

    async def _drop(self, job: Job) -> None:
        await job.kill()
        self.supervisor.jobs(self.session_key).pop(job.facts.id, None)

    def _to_background(self, job: Job) -> Ran:
        job.to_background()
        if self.supervisor.records is not None:
            self.supervisor.spawn(
                self._behind.record(job, lambda: self.supervisor.records), f"record of {job.facts.id}"
            )
        if self.settings.notify and self.supervisor.notice:
            self.supervisor.spawn(self._tell(job), f"end of {job.facts.id}")
        return job.fresh()

    async def _tell(self, job: Job) -> None:
        await job.ended.wait()
        if job.status != "killed" and self.supervisor.notice:
            self.supervisor.notice(self.session_key, job.whole())

    @property
    def _behind(self) -> Behind:
        return Behind(self.supervisor.jobs(self.session_key), self.supervisor.records, self.session_key)

    def running(self) -> Sequence[Ran]:
        return self._behind.running()

    async def poll(self, session: str, wait_ms: int = 0) -> Ran:
        return await self._behind.poll(session, wait_ms)

    def log(self, session: str, offset: int, limit: int) -> str:
        return self._behind.log(session, offset, limit)

    async def send(self, session: str, data: bytes) -> Ran:
        return await self._behind.send(session, data, self.supervisor.clock)

    async def kill(self, session: str) -> Ran:
        return await self._behind.kill(session)

    def guarded(
        self, names: tuple[str, ...], *, ask: bool, why: tuple[str, ...] = (), covers: str = "", listed: bool = False
    ) -> Commands:
        """The same for a turn that has read text from outside: `names` stay as they are, see `execplan.Settings`."""
        settings = replace(self.settings, guarded=names, asks=ask, why=why, covers=covers, listed=listed)
        return replace(self, settings=settings)

    async def settles(self, what: Launch | str) -> bool:
        if isinstance(what, Launch):
            return bool(self.settings.why) or await self._is_confined(what)
        job = self.supervisor.jobs(self.session_key).get(what)
        return not self.settings.asks and (job is None or job.facts.shut_in)

    async def _is_confined(self, what: Launch) -> bool:
        """Whether it can harm nobody, or will not run at all: see `sdk.ports.Exec.settles`."""
        if self.settings.asks:
            return False
        where, sandbox = await self._where(what)
        if isinstance(where, execplan.Refused):
            return True
        box = sandbox if isinstance(where, execplan.InSandbox) else None
        engine = self.fence.container
        if box is None or not box.hides or self.settings.network or (engine and engine.network != "none"):
            return False
        return await asyncio.to_thread(guard.holds, self.workspace, self.settings.guarded)

    async def match(self, pattern: str, texts: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
        return await match(self.supervisor.programs, pattern, texts, limit)
