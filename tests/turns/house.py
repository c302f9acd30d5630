"""A chat message's path as it is in the program, from a fake channel to its outbox: real stores, real runs, a model
that says what it is told.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from garra.agent.calls import Tools
from garra.config.sections import Config
from garra.core import lanes
from garra.core.errors import NotFound
from garra.core.events import EntryStored
from garra.core.ids import SessionId
from garra.core.messages import Message, User
from garra.core.policy import Face, Verdict, decide
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.engine import Embedded
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.replies import Replies
from garra.domains.delivery.timeline import Timeline
from garra.domains.sessions.store import Sessions
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.runs.drive import Driver, Setup, said
from garra.runs.rights import placed
from garra.runs.run import Run, Turn
from garra.runs.runner import Ports as RunPorts
from garra.runs.runner import Runs
from garra.sdk.channel import Address, ChatKind, Inbound, Sender
from garra.sdk.model import Model
from garra.testing.model import Says, Script, ScriptedModel, says
from garra.testing.tools import FakeTools
from garra.turns.histories import Histories
from garra.turns.kernel import Kernel
from garra.turns.parts import Ports
from garra.turns.pump import Hand, Pump
from garra.turns.voice import Chats

MODEL = Model("scripted", "scripted", "scripted", "http://localhost")
EVERYDAY: Mapping[str, Any] = {
    "messages": {"inbound": {"debounceMs": 0}, "queue": {"debounceMs": 0}},
    "channels": {"test": {"dmPolicy": "allowlist", "allowFrom": ["1", "2", "3"], "groups": {"*": {}}}},
}
ANSWER = (says("an answer"),)
_ids = itertools.count(1)


def config(changes: Mapping[str, Any] | None = None, **channel: Any) -> Config:
    """A configuration with one account `test`; `channel` are changes of its keys."""
    base = dict(EVERYDAY)
    base["channels"] = {"test": {**EVERYDAY["channels"]["test"], **channel}}
    return Config.model_validate({**base, **(changes or {})})


def message(
    text: str = "hello", user: str = "1", chat: str = "", *, thread: str = "", event_id: str = "", **more: Any
) -> Inbound:
    """A message of `user`: direct, or in the group `chat`."""
    kind: ChatKind = "group" if chat else "direct"
    more.setdefault("address", Address("test", "default", chat or user, kind, thread))
    more.setdefault("sender", Sender(user, {"1": "Ann", "2": "Bob", "3": "Eve"}.get(user, "Stranger")))
    return Inbound(event_id or f"e{next(_ids)}", more.pop("event", "message"), text=text, **more)


@dataclass
class Models:
    """The models that can be chosen."""

    known: tuple[Model, ...] = (MODEL, Model("scripted", "other", "scripted", "http://localhost"))

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        for model in self.known:
            if ref in (None, model.ref, model.id):
                return model
        raise NotFound(f"no model {ref!r}")

    def rows(self) -> Sequence[Any]:
        return ()


@dataclass
class Channel:
    """A fake platform: what it was sent, and a way to say something."""

    house: House

    async def hear(self, event: Inbound) -> str:
        """The platform's event comes in; the row's id."""
        return (await self.house.inbox.accept(event)).row_id

    async def say(self, text: str, user: str = "1", chat: str = "", **more: Any) -> str:
        return await self.hear(message(text, user, chat, **more))

    @property
    def sent(self) -> list[tuple[str, str]]:
        """(chat, or chat/thread, and words) of everything that was written to the outbox."""
        rows = sorted(self.house.sent.values(), key=lambda row: row.place)
        return [
            (
                row.draft.address.chat + (f"/{row.draft.address.thread}" if row.draft.address.thread else ""),
                row.draft.text,
            )
            for row in rows
        ]

    def words(self, chat: str = "") -> list[str]:
        return [text for at, text in self.sent if not chat or at == chat]


@dataclass
class House:
    """Everything, wired as the program wires it."""

    config: Config
    db: Database
    inbox: Inbox
    outbox: Outbox
    timeline: Timeline
    sessions: Sessions
    runs: Runs
    pairing: Pairing
    kernel: Kernel
    pump: Pump
    spawn: Tasks
    model: ScriptedModel
    tools: FakeTools
    sent: dict[str, OutboxRow] = field(default_factory=dict)
    warned: list[str] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    @property
    def channel(self) -> Channel:
        return Channel(self)

    async def until(self, done: Callable[[], Any], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not done():  # noqa: ASYNC110 - a test looks at what it was not told of
                await asyncio.sleep(0.005)

    async def idle(self, seconds: float = 10.0) -> None:
        """Until every row of the inbox is done or dead."""
        async with asyncio.timeout(seconds):
            while await self.inbox.pending() or len(self.kernel.answers):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)

    async def row(self, row_id: str) -> InboxRow:
        return await self.inbox.get(row_id)

    def asked(self, at: int = -1) -> str:
        """The last words of a user in a request to the model."""
        return next(m.text for m in reversed(self.model.requests[at]) if isinstance(m, User))

    def allowed(self, turn: Turn) -> set[str]:
        """The tools that a turn's place leaves it."""
        place = turn.place
        assert place is not None
        layers = placed(self.config, place)
        names = ("exec", "read", "write", "web_fetch")
        return {name for name in names if decide(Face(name), layers).verdict is Verdict.ALLOW}


