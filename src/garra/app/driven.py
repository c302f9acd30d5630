"""The table of runs, and what drives them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from garra.app import queues
from garra.app.turnstile import Turnstile
from garra.core.errors import NotFound
from garra.core.events import EntryStored, RunBody
from garra.core.ids import SessionId
from garra.io.tasks import Tasks
from garra.runs.assemble import Assembler, Parts
from garra.runs.drive import Driver, said
from garra.runs.run import Run, Turn
from garra.runs.runner import Ports, Runs


def runs(
    parts: Parts,
    assembler: Assembler,
    spawn: Tasks,
    first_pick: Callable[[Turn], Awaitable[None]],
    *,
    turnstile: Turnstile | None,
) -> Runs:
    """The table of runs and what drives them; the two know each other through one event sink."""

    async def enrol(turn: Turn) -> SessionId:
        config = parts.live.config
        if turn.agent_id not in config.agents.ids():
            raise NotFound(f"There is no agent {turn.agent_id}; there is {', '.join(config.agents.ids())}.")
        await first_pick(turn)
        if turnstile is None:
            return await session_of(turn)
        await turnstile.enter(turn.session_key)
        try:
            return await session_of(turn)
        except BaseException:
            await turnstile.leave(turn.session_key)
            raise

    async def session_of(turn: Turn) -> SessionId:
        session = await parts.sessions.ensure(
            turn.session_key,
            agent_id=turn.agent_id,
            cwd=str(assembler.folder(turn.agent_id)),
            session_id=turn.session_id,
        )
        return session.session_id

    async def keep(run: Run) -> None:
        transcript = await parts.sessions.transcript(run.session_key)
        if said(transcript.messages(), run.prompt):
            return  # the run is resumed after a crash
        entry = await transcript.append(run.prompt)
        table.emit(run, EntryStored(entry.body))

    def emit(run: Run, body: RunBody) -> None:
        table.emit(run, body)

    driver = Driver(parts.clock, spawn, assembler.setup, emit, parts.purse)
    table = Runs(Ports(parts.clock, spawn, enrol, keep, driver.drive, lambda: queues.settings(parts.live)))
    return table
