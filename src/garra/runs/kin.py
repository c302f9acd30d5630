"""What one run may do with the sub-agents of its session, as `sdk.family.Family`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from garra.core import lineage, outside, reports
from garra.core.errors import GarraError, NotFound, ToolFailed
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.keys import single
from garra.core.lineage import Child, Home
from garra.core.messages import Assistant, Message, ToolResult, User
from garra.core.taint import CLEAN, Mark, Marks
from garra.domains.tools.pipeline import Scope
from garra.runs import offspring, rights
from garra.runs.run import Run
from garra.runs.subagents import Subagents
from garra.sdk.family import Relative, Said, Wanted

AT_WORK: Final = "I am at work on it and will report here."
"""What a person is told by a turn that ends to wait, and says nothing itself."""
LINE: Final = 400
"""Characters of one message in a log."""
FULL: Final = 0.6
"""A conversation that fills more of its model's window than this is not given to a child."""


class Kin:
    """The sub-agents of one session, for one run of it."""

    def __init__(self, subagents: Subagents, key: SessionKey, run_id: RunId) -> None:
        self._table, self._key, self._run_id = subagents, key, run_id

    def members(self) -> Sequence[Relative]:
        return [relative(child) for child in self._table.of(self._key)]

    async def start(self, wanted: Wanted, marks: Marks = CLEAN) -> Relative:
        table = self._table
        child, notes = self._child(self._run(), wanted, marks)
        table.claim(child)
        try:
            child, more = await self._housed(child)
            await table.begin(child)
        except BaseException as error:
            table.forget(child)
            if isinstance(error, GarraError):
                raise ToolFailed(f"No sub-agent was started: {error.message}") from None
            raise
        return replace(relative(child), note=" ".join((*notes, *more)))

    async def rest(self, shown: str = "") -> Sequence[Relative]:
        run, waiting = self._run(), self._table.waiting(self._key)
        if not waiting:
            raise ToolFailed("None of your sub-agents is at work, so there is nothing to wait for: answer now.")
        silent = run.turn.silent or run.turn.origin == "subagent"
        run.rest = "" if silent else shown.strip() or AT_WORK
        return [relative(child) for child in waiting]

    async def stop(self, which: str) -> Sequence[Relative]:
        if which.strip() == "all":
            return [relative(child) for child in await self._table.stop_under(self._key)]
        return [relative(child) for child in await self._table.stop(self._meant(which).key, quiet=True)]

    async def steer(self, which: str, text: str, marks: Marks = CLEAN) -> Relative:
        child = self._meant(which)
        if not child.active:
            raise ToolFailed(f"{child.name} has ended; start another with sessions_spawn.")
        turn = offspring.task(child, self._table.bound.text)
        told = {"kind": "inter_session", "sourceSessionKey": self._key}
        turn = replace(
            turn,
            run_id=RunId(self._table.ports.new_id()),
            text=f"[From the session that started you]\n{text}",
            queue="steer",
            meta={"provenance": told},
            marks=marks.named,
        )
        await self._table.bound.runs.submit(turn)
        return relative(child)

    async def log(self, which: str, limit: int, *, tools: bool = False) -> Said:
        return await said(self._table, self._meant(which), limit, tools=tools)

    def _run(self) -> Run:
        run = self._table.bound.runs.find(self._run_id)
        if run is None or run.state == "ended":
            raise ToolFailed("This works within a turn of an agent only.")
        return run

    def _meant(self, which: str) -> Child:
        child, why = reports.find(self._table.of(self._key), which)
        if child is None:
            raise ToolFailed(f"{why}.")
        return child

    def _child(self, run: Run, wanted: Wanted, marks: Marks) -> tuple[Child, list[str]]:
        """The child as asked for, and what of it could not be. Raises ToolFailed where it may not be at all."""
        table, config, own = self._table, self._table.ports.config(), self._own()
        limits = offspring.limits(config, run.agent_id)
        active = sum(child.active for child in table.of(self._key))
        if why := lineage.refusal(own, active, limits):
            raise ToolFailed(f"No sub-agent was started: {why}")
        agent = self._agent(run, wanted)
        if wanted.fork and agent != run.agent_id:
            raise ToolFailed("context fork is for the same agent: give the other one all it must know in its task.")
        model, notes = self._model(run, wanted, agent)
        level = wanted.thinking or offspring.setting(config, agent, "thinking") or run.turn.thinking or ""
        run_id, now = table.ports.new_id(), table.ports.clock.now_ms()
        timeout_s = limits.timeout_s if wanted.timeout_s is None else wanted.timeout_s
        child = Child(
            run_id,
            single(agent, "subagent", table.ports.new_id()),
            agent,
            wanted.task,
            home_of(run, own),
            table.ports.new_id(),
            now,
            label=wanted.label.strip(),
            depth=own + 1,
            tools=table.bound.had(run),
            context="fork" if wanted.fork else "isolated",
            cleanup="delete" if wanted.forget else "keep",
            model=model,
            thinking=str(level),
            timeout_s=timeout_s,
            local=table.post is None,
            given=marks.named,
        )
        return child, notes

    def _own(self) -> int:
        """How deep this session is itself; one that nobody remembers is as deep as can be."""
        scope = self._table.scope(Scope(AgentId(""), self._key, "subagent"))
        return scope.depth if self._table.get(self._key) is not None or not scope.depth else 99

    def _agent(self, run: Run, wanted: Wanted) -> AgentId:
        config = self._table.ports.config()
        known, own = config.agents.ids(), run.agent_id
        here = rights.boxed(config, Scope(own, self._key, run.turn.origin))
        weaker = [each for each in known if here and not rights.boxed(config, _below(each))]
        targets = lineage.Targets(
            own,
            known,
            offspring.setting(config, own, "allow_agents"),
            offspring.setting(config, own, "require_agent_id"),
            frozenset(weaker) - {own},
        )
        agent, why = lineage.target(wanted.agent, targets)
        if why:
            raise ToolFailed(f"No sub-agent was started: {why}.")
        return AgentId(agent)

    def _model(self, run: Run, wanted: Wanted, agent: str) -> tuple[str, list[str]]:
        """As asked for, as set for sub-agents, as its parent has it; a model that is not there is passed over."""
        choice = offspring.setting(self._table.ports.config(), agent, "model")
        inherited = f"{run.trace.provider}/{run.trace.model}" if agent == run.agent_id and run.trace.model else ""
        notes: list[str] = []
        for ref in (wanted.model, choice.primary if choice is not None else "", inherited):
            if ref:
                try:
                    return self._table.bound.model(ref, agent), notes
                except NotFound as error:
                    notes.append(f"Model {ref[:80]} is passed over: {error.message}")
        return "", notes

    async def _housed(self, child: Child) -> tuple[Child, list[str]]:
        """Make its session; a conversation too long to be given on is left out."""
        sessions, notes = self._table.ports.sessions, list[str]()
        about = {
            "spawnedBy": child.home.key,
            "parentSessionKey": child.home.key,
            "spawnDepth": child.depth,
            "delivery": {"kind": "internal"},
        }
        if child.context == "fork" and await self._full():
            child = replace(child, context="isolated")
            notes.append("The conversation is too long to be given on: it knows its task only.")
        if child.context == "fork":
            await sessions.fork(self._key, child.key, await self._before(), created_via="subagent", extra=about)
        else:
            folder = self._table.bound.folder(child.agent)
            await sessions.ensure(child.key, agent_id=child.agent, cwd=folder, created_via="subagent", extra=about)
        await sessions.record(child.key, display_name=child.name)
        return child, notes

    async def _full(self) -> bool:
        session = await self._table.ports.sessions.get(self._key)
        if session is None or session.totals is None or not session.context_tokens:
            return False
        return session.totals.total > FULL * session.context_tokens

    async def _before(self) -> str | None:
        """The last entry before the answer whose calls are still under way: a child is not shown half of a call."""
        entries = (await self._table.ports.sessions.transcript(self._key)).entries()
        ends: set[str] = set()
        for at in range(len(entries) - 1, -1, -1):
            message = entries[at].body.get("message") or {}
            if message.get("role") == "toolResult":
                ends.add(str(message.get("toolCallId")))
            elif message.get("role") == "assistant":
                asked = {part.get("id") for part in message.get("content") or () if part.get("type") == "toolCall"}
                return None if asked <= ends or at == 0 else entries[at - 1].id
        return None


