"""Runs the commands of every session: where they may run, in the foreground or behind, and until when.

What a command needs to be started is decided in `core.execplan`; this carries it out. A session sees its own commands
only.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from garra.core import execplan
from garra.core.errors import ToolFailed, Unavailable
from garra.core.execplan import Settings
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen
from garra.domains.exec import guard
from garra.domains.exec.boxes import Boxes
from garra.domains.exec.job import Facts, Job
from garra.domains.exec.matching import match
from garra.io.process.child import Child
from garra.io.process.door import Limits, Programs, Start
from garra.sdk.ports import Asker, Clock, Hit, Launch, Ran, Spawn
from garra.sdk.sandbox import Plan, Sandbox, Wrapped
from garra.sdk.tool import Origin

KEPT, KEPT_S = 50, 1_800.0
"""How many ended background commands are remembered, and for how many seconds."""
MAX_RUNNING = 64
"""Background commands of one session that may run at once."""
TERMINAL = (40, 120)
LIMITS = Limits()
SHELLS = ("/bin/bash", "/usr/bin/bash", "/run/current-system/sw/bin/bash", "/bin/sh")

Consent = Callable[[SessionKey, str], Awaitable[bool]]
Notice = Callable[[SessionKey, Ran], None]
WHETHER = "May commands run on this machine itself while this window is open?"


@frozen
class Host:
    """The machine: what commands on it are given (the owner's home, where programs are), and the `private` places of
    the gateway's own that no command in a sandbox may see.
    """

    home: str = "/"
    path: tuple[str, ...] = ()
    private: tuple[str, ...] = ()


NO_HOST = Host()


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
    about one; where there is none, what is to be asked is refused.
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
        self.notice = notice
        self._new_id = new_id
        self._consent = consent
        self._consented: bool | None = None
        self._asking = asyncio.Lock()
        self._jobs: dict[SessionKey, dict[str, Job]] = {}

    def exec_for(
        self, session_key: SessionKey, workspace: str, origin: Origin, settings: Settings, *, behalf: Behalf = NO_ONE
    ) -> Commands:
        """The commands of one session, as `sdk.ports.Exec`."""
        return Commands(self, session_key, workspace, origin, settings, behalf)

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

    async def run(self, launch: Launch, update: Callable[[str], None]) -> Ran:
        execplan.check_command(launch.command)
        execplan.check_environment(launch.env)
        jobs = self.supervisor.jobs(self.session_key)
        if sum(not job.ended.is_set() for job in jobs.values()) >= MAX_RUNNING:
            raise ToolFailed(
                f"{MAX_RUNNING} commands of this session are running; end some with the process tool first"
            )
        sandbox = await self._sandbox(launch)
        plan = await asyncio.to_thread(self._plan, launch, shut_in=sandbox is not None)
        if plan.closed and sandbox and not sandbox.hides:
            raise ToolFailed(
                f"No command was run: the gateway's own {plan.closed[0]} lies in the workspace {plan.workspace}, and "
                f"the sandbox {sandbox.name} cannot hide it; install bubblewrap, or set agents.defaults.workspace"
            )
        if sandbox is not None and sandbox.hides and self.settings.guarded:
            plan = replace(plan, fixed=await asyncio.to_thread(guard.fixed, plan.workspace, self.settings.guarded))
        child = await self._start(plan, sandbox, background=launch.background)
        timeout_s = self.settings.timeout_s if launch.timeout_s is None else launch.timeout_s
        facts = Facts(
            self.supervisor.new_id(self.session_key),
            launch,
            plan.workdir,
            timeout_s,
            bool(plan.fixed) and not plan.network,
        )
        job = Job(facts, child, self.supervisor.clock)
        jobs[facts.id] = job
        job.start(self.supervisor.spawn, update)
        return await self._attend(job)

    async def _sandbox(self, launch: Launch) -> Sandbox | None:
        """The sandbox to run in; None for the machine itself. Raises ToolFailed when it may not run."""
        chosen = await self.supervisor.boxes.choose()
        where = execplan.place(
            launch.host,
            self.settings.host,
            elevated=launch.elevated,
            missing=None if chosen.sandbox else chosen.missing,
            interactive=self.origin == "local",
        )
        match where:
            case execplan.InSandbox():
                return chosen.sandbox
            case execplan.OnHost():
                return None
            case execplan.AskOwner(reason):
                if await self.supervisor.allowed(self.session_key, reason):
                    return None
                raise ToolFailed(f"No command was run: {reason}", details={"kind": "no-sandbox"})
            case execplan.Refused(reason):
                raise ToolFailed(reason, details={"kind": "refused"})

    def _plan(self, launch: Launch, *, shut_in: bool) -> Plan:
        """The command as a plan: its real folders, the one to start in below the workspace when shut in. Blocks."""
        root, asked = os.path.realpath(self.workspace), launch.workdir
        if not os.path.isdir(root):  # noqa: PTH112
            raise ToolFailed(f"the workspace {self.workspace} is gone")
        if "\0" in asked or asked.startswith("~"):
            raise ToolFailed(f"workdir: {asked!r} is no plain path; ~ is not expanded")
        real = os.path.realpath(os.path.join(root, asked))  # noqa: PTH118
        if shut_in and real != root and not real.startswith(root.rstrip("/") + "/"):
            raise ToolFailed(f"workdir: {asked} is outside the workspace {root}")
        if not os.path.isdir(real):  # noqa: PTH112
            raise ToolFailed(f"workdir: {asked} is no folder")
        shell = next((path for path in SHELLS if os.access(path, os.X_OK)), SHELLS[-1])
        host = self.supervisor.host
        lead = self.settings.path if shut_in else (*self.settings.path, *host.path)
        env = execplan.environment(root if shut_in else host.home, launch.env, lead, terminal=launch.pty)
        closed = tuple(self._closed(root)) if shut_in else ()
        return Plan(
            (shell, "-c", launch.command),
            root,
            real,
            env,
            self.settings.network,
            launch.pty,
            closed,
            limits=LIMITS.named(),
        )

    def _closed(self, root: str) -> Iterator[str]:
        """The private places that lie in the workspace, where they really are. Blocks."""
        lead, above = root.rstrip("/") + "/", "\0"
        for real in sorted(os.path.realpath(place) for place in self.supervisor.host.private):
            if real.startswith(lead) and not real.startswith(above) and os.path.exists(real):  # noqa: PTH110
                folder = os.path.isdir(real)  # noqa: PTH112
                above = f"{real}/" if folder else above
                yield f"{real}/" if folder else real

    async def _start(self, plan: Plan, sandbox: Sandbox | None, *, background: bool) -> Child:
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
        self.supervisor.jobs(self.session_key).pop(job.facts.id, None)
        return job.whole()

    async def _drop(self, job: Job) -> None:
        await job.kill()
        self.supervisor.jobs(self.session_key).pop(job.facts.id, None)

    def _to_background(self, job: Job) -> Ran:
        job.to_background()
        if self.settings.notify and self.supervisor.notice:
            self.supervisor.spawn(self._tell(job), f"end of {job.facts.id}")
        return job.fresh()

    async def _tell(self, job: Job) -> None:
        await job.ended.wait()
        if job.status != "killed" and self.supervisor.notice:
            self.supervisor.notice(self.session_key, job.whole())

    def _job(self, session: str) -> Job:
        job = self.supervisor.jobs(self.session_key).get(session)
        if job is None or not job.background:
            raise ToolFailed(f"there is no command {session} here; action list shows them")
        return job

    def running(self) -> Sequence[Ran]:
        jobs = self.supervisor.jobs(self.session_key).values()
        return [job.ran(job.output.last(200)) for job in reversed(jobs) if job.background]

    async def poll(self, session: str, wait_ms: int = 0) -> Ran:
        job = self._job(session)
        if wait_ms > 0 and not job.ended.is_set() and job.polled == job.output.total:
            job.news.clear()
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    await job.news.wait()
            except TimeoutError:
                pass
        return job.fresh()

    def log(self, session: str, offset: int, limit: int) -> str:
        lines = self._job(session).whole().output.split("\n")
        start = offset if offset >= 0 else max(0, len(lines) + offset)
        return "\n".join(lines[start : start + limit])

    async def send(self, session: str, data: bytes) -> Ran:
        job = self._job(session)
        try:
            async with asyncio.timeout(10):
                await job.child.stdin.write(data)
        except TimeoutError:
            raise ToolFailed(f"{session} does not read its input") from None
        except Unavailable as error:
            raise ToolFailed(f"{session}: {error.message}; start it with background or pty to give it input") from None
        await self.supervisor.clock.sleep(0.1)
        return job.fresh()

    async def kill(self, session: str) -> Ran:
        job = self._job(session)
        await job.kill()
        return job.fresh()

    def guarded(self, names: tuple[str, ...], *, ask: bool) -> Commands:
        """The same for a turn that has read text from outside: `names` stay as they are, see `execplan.Settings`."""
        return replace(self, settings=replace(self.settings, guarded=names, asks=ask))

    async def shut_in(self, what: Launch | str) -> bool:
        if self.settings.asks:
            return False
        if isinstance(what, str):
            job = self.supervisor.jobs(self.session_key).get(what)
            return job is None or job.facts.shut_in
        chosen = await self.supervisor.boxes.choose()
        where = execplan.place(
            what.host,
            self.settings.host,
            elevated=what.elevated,
            missing=None if chosen.sandbox else chosen.missing,
            interactive=self.origin == "local",
        )
        if isinstance(where, execplan.Refused):
            return True
        box = chosen.sandbox if isinstance(where, execplan.InSandbox) else None
        if box is None or not box.hides or self.settings.network:
            return False
        return await asyncio.to_thread(guard.holds, self.workspace, self.settings.guarded)

    async def match(self, pattern: str, texts: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
        return await match(self.supervisor.programs, pattern, texts, limit)