@asynccontextmanager
async def house(
    folder: Path,
    script: Script = ANSWER,
    settings: Config | None = None,
    tools: Mapping[str, Any] | None = None,
    *,
    started: bool = True,
    change: Callable[[Ports], Ports] = lambda ports: ports,
) -> AsyncIterator[House]:
    """`change` hands in other parts."""
    settings = settings or config()
    async with AsyncExitStack() as stack:
        spawn = await stack.enter_async_context(Tasks())
        db = Database(folder / "state.db")
        stack.push_async_callback(db.close)
        made = await _made(folder, Owned(db, spawn, change), script, settings, tools or {})
        stack.push_async_callback(made.runs.close)
        stack.push_async_callback(made.sessions.close)
        if started:
            await made.pump.start()
        yield made
        made.pump.stop()
        await spawn.close()


@dataclass(frozen=True)
class Owned:
    """What a house has from its builder."""

    db: Database
    spawn: Tasks
    change: Callable[[Ports], Ports]


async def _made(folder: Path, owned: Owned, script: Script, settings: Config, tools: Mapping[str, Any]) -> House:
    db, spawn = owned.db, owned.spawn
    clock = SystemClock()
    inbox, outbox, timeline = Inbox(db, clock), Outbox(db, clock), Timeline(db, clock)
    sessions = Sessions(db, folder / "agents", clock, _new_id)
    model, fake = ScriptedModel(script), FakeTools(tools)
    runs = _runs(sessions, spawn, model, fake.tools)
    pairing = Pairing(lambda space: Shelf(db, space), clock, random.Random(1).randrange)
    await pairing.load()
    engine = Embedded(inbox, clock, spawn)
    jobs: dict[str, Any] = {}
    hand = Hand(inbox, engine, jobs)
    made: list[House] = []

    async def halt(key: str) -> int:
        made[0].halted.append(key)
        return 0

    voice = Chats(lambda: made[0].config, Replies(), runs, stage=lambda _: None, limits=lambda _: None)
    ports = Ports(
        hand, outbox, timeline, lambda: made[0].config, sessions, _Spied(runs, made), Models(), pairing, voice, clock,
        spawn, lambda agent: str(folder / "workspace" / agent), halt, lambda line: made[0].warned.append(line),
    )  # fmt: skip
    ports = owned.change(ports)
    kernel = Kernel(ports, Histories(Shelf(db, "group-history")))
    pump = Pump(kernel, hand, ports)
    made.append(House(settings, db, inbox, outbox, timeline, sessions, runs, pairing, kernel, pump, spawn, model, fake))
    outbox.subscribe(lambda row: made[0].sent.__setitem__(row.key, row))
    return made[0]


class _Spied:
    """The runs, with every turn noted."""

    def __init__(self, runs: Runs, made: list[House]) -> None:
        self._runs, self._made = runs, made
        self.active, self.every, self.abort, self.subscribe = runs.active, runs.every, runs.abort, runs.subscribe

    async def submit(self, turn: Turn) -> Run:
        self._made[0].turns.append(turn)
        return await self._runs.submit(turn)


def _new_id() -> str:
    return f"id-{next(_ids)}-{random.randrange(1 << 30)}"


def _runs(sessions: Sessions, spawn: Tasks, model: ScriptedModel, tools: Tools) -> Runs:
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

        def ask(_: Model, messages: tuple[Message, ...]) -> Any:
            return model(messages)

        limit = run.turn.timeout_s or 0.0
        quiet = "group" if run.turn.silent or (run.turn.place and run.turn.place.group) else "never"
        return Setup(transcript, (MODEL,), ask, tools, limit, quiet)  # type: ignore[arg-type]  # one of two words

    driver = Driver(clock, spawn, assemble, lambda run, body: runs.emit(run, body))
    runs = Runs(RunPorts(clock, spawn, enrol, keep, driver.drive, lanes.Settings))
    return runs


def echo(messages: tuple[Message, ...]) -> Says:
    """Answers `re: ` and the last words of a user."""
    last = next(m.text for m in reversed(messages) if isinstance(m, User))
    return says(f"re: {last}")
