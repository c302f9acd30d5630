"""What a method is given: the gateway's parts, and the few questions that many methods ask of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from garra.config.live import Live
from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import NotFound
from garra.core.ids import SessionKey
from garra.core.keys import agent_of, canonical
from garra.core.value import frozen
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.gateway.ledgers import Ledgers
from garra.gateway.parts import Broadcast, ModelTable, RunTable, ToolTable
from garra.gateway.project import Desk, Later, Projector
from garra.gateway.rows import Drawings, Rows
from garra.io.files.root import Root
from garra.sdk.ports import Clock, Files, Spawn


@frozen
class Parts:
    """What `app` hands in. `port` is where it listens, `started_at` milliseconds since 1970, `later` the loop's
    timer, `files` opens a folder."""

    version: str
    port: int
    started_at: int
    live: Live
    sessions: Sessions
    runs: RunTable
    models: ModelTable
    tools: ToolTable
    hub: Broadcast
    clock: Clock
    spawn: Spawn
    later: Later
    new_id: Callable[[], str]
    files: Callable[[str], Files] = Root
    more: dict[str, Any] = field(default_factory=dict)


class Host:
    """The gateway, as its methods see it. `more` holds what other parts put there for their own methods."""

    def __init__(self, parts: Parts) -> None:
        self.version, self.port, self.started_at = parts.version, parts.port, parts.started_at
        self.live, self.sessions, self.runs = parts.live, parts.sessions, parts.runs
        self.models, self.tools = parts.models, parts.tools
        self.hub, self.clock, self.spawn, self.new_id = parts.hub, parts.clock, parts.spawn, parts.new_id
        self.files, self.more = parts.files, parts.more
        self._drawings = Drawings()
        self.ledgers = Ledgers(parts.clock.monotonic)
        desk = Desk(parts.hub, parts.clock, parts.later, parts.spawn, self.row, self.place, self._ended)
        self.show = Projector(desk)
        self._ends = (parts.runs.subscribe(self.show.listen), parts.live.subscribe(self._edited))

    @property
    def paths(self) -> Paths:
        return self.live.paths

    @property
    def config(self) -> Config:
        return self.live.config

    @property
    def main(self) -> str:
        """What an agent's own conversation is called."""
        return self.config.session.main_key

    def agent(self, agent_id: str | None) -> str:
        """The agent meant. Raises NotFound when there is no such agent."""
        agents = self.config.agents
        if not agent_id:
            return agents.default_id()
        if agent_id.lower() not in agents.ids():
            raise NotFound(f'unknown agent id "{agent_id[:64]}"')
        return agent_id.lower()

    def key(self, text: str, agent_id: str | None = None) -> SessionKey:
        """The session meant. Raises UserError for what is no key, NotFound for an agent that is not configured."""
        key = canonical(text, self.agent(agent_id), self.main)
        self.agent(agent_of(key, self.config.agents.default_id()))
        return key

    async def ensure(self, key: SessionKey, created_via: str = "operator") -> Session:
        """The session of `key`, made when there is none yet."""
        agent = agent_of(key, self.config.agents.default_id())
        cwd = str(self.paths.workspace(agent, self.config))
        return await self.sessions.ensure(key, agent_id=agent, cwd=cwd, created_via=created_via)

    async def session(self, key: SessionKey) -> Session:
        """Raises NotFound when there is none."""
        found = await self.sessions.get(key)
        if found is None:
            raise NotFound(f"session not found: {key}")
        return found

    def rows(self) -> Rows:
        return Rows(self.config, self.models, self.runs.every(), self.clock.now_ms(), drawings=self._drawings)

    async def row(self, key: str) -> dict[str, Any] | None:
        session = await self.sessions.get(SessionKey(key))
        return self.rows().row(session) if session else None

    async def place(self, key: str, entry_id: str) -> int | None:
        """The number of a stored message within its session, from 1."""
        transcript = await self.sessions.transcript(SessionKey(key))
        said = [entry.id for entry in transcript.entries() if entry.type == "message"]
        return said.index(entry_id) + 1 if entry_id in said else None

    def close(self) -> None:
        """Listen no more."""
        for end in self._ends:
            end()

    def _edited(self, old: Config, new: Config) -> None:
        payload = {"path": str(self.paths.config_file), "hash": self.live.snapshot.hash, "ts": self.clock.now_ms()}
        self.hub.publish("config.changed", payload)

    def _ended(self, run_id: str) -> None:
        self.ledgers.chat.end(run_id)

    async def merge(self, change: dict[str, Any], base_hash: str | None = None) -> Snapshot:
        """Change the configuration file and serve it. Raises UserError for what would not be valid."""
        return await self.live.change(lambda writer: writer.patch(change, base_hash))

    async def put(self, path: str, value: Any) -> Snapshot:
        """Put a value at a dotted path of the configuration file, in the place of what stands there, and serve it."""
        return await self.live.change(lambda writer: writer.set(path, value))
