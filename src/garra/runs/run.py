"""One run of an agent: what was asked, how far it is, how it ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from garra.agent.cancel import Cancel
from garra.core import lanes, taint
from garra.core.events import RunEnded
from garra.core.failover import Attempt as Attempt
from garra.core.groups import Place
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Assistant, Image, Text, Usage, User
from garra.core.taint import Mark
from garra.core.trace import Request
from garra.core.value import frozen, record
from garra.sdk.channel import Address
from garra.sdk.model import Level
from garra.sdk.tool import Origin

QueueMode = Literal["steer", "followup", "collect", "interrupt", "drop"]


@frozen
class Turn:
    """What somebody asks of an agent.

    `run_id` is the caller's idempotency key. `model` is a reference that holds for this turn only. `timeout_s` None
    takes the configured limit, 0 means none. `meta` is kept with the message. `tools` false offers none.

    `marks` tell what of it is text from outside.

    Of turns that come from a chat: `place` is where it was asked, `route` names place and rights (only turns of one
    route share a run), `lane` how it waits, where that is not as configured for all, `address` the chat itself.
    `silent`: to say nothing is a fine answer, too. `inherited` names the tools of the turn that this one comes from:
    it has no others.

    `chore` makes it no turn at all but housekeeping that takes its place in line, with `text` for the details:
    `compact` sums the conversation up. Nothing of it is stored as a message.
    """

    run_id: RunId
    session_key: SessionKey
    agent_id: AgentId
    text: str
    images: tuple[Image, ...] = ()
    origin: Origin = "operator"
    model: str | None = None
    thinking: Level | None = None
    timeout_s: float | None = None
    queue: QueueMode | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    extra_system: str = ""
    session_id: SessionId | None = None
    tools: bool = True
    place: Place | None = None
    route: str = ""
    lane: lanes.Settings | None = None
    address: Address | None = None
    silent: bool = False
    marks: tuple[Mark, ...] = ()
    inherited: tuple[str, ...] | None = None
    chore: str = ""


@record
class Trace:
    """What a run's report tells beside its words."""

    attempts: list[Attempt] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    last_usage: Usage = field(default_factory=Usage)
    answers: list[Assistant] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    provider: str = ""
    model: str = ""
    requested: str = ""
    context_window: int = 0
    prompt: Callable[[], Mapping[str, Any]] = dict
    workdir: str = ""
    behind: int = 0
    """How many models could answer instead of the one that is asked."""
    context: tuple[int, int] = (0, 0)
    """Of a chore that made the history smaller: its tokens before and after."""

    def add(self, attempt: Attempt) -> None:
        """One attempt; answers that one login gave in a row are one."""
        last = self.attempts[-1] if self.attempts else None
        if last is None or attempt.result != "success" or _who(last) != _who(attempt):
            self.attempts.append(attempt)

    def note(self, provider: str, model: str, result: str) -> None:
        """How it went with a model, where nobody told of its attempts."""
        last = self.attempts[-1] if self.attempts else None
        if last is None or (last.provider, last.model, last.result) != (provider, model, result):
            self.attempts.append(Attempt(provider, model, result))


def _who(attempt: Attempt) -> tuple[str, str, str, str]:
    return attempt.provider, attempt.model, attempt.profile, attempt.result


class Run:
    """A registered run. It is `queued` until its session is free, then `running`, then `ended` for good.

    `steer` are messages handed to it that its model has not seen yet; `joined` are those whose words it has taken:
    they end when it ends, and `led_by` names it there. `prompt` is its message as it is
    stored; `stored` is set when it is on disk, or never will be. `heard` are the marks of what its model is told and
    no message holds, until an answer has them; `left_out` those of messages that it is told of in brief.
    `rest` is set where it ends to wait for its sub-agents: what a person is told then, empty for nothing.
    `notices` are lines that the person was told beside the answer. `begun` is when it started to run, in seconds of
    the steady clock; `started_at` when it was accepted.
    """

    def __init__(self, turn: Turn, session_id: SessionId, started_at: int) -> None:
        self.turn = turn
        self.session_id = session_id
        self.started_at = started_at
        self.begun = float("-inf")
        self.state: Literal["queued", "running", "ended"] = "queued"
        self.ended: RunEnded | None = None
        self.cancel = Cancel()
        self.trace = Trace()
        self.seq = 0
        self.steer: deque[Run] = deque()
        self.joined: list[Run] = []
        self.led_by: RunId | None = None
        self.rest: str | None = None
        self.heard: tuple[Mark, ...] = ()
        self.left_out: tuple[Mark, ...] = ()
        self.notices: list[str] = []
        self.prompt = User(
            (*((Text(turn.text),) if turn.text or not turn.images else ()), *turn.images),
            started_at,
            {"idempotencyKey": f"{turn.run_id}:user", **turn.meta, **taint.stored(turn.marks)},
        )
        self.stored = asyncio.Event()
        self._done = asyncio.Event()

    @property
    def run_id(self) -> RunId:
        return self.turn.run_id

    @property
    def session_key(self) -> SessionKey:
        return self.turn.session_key

    @property
    def agent_id(self) -> AgentId:
        return self.turn.agent_id

    @property
    def usage(self) -> Usage:
        return self.trace.usage

    def end(self, ended: RunEnded) -> None:
        """Record the end, once."""
        self.ended, self.state = ended, "ended"
        self.stored.set()
        self._done.set()

    async def wait(self, timeout_s: float | None = None) -> RunEnded:
        """Wait for the end. Raises TimeoutError; the run goes on."""
        async with asyncio.timeout(timeout_s):
            await self._done.wait()
        assert self.ended is not None
        return self.ended