def _below(agent: str) -> Scope:
    """A sub-agent's scope of some agent, for where its programs run."""
    return Scope(AgentId(agent), single(agent, "subagent", "new"), "subagent")


def home_of(run: Run, depth: int) -> Home:
    """Where the report of a run's child goes: it is the run's own, nothing a model says can change it."""
    turn = run.turn
    return Home(
        turn.session_key,
        run.run_id,
        turn.agent_id,
        depth,
        depth > 0,
        turn.place,
        None if turn.address is None else msgspec.to_builtins(turn.address),
        turn.route,
        turn.extra_system,
        turn.model or "",
        str(turn.thinking or ""),
        turn.origin,
    )


def relative(child: Child) -> Relative:
    return Relative(
        child.run_id,
        child.key,
        child.name,
        child.state,
        child.outcome,
        child.agent,
        child.task,
        child.created_at,
        child.started_at,
        child.ended_at,
        child.tokens_in,
        child.tokens_out,
        child.report,
    )


async def said(table: Subagents, child: Child, limit: int, *, tools: bool) -> Said:
    """The last messages of a child's session, as data, with the marks of what it read."""
    text = "\n".join(await lines(table, child, limit, tools=tools)) or "Nothing was said yet."
    return Said(outside.wrap(text, Mark("agent", child.key)), await table.marks(child.key))


async def lines(table: Subagents, child: Child, limit: int, *, tools: bool) -> list[str]:
    """The last messages of a child's session, a line each."""
    try:
        messages = (await table.ports.sessions.transcript(child.key)).messages()
    except NotFound:
        return [f"(The session {child.key} is put away.)"]
    return [line for message in messages[-4 * limit :] for line in _lines(message, tools=tools)][-limit:]


def _lines(message: Message, *, tools: bool) -> Iterator[str]:
    match message:
        case User():
            yield f"user: {outside.name(message.text, LINE)}"
        case Assistant():
            if message.text.strip():
                yield f"assistant: {outside.name(message.text, LINE)}"
            for call in message.calls if tools else ():
                yield f"call: {call.name} {outside.name(_json(call.arguments), LINE)}"
        case ToolResult() if tools:
            yield f"result: {message.name}: {outside.name(message.text, LINE)}"
        case _:
            pass


def _json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
