"""Sub-agents: who may start which, and how a child goes from being asked for to its parent being told.

A child is queued, running, waiting (for children of its own), ended (its report is stored, its parent has yet to get
it), told. It moves by `step`; whoever carries the effects out stores the child first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Literal, assert_never

from garra.core.groups import Place
from garra.core.taint import Mark
from garra.core.value import frozen

State = Literal["queued", "running", "waiting", "ended", "told"]
Outcome = Literal["", "ok", "error", "timeout", "stopped", "lost", "over"]
"""How it ended: `lost` was interrupted by restarts too often, `over` used up what one child may. Empty: it goes on."""
Context = Literal["isolated", "fork"]
Cleanup = Literal["keep", "delete"]
Effect = Literal["resume", "tell", "cascade", "clean"]
"""Go on with its run; give its report to its parent; stop its own children; put its session away."""

TRIES: Final = 3
"""So many restarts may interrupt one child; then it is given up, and its parent is told so."""
LABEL: Final = 80


@frozen
class Limits:
    """`depth` levels of children, `children` of one session at a time, `concurrent` running at all; for one child
    `timeout_s` seconds of a run, `tokens` and `cost` (US dollars) of all its answers. 0: none, where it is a bound on
    one child.
    """

    depth: int = 1
    children: int = 5
    concurrent: int = 8
    timeout_s: float = 0.0
    tokens: int = 0
    cost: float = 0.0


@frozen
class Home:
    """Where a report goes, and with what: all of it the parent's own turn's. `address` is the chat's, as JSON; None
    where the parent was asked at a screen. `nested`: the parent is a sub-agent itself.
    """

    key: str
    run_id: str
    agent: str
    depth: int = 0
    nested: bool = False
    place: Place | None = None
    address: Mapping[str, Any] | None = None
    route: str = ""
    system: str = ""
    model: str = ""
    thinking: str = ""
    origin: str = "operator"


@frozen
class Left:
    """A file that a sub-agent leaves its parent: `where` is the name by which the parent's tools find it, `source` what
    the child called it.
    """

    name: str
    where: str
    mime: str = ""
    source: str = ""


@frozen
class Child:
    """One sub-agent. `run_id` is of its first run, `key` its session. `tools` are those its parent really had. `ticket`
    names its report, which nobody outside can know. `report` is its last answer, `fault` one line on what went wrong.
    Times in milliseconds since 1970.
    """

    run_id: str
    key: str
    agent: str
    task: str
    home: Home
    ticket: str
    created_at: int
    label: str = ""
    depth: int = 1
    tools: tuple[str, ...] = ()
    context: Context = "isolated"
    cleanup: Cleanup = "keep"
    model: str = ""
    thinking: str = ""
    timeout_s: float = 0.0
    local: bool = False
    state: State = "queued"
    outcome: Outcome = ""
    report: str = ""
    fault: str = ""
    started_at: int = 0
    ended_at: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    tries: int = 0
    given: tuple[Mark, ...] = ()
    marks: tuple[Mark, ...] = ()
    files: tuple[Left, ...] = ()

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.label or headline(self.task)

    @property
    def active(self) -> bool:
        """Whether it still has something to do."""
        return self.state in ("queued", "running", "waiting")

    @property
    def open(self) -> bool:
        """Whether its parent has yet to be told."""
        return self.state != "told"

    @property
    def report_id(self) -> str:
        """The id of the run in which its parent is told."""
        return f"{self.run_id}:report"


def headline(text: str) -> str:
    """The first words of a task, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= LABEL else line[: LABEL - 1] + "…"


@frozen
class Began:
    """A place to run in is its own."""

    now: int


@frozen
class Ended:
    """A run in its session ended. `reply` is empty where it said nothing; `open` of its own children are not told."""

    now: int
    outcome: Outcome
    reply: str = ""
    fault: str = ""
    open: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    marks: tuple[Mark, ...] = ()
    files: tuple[Left, ...] = ()


@frozen
class Settled:
    """It was told of a child of its own; `open` others are not told."""

    now: int
    open: int = 0


@frozen
class Stopped:
    """Somebody stops it. `quiet`: its parent was stopped with it, or did it, and is told nothing."""

    now: int
    quiet: bool = False


@frozen
class Told:
    """Its parent has it: the report is on the disk there."""

    now: int


@frozen
class Restarted:
    """Another process takes it up."""

    now: int


Event = Began | Ended | Settled | Stopped | Told | Restarted
Step = tuple[Child, tuple[Effect, ...]]


