"""What may be spent: caps on tokens and dollars, how much of each is used up, and what is said of it.

A cap holds for one run, or for a person, a conversation, an agent or a job over a day, a month or for ever, or for all
of them together. It is looked at before each call to a model: the call that goes over it is the last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

from garra.core.messages import Usage
from garra.core.value import frozen

Scope = Literal["run", "session", "sender", "agent", "job", "day", "month"]
Span = Literal["run", "day", "month", "total"]

STEPS: Final = (50, 80, 100)
"""At how many per cent of a cap the owner is told, unless configured otherwise."""


@frozen
class Payer:
    """To whose account a call goes. `root` is the run that a person or a job began, of which `run` is a part or the
    whole; `sender` who asked, by the immutable id (`channel:account:id`), empty for the owner at his own screen.
    """

    run: str
    root: str
    session: str
    agent: str
    sender: str = ""
    job: str = ""


@frozen
class Used:
    """What was used. `unpriced` calls are counted in tokens alone: nobody knows their price."""

    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(self.tokens + other.tokens, self.cost + other.cost, self.unpriced + other.unpriced)

    def __sub__(self, other: Used) -> Used:
        return Used(self.tokens - other.tokens, self.cost - other.cost, self.unpriced - other.unpriced)


def used(usage: Usage, *, priced: bool) -> Used:
    return Used(usage.total, usage.cost if priced else 0.0, 0 if priced else 1)


@frozen
class Account:
    """What one cap counts: a scope, whom of it, and in which span. `period` is the day (`2026-11-30`), the month
    (`2026-11`), the run, or empty.
    """

    scope: Scope
    id: str
    span: Span
    period: str

    @property
    def name(self) -> str:
        return "\x1f".join((self.scope, self.id, self.period))


@frozen
class Cap:
    """At most so many tokens, and so many US dollars; 0: no cap. `key` is where it stands in the configuration."""

    account: Account
    tokens: int = 0
    cost: float = 0.0
    key: str = ""


@frozen
class Warned:
    """A word to the owner that is said once. `names` are the steps that are told with it; `over`: it is used up."""

    cap: Cap
    text: str
    names: tuple[str, ...]
    over: bool = False


@frozen
class Verdict:
    """`stop` is the line that ends the run; empty: it may go on."""

    stop: str = ""
    warnings: tuple[Warned, ...] = ()


FREE: Final = Verdict()


def judge(
    caps: Iterable[tuple[Cap, Used]],
    told: Collection[str] = (),
    *,
    steps: Sequence[int] = STEPS,
    zone: str = "",
    whole: bool = True,
) -> Verdict:
    """Whether the next call may be made, and what is to be told that was not `told`. `zone` names that of the days.

    `whole`: the line that ends the run says figures and settings, too; it is read by an owner.
    """
    stop, warnings = "", []
    for cap, spent in caps:
        per_cent = share(cap, spent)
        if per_cent >= 100 and not stop:
            stop = over(cap, spent, zone) if whole else closed(cap, zone)
        names = [f"{cap.account.name}\x1f{step}" for step in steps if per_cent >= step]
        if names and names[-1] not in told:
            text = over(cap, spent, zone) if per_cent >= 100 else near(cap, spent)
            warnings.append(Warned(cap, text, tuple(names), per_cent >= 100))
    return Verdict(stop, tuple(warnings))


def share(cap: Cap, spent: Used) -> int:
    """How many per cent of a cap are used up, of its tokens or its money, whichever is more; rounded down."""
    tokens = spent.tokens * 100 // cap.tokens if cap.tokens else 0
    money = int(spent.cost * 100 / cap.cost + 1e-9) if cap.cost else 0
    return max(tokens, money)


def near(cap: Cap, spent: Used) -> str:
    """What the owner is told before anything stops."""
    return f"{share(cap, spent)} % of the budget for {_whom(cap.account)} is used: {_figures(cap, spent)} ({cap.key})."


def over(cap: Cap, spent: Used, zone: str = "") -> str:
    """The line that ends a run: which cap, how much, until when, how to raise it."""
    what = "maxTokens" if cap.tokens and spent.tokens >= cap.tokens else "maxCostUsd"
    until = _until(cap.account, zone)
    return (
        f"Stopped: the budget for {_whom(cap.account)} is used up ({_figures(cap, spent)}). {until}. "
        f"To raise it: garra config set {cap.key}.{what} NUMBER"
    )


def closed(cap: Cap, zone: str = "") -> str:
    """The line that ends a run, for somebody who is no owner."""
    return f"Stopped: the budget for {_whom(cap.account)} is used up. {_until(cap.account, zone)}."


def _figures(cap: Cap, spent: Used) -> str:
    parts = []
    if cap.tokens:
        parts.append(f"{spent.tokens:,} of {cap.tokens:,} tokens")
    if cap.cost:
        parts.append(f"{dollars(spent.cost)} of {dollars(cap.cost)}")
        if spent.unpriced:
            parts.append(
                f"{spent.unpriced:,} call{'s' if spent.unpriced > 1 else ''} without a known price not counted"
            )
    return ", ".join(parts)


def dollars(amount: float) -> str:
    """`$0.0042`, `$12.30`: small sums in more digits."""
    return f"${amount:.2f}" if amount >= 1 or amount == 0 else f"${amount:.4f}"


def _whom(account: Account) -> str:
    over_time = {"run": "", "day": " today", "month": " this month", "total": " as a whole"}[account.span]
    match account.scope:
        case "run":
            return "one run"
        case "day":
            return "today"
        case "month":
            return "this month"
        case "session":
            return f"this conversation{over_time}"
        case "sender":
            return f"{account.id or 'the owner at the screen'}{over_time}"
        case _:
            return f"the {account.scope} {account.id}{over_time}"


def _until(account: Account, zone: str) -> str:
    place = f" ({zone})" if zone else ""
    match account.span:
        case "run":
            return "The next message begins a new run"
        case "day":
            return f"It is free again when {account.period} is over{place}"
        case "month":
            return f"It is free again when the month {account.period} is over{place}"
        case _:
            return "It stays so until it is raised"
