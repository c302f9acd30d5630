"""Sub-agents in this house: kept in its database, run by its table of runs."""

from __future__ import annotations

import uuid

from garra.config.live import Live
from garra.core.ids import RunId, SessionKey
from garra.domains.sessions.store import Sessions
from garra.domains.subagents.records import Records
from garra.io.store.db import Database
from garra.runs.assemble import Assembler
from garra.runs.kin import Kin
from garra.runs.runner import Runs
from garra.runs.subagents import Bound, Ports, Subagents
from garra.sdk.family import Family
from garra.sdk.ports import Clock, Spawn


async def made(db: Database, sessions: Sessions, live: Live, *, clock: Clock, spawn: Spawn) -> Subagents:
    """All that earlier processes started is known; none runs before `bound`."""
    ports = Ports(Records(db), sessions, clock, spawn, lambda: live.config, lambda: str(uuid.uuid4()))
    found = Subagents(ports)
    await found.load()
    return found


def bound(found: Subagents, assembler: Assembler, runs: Runs) -> None:
    """From now on they run."""
    parts = assembler.parts
    found.bind(
        Bound(
            runs,
            assembler.had,
            parts.prompts.text,
            lambda key: parts.supervisor.stop(key, background=True),
            lambda ref, agent: parts.models.resolve(ref, agent).ref,
            lambda agent: str(assembler.folder(agent)),
        )
    )


def family(found: Subagents, key: SessionKey, run_id: RunId) -> Family:
    """What one run may do with those of its session."""
    return Kin(found, key, run_id)