def step(child: Child, event: Event) -> Step:
    """What follows from one event; what comes too late changes nothing."""
    match event:
        case Began(now):
            began = replace(child, state="running", started_at=child.started_at or now)
            return (began, ()) if child.state == "queued" else (child, ())
        case Ended():
            return _ended(child, event) if child.state in ("running", "waiting") else (child, ())
        case Settled(now, others):
            return _over(child, now) if child.state == "waiting" and not others else (child, ())
        case Stopped(now, quiet):
            return _stopped(child, now, quiet=quiet) if child.active else (child, ())
        case Told():
            effects: tuple[Effect, ...] = ("clean",) if child.cleanup == "delete" else ()
            return (replace(child, state="told"), effects) if child.state == "ended" else (child, ())
        case Restarted(now):
            return _restarted(child, now)
        case _:
            assert_never(event)


def _ended(child: Child, event: Ended) -> Step:
    child = replace(
        child,
        report=event.reply or child.report,
        tokens_in=child.tokens_in + event.tokens_in,
        tokens_out=child.tokens_out + event.tokens_out,
        cost=child.cost + event.cost,
        marks=tuple(dict.fromkeys((*child.marks, *event.marks))),
        files=tuple(dict.fromkeys((*child.files, *event.files))),
    )
    if event.outcome == "ok" and event.open:
        return replace(child, state="waiting"), ()
    if event.outcome == "ok":
        return _over(child, event.now)
    ended = replace(child, state="ended", outcome=event.outcome, fault=event.fault, ended_at=event.now)
    return ended, ("cascade", "tell")


def _over(child: Child, now: int) -> Step:
    return replace(child, state="ended", outcome="ok", ended_at=now), ("tell",)


def _stopped(child: Child, now: int, *, quiet: bool) -> Step:
    ended = replace(child, outcome="stopped", ended_at=now)
    if quiet:
        return replace(ended, state="told"), ("cascade",)
    return replace(ended, state="ended"), ("cascade", "tell")


def _restarted(child: Child, now: int) -> Step:
    if child.state == "waiting":
        return child, ("resume",)
    if child.state == "running":
        child = replace(child, tries=child.tries + 1)
        if child.tries > TRIES:
            lost = replace(child, state="ended", outcome="lost", ended_at=now)
            return lost, ("cascade", "tell")
        return child, ("resume",)
    return child, ("tell",) if child.state == "ended" else ()


def starters(children: Iterable[Child], concurrent: int) -> tuple[Child, ...]:
    """Those of the queued that may begin now, oldest first. One that waits for its own children takes no place."""
    known = list(children)
    room = max(0, concurrent - sum(child.state == "running" for child in known))
    queued = sorted((child for child in known if child.state == "queued"), key=lambda child: child.created_at)
    return tuple(queued[:room])


def refusal(depth: int, open_children: int, limits: Limits) -> str:
    """Why a session at `depth` (0: no sub-agent) may not start one more; empty when it may."""
    if depth >= limits.depth:
        return (
            f"sub-agents may start none of their own here (depth {depth} of {limits.depth}): do it yourself. "
            "The owner allows more by agents.defaults.subagents.maxSpawnDepth."
        )
    if open_children >= limits.children:
        return (
            f"{open_children} sub-agents of this session are at work, and it may have {limits.children} at a time: "
            "wait for one to report (agents.defaults.subagents.maxChildrenPerAgent)."
        )
    return ""


@frozen
class Targets:
    """Whom an agent may start: `allow` None is itself alone, `*` any of `known`. `weaker` are agents whose programs are
    less shut in than its own.
    """

    own: str
    known: tuple[str, ...]
    allow: tuple[str, ...] | None = None
    required: bool = False
    weaker: frozenset[str] = frozenset()


def target(wanted: str, targets: Targets) -> tuple[str, str]:
    """(agent, why not): the second is empty when the first may be started."""
    name = wanted.strip().lower()
    if not name:
        missing = "name an agent: agentId is needed here" if targets.required else ""
        return targets.own, missing
    allowed = _allowed(targets)
    if name not in allowed:
        return targets.own, f"there is no agent {name[:64]} that may be started here; there is {', '.join(allowed)}"
    if name in targets.weaker:
        return targets.own, f"agent {name} runs its programs less shut in than {targets.own}, which may not start it"
    return name, ""


def _allowed(targets: Targets) -> tuple[str, ...]:
    if targets.allow is None:
        return (targets.own,)
    names = {each.strip().lower() for each in targets.allow}
    return tuple(each for each in targets.known if "*" in names or each in names)


def spent(tokens: int, cost: float, limits: Limits) -> str:
    """What of a child's means is used up, in a line; empty when nothing is."""
    if limits.tokens and tokens > limits.tokens:
        return f"it used {tokens:,} tokens of {limits.tokens:,} (agents.defaults.subagents.maxTokens)"
    if limits.cost and cost > limits.cost:
        return f"it cost ${cost:.4f} of ${limits.cost:g} (agents.defaults.subagents.maxCostUsd)"
    return ""
