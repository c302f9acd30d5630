"""What is on its way in or out: the states of a message, and what a failed send means.

In: pending (stored) → claimed (the kernel has it) → adopted (a run has it) → done, or dead. Out: pending → sending →
sent, or unsure (it may have arrived), or dead (it never will, and the owner is told). A dead message waits for its
owner, who retries or drops it. What was not on disk as sent when the process died was perhaps sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2s
from typing import Final, Literal, assert_never

from garra.core.value import frozen

InboxState = Literal["pending", "claimed", "adopted", "done", "dead"]
InboxMove = Literal["claim", "adopt", "finish", "bury", "release", "retry", "drop"]
OutboxState = Literal["pending", "sending", "sent", "unsure", "dead"]
OutboxMove = Literal["claim", "confirm", "release", "doubt", "bury", "retry", "drop"]


INBOX_MOVES: Final[Mapping[InboxMove, Mapping[InboxState, InboxState]]] = {
    "claim": {"pending": "claimed"},
    "adopt": {"pending": "adopted", "claimed": "adopted", "adopted": "adopted"},
    "finish": {"pending": "done", "claimed": "done", "adopted": "done"},
    "bury": {"pending": "dead", "claimed": "dead", "adopted": "dead"},
    "release": {"claimed": "pending", "adopted": "pending"},
    "retry": {"dead": "pending"},
    "drop": {"pending": "done", "dead": "done"},
}
"""What each move makes of each state; a pair that is not here does not happen."""

OUTBOX_MOVES: Final[Mapping[OutboxMove, Mapping[OutboxState, OutboxState]]] = {
    "claim": {"pending": "sending"},
    "confirm": {"sending": "sent", "unsure": "sent"},
    "release": {"sending": "pending"},
    "doubt": {"sending": "unsure"},
    "bury": {"pending": "dead", "sending": "dead"},
    "retry": {"unsure": "pending", "dead": "pending"},
    "drop": {"pending": "dead", "unsure": "dead", "dead": "dead"},
}

OPEN_IN: Final[frozenset[InboxState]] = frozenset({"pending", "claimed", "adopted"})
OPEN_OUT: Final[frozenset[OutboxState]] = frozenset({"pending", "sending"})

FIRST_WAIT_MS = 1_000
LONGEST_WAIT_MS = 600_000
TRIES = 30
"""Tries that a passing fault may cost (about four hours with the link up); a platform's own "later" costs none."""

Fault = Literal["passing", "unsure", "refused", "format", "too_long", "auth", "gone", "too_large"]
"""As `sdk.channel.Fault`."""


@frozen
class Sending:
    """What of a message in hand decides about its failure. `tries` were made before this one.

    `forms` counts the formats of its ladder and `stage` is the one just tried, from 0. `idempotent`: the platform knows
    a repeated key. `pieces`: its text can still be cut in two.
    """

    tries: int = 0
    stage: int = 0
    forms: int = 1
    files: int = 0
    idempotent: bool = False
    pieces: bool = True


@frozen
class Again:
    """Surely not delivered: try again at `at_ms`; `tries` is the new count."""

    at_ms: int
    tries: int


@frozen
class Degrade:
    """Try its next format, at once."""

    stage: int


@frozen
class Split:
    """Cut its text and send the parts in its place."""


@frozen
class Unload:
    """Its files are too large: say so in words, with a link where there is one, and send that."""


@frozen
class Hold:
    """It keeps until the account works again; no try was burned."""


@frozen
class Doubt:
    """It may have arrived, so it is never sent again by itself."""


@frozen
class Dead:
    """It will not arrive; the owner is told."""

    reason: str


Effect = Again | Degrade | Split | Unload | Hold | Doubt | Dead

_FINAL: Final[Mapping[str, str]] = {
    "refused": "the platform refused it",
    "gone": "the chat is gone, or the bot is no longer in it",
    "format": "the platform refused each of its formats",
    "too_long": "it is over the platform's limit and cannot be cut",
    "too_large": "it is over the platform's limit for files",
}


def fail(row: Sending, fault: Fault, now_ms: int, retry_after_s: float | None = None) -> Effect:
    """What follows from a send that ended in `fault`. `retry_after_s` is the platform's own word on when."""
    match fault:
        case "passing":
            return _later(row, now_ms, retry_after_s)
        case "unsure":
            return _later(row, now_ms, retry_after_s) if row.idempotent else Doubt()
        case "format" if row.stage + 1 < row.forms:
            return Degrade(row.stage + 1)
        case "too_long" if row.stage + 1 < row.forms:
            return Degrade(row.forms - 1)
        case "too_long" if row.pieces:
            return Split()
        case "too_large" if row.files:
            return Unload()
        case "auth":
            return Hold()
        case "refused" | "gone" | "format" | "too_long" | "too_large":
            return Dead(_FINAL[fault])
        case _:
            assert_never(fault)


def _later(row: Sending, now_ms: int, retry_after_s: float | None) -> Effect:
    if retry_after_s is not None:
        return Again(now_ms + max(0, round(retry_after_s * 1000)), row.tries)
    if row.tries + 1 >= TRIES:
        return Dead(f"{TRIES} tries failed")
    return Again(now_ms + backoff(row.tries), row.tries + 1)


def backoff(tries: int) -> int:
    """Milliseconds to wait after the try that followed `tries` others: doubled each time, up to ten minutes."""
    return min(LONGEST_WAIT_MS, FIRST_WAIT_MS << min(tries, 20))


def waking(state: InboxState) -> InboxState:
    """What a restart makes of a message in: the kernel that had claimed it is gone; what a run adopted is resumed."""
    return "pending" if state == "claimed" else state


def resumed(state: OutboxState, *, idempotent: bool) -> OutboxState:
    """What a restart makes of a message out: one in the middle of being sent may have arrived."""
    if state == "sending" or (state == "unsure" and idempotent):
        return "pending" if idempotent else "unsure"
    return state


@frozen
class Waiting:
    """One message of a full queue. `own`: the bot said it itself; `sender` is who said it, by id."""

    id: str
    own: bool
    sender: str = ""


def evicted(queue: Sequence[Waiting], cap: int) -> tuple[str, ...]:
    """Which of `queue`, oldest first, go when only `cap` may stay: the bot's own first, oldest first, then each time
    the oldest of whoever has most waiting. So one who floods a chat pushes out nobody but themselves.
    """
    over = len(queue) - cap
    if over <= 0:
        return ()
    gone = [waiting.id for waiting in queue if waiting.own][:over]
    people: dict[str, list[tuple[int, str]]] = {}
    for place, waiting in enumerate(queue):
        if not waiting.own:
            people.setdefault(waiting.sender, []).append((place, waiting.id))
    while len(gone) < over:
        loudest = max(people.values(), key=lambda waits: (len(waits), -waits[0][0] if waits else 0))
        gone.append(loudest.pop(0)[1])
    return tuple(gone)


_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"


def name(at_ms: int, *once: str) -> str:
    """A message's id, such as `m1k9x0q3f8-9f2c41d07a`: when it came, then a digest of what makes it the only one."""
    digits = ""
    while at_ms:
        at_ms, digit = divmod(at_ms, 32)
        digits = _DIGITS[digit] + digits
    digest = blake2s("\0".join(once).encode("utf-8", "replace"), digest_size=5).hexdigest()
    return f"m{digits or '0'}-{digest}"
