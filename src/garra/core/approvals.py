"""What a person is asked before something is done, what he may answer, and what becomes of each question.

One question is one `Approval`; `step` moves it. It is registered before anybody is told of it, decided once, and what
was decided holds for one doing of exactly what was asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal, assert_never

from garra.core.execrules import Entry
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen

Choice = Literal["allow-once", "allow-always", "deny"]
Kind = Literal["exec", "tool", "egress"]

LIFE_MS = 1_800_000
"""How long a question waits for its answer."""
CHOICES: Final[tuple[Choice, ...]] = ("allow-once", "allow-always", "deny")


@frozen
class Question:
    """One thing that needs a person's yes.

    `subject` is shown whole: the command, or the tool with its arguments, or the host that is to be reached. `bound`
    is a hash of all that the answer holds for; who acts on the answer computes it again first. `remembers` says in
    words what `allow-always` will let pass from then on; it is empty where that is not among the `choices`. `why` are
    the reasons to ask, a line each. `requester` is the immutable id of whoever asked for the turn, namespaced as
    `channel:account:id`; empty for the owner at his own screen. `argv`, `cwd`, `host`, `env` (names only) are of kind
    exec. `fallback` is what holds when nobody answers in time.

    What `allow-always` lets pass is what `remembers` says: of kind exec the `entries`, which are added to the agent's
    allowlist (`execrules.with_entry` for each); of the other kinds `covers`, a name (such as
    `host:api.example.com:web`) that a grant for this agent is kept under, for `always_ms` (0: until it is revoked).
    With `once_ms`, `allow-once` holds for what `covers` names for so long, too. `tool` names the tool that is called.
    """

    kind: Kind
    subject: str
    bound: str
    session_key: SessionKey
    agent_id: AgentId
    run_id: RunId
    call_id: str
    choices: tuple[Choice, ...] = ("allow-once", "deny")
    remembers: str = ""
    why: tuple[str, ...] = ()
    requester: str = ""
    argv: tuple[str, ...] = ()
    cwd: str = ""
    host: str = ""
    env: tuple[str, ...] = ()
    fallback: Choice = "deny"
    life_ms: int = LIFE_MS
    entries: tuple[Entry, ...] = ()
    covers: str = ""
    always_ms: int = 0
    once_ms: int = 0
    tool: str = ""


@frozen
class Answer:
    """What was said. `by` names who said it; `reason` is what the model reads when it is no."""

    choice: Choice
    by: str = ""
    reason: str = ""

    @property
    def allowed(self) -> bool:
        return self.choice != "deny"


@frozen
class Source:
    """Where the turn was asked for: a chat, with the sender's id, or nowhere but here (`channel` empty).

    `unattended`: nobody waits for it, such as a job; then no chat is asked.
    """

    channel: str = ""
    account: str = ""
    chat: str = ""
    thread: str = ""
    parent: str = ""
    guild: str = ""
    sender: str = ""
    direct: bool = True
    unattended: bool = False


Phase = Literal["registering", "pending", "allowed", "denied", "expired", "withdrawn"]


@frozen
class Approval:
    """One question with what became of it; times are milliseconds since 1970.

    `early` was decided before it was registered. `waited`: whoever asked is still there, in this process; after a
    restart nobody is, until the very same thing is asked again. `used`: its yes or no was acted upon.
    """

    id: str
    question: Question
    asked_at: int
    source: Source = Source()
    phase: Phase = "registering"
    early: Answer | None = None
    answer: Answer | None = None
    ended_at: int = 0
    waited: bool = True
    used: bool = False

    @property
    def expires_at(self) -> int:
        return self.asked_at + self.question.life_ms

    @property
    def open(self) -> bool:
        return self.phase in ("registering", "pending")


@frozen
class Registered:
    """It is on the disk."""

    at: int


@frozen
class Decided:
    """A person who may decide it did. `reason` may be given with a no."""

    choice: Choice
    by: str
    at: int
    reason: str = ""


@frozen
class Passed:
    """It is now `at`."""

    at: int


@frozen
class Withdrawn:
    """Who asked needs no answer any more."""

    at: int


@frozen
class Restarted:
    """The process that asked is gone."""


@frozen
class Asked:
    """The very same thing is asked again, by a run that goes on after a restart."""

    question: Question
    at: int


@frozen
class Unheard:
    """There is nobody who could be asked. `reason` is what the model reads."""

    at: int
    reason: str


Event = Registered | Decided | Passed | Withdrawn | Restarted | Asked | Unheard


@frozen
class Store:
    """Write the new state; what follows waits for it."""


@frozen
class Announce:
    """Tell everybody who may answer."""


@frozen
class Resolve:
    """It has ended: tell everybody, and whoever waits."""

    answer: Answer


@frozen
class Give:
    """It was answered before; the one who asks again is told, and nobody else."""

    answer: Answer


@frozen
class Accepted:
    """What the person who decides is told. `again`: it was decided so before."""

    again: bool = False


@frozen
class Refused:
    """What the person who decides is told instead; `reason` is a word for programs."""

    reason: Literal["resolved", "expired", "withdrawn", "not-offered"]
    words: str


Effect = Store | Announce | Resolve | Give | Accepted | Refused

Step = tuple[Approval, tuple[Effect, ...]]

EXPIRED = "nobody answered in time"
DENIED = "the person who was asked said no"


def step(approval: Approval, event: Event) -> Step:
    """What becomes of one question."""
    match event:
        case Registered(at):
            return _registered(approval, at)
        case Decided():
            return _decided(approval, event)
        case Passed(at):
            return _passed(approval, at)
        case Withdrawn(at):
            if not approval.open:
                return approval, ()
            return _end(approval, "withdrawn", Answer("deny", reason="it was taken back"), at)
        case Restarted():
            return replace(approval, waited=False, phase="pending" if approval.open else approval.phase), ()
        case Asked(question, at):
            return _again(approval, question, at)
        case Unheard(at, reason):
            fallback = Answer(approval.question.fallback, by="askFallback", reason=reason)
            return _answered(approval, fallback, at) if approval.open else (approval, ())
        case _:
            assert_never(event)


def _registered(approval: Approval, at: int) -> Step:
    if approval.phase != "registering":
        return approval, ()
    ready = replace(approval, phase="pending", early=None)
    if approval.early is None:
        return ready, (Announce(),)
    ended, effects = _answered(ready, approval.early, at)
    return ended, (Announce(), *effects)


def _decided(approval: Approval, event: Decided) -> Step:
    answer = Answer(event.choice, event.by, event.reason or ("" if event.choice != "deny" else DENIED))
    standing = approval.early or approval.answer
    if standing is not None and approval.phase in ("registering", "allowed", "denied"):
        if standing.choice == event.choice:
            return approval, (Accepted(again=True),)
        return approval, (Refused("resolved", f"It is handled already: {said(standing)}."),)
    if approval.phase == "withdrawn":
        return approval, (Refused("withdrawn", "It is not needed any more: whoever asked has stopped."),)
    if approval.phase == "expired" or event.at >= approval.expires_at:
        ended, effects = _passed(approval, event.at)
        return ended, (*effects, Refused("expired", "Too late: the question has expired."))
    if event.choice not in approval.question.choices:
        offered = ", ".join(approval.question.choices)
        return approval, (Refused("not-offered", f"{event.choice} is not offered here; there is {offered}."),)
    if approval.phase == "registering":
        return replace(approval, early=answer), (Accepted(),)
    ended, effects = _answered(approval, answer, event.at)
    return ended, (*effects, Accepted())


def _answered(approval: Approval, answer: Answer, at: int) -> Step:
    return _end(approval, "allowed" if answer.allowed else "denied", answer, at)


def _end(approval: Approval, phase: Phase, answer: Answer, at: int) -> Step:
    ended = replace(approval, phase=phase, answer=answer, ended_at=at, used=approval.waited)
    return ended, (Store(), Resolve(answer))


def _passed(approval: Approval, at: int) -> Step:
    """Too late for an answer; a yes that nobody has acted upon is worth nothing either."""
    if at < approval.expires_at:
        return approval, ()
    if approval.open:
        fallback = approval.question.fallback
        return _end(approval, "expired", Answer(fallback, by="askFallback", reason=EXPIRED), at)
    if not approval.used:
        return replace(approval, used=True), (Store(),)
    return approval, ()


def _again(approval: Approval, question: Question, at: int) -> Step:
    """Asked once more after a restart: join it while it is open, take its answer once if it was given meanwhile."""
    approval, effects = _passed(approval, at)
    if approval.waited or approval.used or not same(approval.question, question):
        return approval, effects
    if approval.open:
        return replace(approval, waited=True, question=_moved(approval.question, question)), (Store(),)
    assert approval.answer is not None
    return replace(approval, used=True), (Store(), Give(approval.answer))


def _moved(question: Question, again: Question) -> Question:
    return replace(question, run_id=again.run_id, call_id=again.call_id)


def same(one: Question, other: Question) -> bool:
    """Whether an answer to the one is an answer to the other: the same thing, for the same session and requester."""
    return bool(one.bound) and _face(one) == _face(other)


def _face(question: Question) -> tuple[str, ...]:
    return question.kind, question.bound, question.session_key, question.agent_id, question.requester, question.subject


def said(answer: Answer) -> str:
    """An answer in words."""
    words = {"allow-once": "allowed once", "allow-always": "allowed always", "deny": "denied"}[answer.choice]
    return f"{words} by {called(answer.by)}" if answer.by else words


def called(by: str) -> str:
    """Who answered, as people call them: a client is known to them by what it is."""
    return {"openclaw-tui": "the terminal chat", "cli": "the command line"}.get(by, by)


def doing(kind: str, tool: str = "") -> str:
    """What is asked about, as the words before it."""
    if kind == "exec":
        return "run this command"
    return f"use {tool}" if tool else "reach this host from its sandbox" if kind == "egress" else "do this"


def short(name: str) -> str:
    """An approval's id as it is written in a chat: its first eight characters, where that is enough to find it."""
    return name[:8]


def alike(name: str, others: Iterable[str]) -> str:
    """One of `others` that people could take this id for, since they write the beginning of it; empty for none."""
    lead = short(name)
    return next((each for each in others if each != name and (each.startswith(lead) or lead.startswith(each))), "")
