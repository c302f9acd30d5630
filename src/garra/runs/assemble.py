"""Gathers what one run works with: history, prompt, model, tools. Decides nothing that a value could not tell it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from garra.agent.calls import Tools, Update
from garra.config.live import Live
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core import thinking, toolsearch
from garra.core.blots import NONE, Blots
from garra.core.budget import FILE_CHARS, TOTAL_CHARS, Document
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import Message, ToolCall, ToolResult, User
from garra.core.pruning import Report
from garra.core.reply import Quiet
from garra.core.skills import Listed
from garra.core.value import frozen, record, replace
from garra.domains.context import prompt, stamps
from garra.domains.context.held import NAMES, Held
from garra.domains.context.workspace import Workspace
from garra.domains.exec.supervisor import Behalf, Supervisor
from garra.domains.models import params
from garra.domains.models.registry import Models
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.domains.sessions.transcript import Transcript as Opened
from garra.domains.skills import scan, world
from garra.domains.skills.door import Door
from garra.domains.tools.pipeline import Pipeline, Scope
from garra.io.env import Environment
from garra.io.files import atomic
from garra.io.files.root import Root
from garra.io.files.sealed import Sealed
from garra.runs import bounds, execution, fences, ground, rights
from garra.runs.asking import Asking, Said
from garra.runs.breathing import breathing
from garra.runs.candidates import candidates, profile
from garra.runs.compaction import Transcript
from garra.runs.drive import Fit, Setup, same
from garra.runs.engines import Engines
from garra.runs.errand import Errand, errand_of
from garra.runs.execution import For
from garra.runs.fences import Whom
from garra.runs.fitting import Around, Fitting
from garra.runs.history import Histories
from garra.runs.marks import Readings, Watch
from garra.runs.news import News
from garra.runs.purse import NO_PURSE, Purse
from garra.runs.run import Run
from garra.runs.skilled import Readers
from garra.runs.view import Views, pruning
from garra.runs.whose import requester, scope_of, whom_of
from garra.sdk.family import Family
from garra.sdk.model import Level, Model, ToolSpec
from garra.sdk.ports import Clock, Files, Grants
from garra.sdk.tool import Origin, ToolContext
from garra.sdk.written import Rest

if TYPE_CHECKING:
    from garra.runs.engine import Assembly

LONG = 1_000
"""So many messages make a conversation long: a turn of it lets others that have just begun go first."""
READ_ONLY = "this session may read the workspace and not change it (agents.defaults.sandbox.workspaceAccess is ro)"


@frozen
class Parts:
    """The domains a run is put together from. `grants` gives a session's own door to the gateway's methods; `crowded`
    says whether a turn of another session has just begun.
    """

    paths: Paths
    env: Environment
    live: Live
    clock: Clock
    sessions: Sessions
    models: Models
    pipeline: Pipeline
    supervisor: Supervisor
    prompts: prompt.Prompts
    news: News
    grants: Callable[[Errand], Grants]
    workspace: Path | None = None
    family: Callable[[SessionKey, RunId], Family | None] = lambda _key, _run: None
    blots: Callable[[], Blots] = lambda: NONE
    purse: Purse = NO_PURSE
    fitting: Fitting | None = None
    engines: Engines | None = None
    begun: Held = field(default_factory=Held)
    smaller: Callable[[User], Awaitable[User]] = same
    crowded: Callable[[SessionKey], bool] = lambda _key: False


@record
class _Place:
    """One agent's folder and what is read from it."""

    folder: Path
    files: Root
    workspace: Workspace
    skills: scan.Skills


@frozen
class Ground:
    """What a turn is made of: `offered` are the tools by the model's ref, `changed` says what of its memory is new."""

    session: Session
    place: _Place
    models: tuple[Model, ...]
    offered: Mapping[str, tuple[ToolSpec, ...]]
    transcript: Opened
    stable: prompt.Stable
    changed: tuple[str, ...]


@record
class Assembler:
    """Makes the setup of each run."""

    parts: Parts
    _places: dict[tuple[str, str], _Place] = field(default_factory=dict)
    _histories: Histories = field(init=False)
    _readings: Readings = field(default_factory=Readings)
    _views: Views = field(default_factory=Views)
    _zones: dict[str, tzinfo] = field(default_factory=dict)
    _seats: dict[str, Root] = field(default_factory=dict)
    _readers: Readers = field(init=False)

    def __post_init__(self) -> None:
        self._histories = Histories(self.parts.blots)
        self._readers = Readers(self.parts.paths.state, self.parts.clock)

    def folder(self, agent_id: str) -> Path:
        """The workspace of an agent."""
        return self.parts.workspace or self.parts.paths.workspace(agent_id, self.parts.live.config)

    async def ground(self, run: Run) -> Ground:
        """What a turn is made of before it begins. Raises UserError as `setup`."""
        parts, turn = self.parts, run.turn
        session = await parts.sessions.need(turn.session_key)
        place = await self._opened(turn.agent_id)
        models = candidates(parts.models, parts.live.config, turn, session)
        offered = {model.ref: self._offered(run, model) for model in models}
        stable = await self._stable(run, place, models[0], offered[models[0].ref])
        transcript = await parts.sessions.transcript(turn.session_key)
        stable, changed = await self._as_begun(transcript, stable)
        return Ground(session, place, models, offered, transcript, stable, changed)

    async def sent(self, transcript: Opened, model: Model) -> tuple[tuple[Message, ...], Report]:
        """A history as `model` is sent it, and what of it in brief."""
        view = self._views.of(transcript, pruning(self.parts.live.config))
        return await view.prepare(transcript.messages(), model), view.report(model)

    async def setup(self, run: Run) -> Setup:
        """Everything `run` needs. Raises UserError (no model, a workspace that vanished) with a line for the person."""
        parts, turn, config = self.parts, run.turn, self.parts.live.config
        found = await self.ground(run)
        session, place, models, offered = found.session, found.place, found.models, found.offered
        transcript, stable = found.transcript, found.stable
        notes = (*found.changed, *(() if turn.chore else self._news(run)))
        built = parts.prompts.build(stable, prompt.Turn(notes=notes) if notes else None, offered[models[0].ref])
        run.trace.prompt, run.trace.workdir, run.trace.requested = built.report, str(place.folder), models[0].ref
        blots = parts.blots()
        chosen = await self._engine(run, transcript, models[0], blots)
        view = self._views.of(transcript, pruning(config))
        zone = await self._zone(stable.time_zone)
        history = self._histories.of(transcript, zone)
        rest, said_before = breathing(lambda: parts.crowded(turn.session_key)), transcript.messages()
        long = len(said_before) >= LONG
        if long:
            await rest()
        await history.prepare(await view.prepare(said_before, models[0], rest), models[0], rest)
        marks = self._readings.of(run, transcript, config.tools.taint.mode)
        watch = Watch(run, marks, parts.sessions, lambda: parts.live.config)
        await watch.begin(session)
        level, login = self._thinking(run, session, config, models[0]), profile(session.extra)
        said = Said(blots.text(built.system), blots.text(built.tail), offered, level, login)
        ask = Asking(run, parts.models, said, history, view=view, payer=parts.purse.payer(run), rest=rest)
        limit = turn.timeout_s if turn.timeout_s is not None else config.agents.defaults.timeout_seconds
        told = {spec.name for specs in offered.values() for spec in specs}
        tools = self._tools(watch, told, lambda: scope_of(run, ask.model or models[0])) if told else Tools()
        quiet: Quiet = "group" if turn.silent or (turn.place and turn.place.group) else "never"
        bound = bounds.limits(config, run.agent_id), bounds.guard(config, run.agent_id)
        around = Around(models, said, ask, marks.now, self._diary(run, place), zone)
        return Setup(
            transcript, models, ask, tools, limit, quiet, *bound,
            resting=lambda model: parts.models.resting(model, run.agent_id),
            fit=await self._fit(run, transcript, around, chosen, rest=rest), rest=rest if long else None,
        )  # fmt: skip

    def _news(self, run: Run) -> tuple[str, ...]:
        """What happened meanwhile; it is told once."""
        news, key = self.parts.news, run.turn.session_key
        run.heard = news.marks(key)
        return news.take(key)

    async def _as_begun(self, transcript: Opened, stable: prompt.Stable) -> tuple[prompt.Stable, tuple[str, ...]]:
        """The prompt with the memory that the conversation began with, and what is to be said of what changed."""
        if stable.shape != "full":
            return stable, ()
        transcript.messages()  # `since` is as of the last reading
        files, notes = await self.parts.begun.settle(transcript.session_id, transcript.since, stable.files)
        return replace(stable, files=files), notes

    async def _engine(self, run: Run, transcript: Opened, model: Model, blots: Blots) -> Assembly | None:
        """The context engine; None for the one in the box."""
        engines, config = self.parts.engines, self.parts.live.config
        return await engines.opened(config, run, transcript, model=model, blots=blots) if engines is not None else None

    async def _fit(
        self, run: Run, transcript: Transcript, around: Around, chosen: Assembly | None, *, rest: Rest
    ) -> Fit | None:
        """What keeps the history within bounds, with the context engine in front of it."""
        if chosen is None:
            around = replace(around, pruned=around.ask.pruned)
        else:  # what the engine chooses is not what the transcript holds
            around = replace(around, owned=chosen.owns_compaction)
        inner = None
        if self.parts.fitting is not None:
            await self.parts.fitting.look(transcript, around, rest)
            inner = self.parts.fitting.of(run, transcript, around)
        return inner if chosen is None else chosen.ahead(around.ask, around.said, inner)

    def _diary(self, run: Run, place: _Place) -> Callable[[], Files] | None:
        """The folder whose diary a run may add to; none for a guest's."""
        whom = whom_of(run)
        return None if whom.guest else lambda: self._seat(place, whom)[1]

    async def _stable(self, run: Run, place: _Place, model: Model, specs: tuple[ToolSpec, ...]) -> prompt.Stable:
        """What of the prompt stays from turn to turn."""
        turn, config = run.turn, self.parts.live.config
        folder, documents, skills = await asyncio.to_thread(self._read, place, config, whom_of(run))
        return prompt.Stable(
            product="OpenClaw" if self.parts.paths.compat else "Garra",
            shape="minimal" if turn.origin == "subagent" and model.prompt == "full" else model.prompt,
            tools=tuple(spec.name for spec in specs),
            byname=self._byname(run, model, specs),
            workspace=folder,
            files=documents,
            skills=skills,
            memory=config.plugins.slots.memory != "none",
            time_zone=config.agents.defaults.time_zone or "UTC",
            extra=turn.extra_system,
            file_chars=self._cap(turn.agent_id, config, "bootstrap_max_chars", FILE_CHARS),
            total_chars=self._cap(turn.agent_id, config, "bootstrap_total_max_chars", TOTAL_CHARS),
        )

    def _thinking(self, run: Run, session: Session, config: Config, model: Model) -> Level:
        agent = config.agents.find(run.agent_id)
        own = (agent.thinking_default if agent else None) or params.level(model)
        level = run.turn.thinking or session.thinking or own or config.agents.defaults.thinking_default or "off"
        return thinking.level(level) or "off"

    def _cap(self, agent_id: str, config: Config, name: str, usual: int) -> int:
        """A limit on workspace files in the prompt, in characters: the agent's, the defaults', the usual one."""
        agent = config.agents.find(agent_id)
        own: int | None = getattr(agent, name) if agent else None
        common: int | None = getattr(config.agents.defaults, name)
        return own or common or usual

    def _known(self, agent_id: str) -> _Place | None:
        return self._places.get((agent_id, str(self.folder(agent_id))))

    async def _opened(self, agent_id: str) -> _Place:
        known = self._known(agent_id)
        return known if known else await asyncio.to_thread(self._place, agent_id, self.parts.live.config)

    def _place(self, agent_id: str, config: Config) -> _Place:
        place = self._known(agent_id)
        if place is None:
            folder = self.folder(agent_id)
            parts = self.parts
            files = Root(str(folder), parts.paths.private)
            seed = not config.agents.defaults.skip_bootstrap and parts.workspace is None
            workspace = ground.workspace(parts.paths, agent_id, folder, clock=parts.clock, seed=seed)
            extra = [parts.paths.expand(text) for text in config.skills.load.extra_dirs]
            skills = scan.Skills(scan.sources(folder, parts.paths.skills, extra=extra))
            place = self._places[agent_id, str(folder)] = _Place(folder, files, workspace, skills)
        return place

    def _read(self, place: _Place, config: Config, whom: Whom) -> tuple[str, tuple[Document, ...], tuple[Listed, ...]]:
        """The folder of a session, the agent's files, and the skills this machine can use, a line each. Blocks."""
        found = world.world(config, self.parts.live.snapshot.resolved, self.parts.env, whom.agent_id)
        skills = place.skills.lines(found, str(self.parts.paths.home), world.off(config))
        return self._seat(place, whom)[0], _shown(place.workspace.read(), whom), skills

    async def _zone(self, name: str) -> tzinfo:
        if name not in self._zones:
            self._zones[name] = await asyncio.to_thread(stamps.zone, name)
        return self._zones[name]

    def _offered(self, run: Run, model: Model) -> tuple[ToolSpec, ...]:
        """The tools `model` is told of: those the policy leaves, and few of them where the window is small."""
        if not run.turn.tools or model.compat.get("talkOnly"):
            return ()
        specs = self.parts.pipeline.specs(scope_of(run, model))
        return specs if model.prompt == "full" else tuple(spec for spec in specs if spec.name in rights.LITE)

    def _byname(self, run: Run, model: Model, specs: tuple[ToolSpec, ...]) -> tuple[str, ...]:
        """The tools that `model` is told of by name only."""
        if not any(spec.name == toolsearch.CALL for spec in specs):
            return ()
        return tuple(spec.name for spec in self.parts.pipeline.offer(scope_of(run, model)).deferred)

    async def prepare(self, agent_id: AgentId) -> None:
        """Open the agent's folder, so that `context` does not block."""
        await self._opened(agent_id)

    def context(
        self,
        agent_id: AgentId,
        session_key: SessionKey,
        run_id: RunId,
        origin: Origin,
        *,
        requester: str = "",
        guest: bool = False,
    ) -> ToolContext:
        """Where a call happens, and what it may use. `requester` is who asked for it; empty for the owner himself."""
        parts, config = self.parts, self.parts.live.config
        place = self._place(agent_id, config)
        whom = Whom(agent_id, session_key, origin, guest)
        folder, files = self._seat(place, whom)
        behalf = Behalf(agent_id, run_id, requester)
        settings = execution.settings(config, For(agent_id, origin, requester))
        reader = self._readers.of(session_key, run_id)
        lent = reader.lent(settings.lent, lambda: parts.live.config, place.skills)
        settings = replace(settings, lent=lent, seen=lambda: reader.seen(place.skills))
        return ToolContext(
            agent_id,
            session_key,
            run_id,
            origin,
            Door(files, place.skills.folders, str(parts.paths.home), reader),
            parts.supervisor.exec_for(
                session_key, folder, origin, settings, behalf=behalf, fence=fences.of(config, parts.paths, whom)
            ),
            parts.clock,
            parts.grants(Errand(session_key, agent_id, run_id, origin)),
            config.agents.defaults.time_zone or "UTC",
            requester,
            family=parts.family(session_key, run_id),
        )

    def _seat(self, place: _Place, whom: Whom) -> tuple[str, Files]:
        """The folder that a session works in, and its door: a folder of its own where the workspace is not for it."""
        config = self.parts.live.config
        apart = fences.folder(config, self.parts.paths, whom)
        if apart is None:
            fixed = fences.read_only(config, whom)
            return str(place.folder), Sealed(place.files, READ_ONLY) if fixed else place.files
        if str(apart) not in self._seats:
            atomic.folder(apart)
            self._seats[str(apart)] = Root(str(apart), self.parts.paths.private)
        return str(apart), self._seats[str(apart)]

    def had(self, run: Run) -> tuple[str, ...]:
        """The names of the tools that a run may really call, however they are told of."""
        turn, trace = run.turn, run.trace
        scope = Scope(run.agent_id, run.session_key, turn.origin, trace.provider, place=turn.place, model=trace.model)
        return tuple(self.parts.pipeline.modes(scope))

    def _tools(self, watch: Watch, told: set[str], scope: Callable[[], Scope]) -> Tools:
        """What the loop may call, each through the one pipeline and by the rights of the model that calls.

        What a model was told by name only may be called by that name too.
        """
        parts, run = self.parts, watch.run
        whom = whom_of(run)
        context = self.context(
            run.agent_id, run.session_key, run.run_id, whom.origin, requester=requester(run), guest=whom.guest
        )

        async def call(call: ToolCall, update: Update) -> ToolResult:
            now = scope()
            mine = replace(watch.context(context), model=f"{now.provider}/{now.model}")
            result = await parts.pipeline.call(call, mine, update, now)
            await watch.heard(result)
            return result

        modes = parts.pipeline.modes(scope())
        context = replace(context, grants=parts.grants(errand_of(run, tuple(modes))))
        names = {*told, *modes} if toolsearch.CALL in told else told
        return Tools({name: modes.get(name, "sequential") for name in names}, call, parts.pipeline.hidden(names))


def _shown(files: tuple[Document, ...], whom: Whom) -> tuple[Document, ...]:
    """What of the agent's files a turn is told: where others read along, not what it knows of its owner."""
    return tuple(file for file in files if file.name not in NAMES) if whom.guest else files
