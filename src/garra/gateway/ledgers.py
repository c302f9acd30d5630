"""What was asked already: the same key twice is one run, also at once, also after a restart.

A key is claimed before anything is awaited, so two equal requests cannot both begin. Claims are kept while their run
goes on and for five minutes after; what is older, or from before a restart, is found in the transcript, where each
message carries the key it came with.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from garra.core.errors import Conflict
from garra.core.messages import Message, User
from garra.core.value import record

LIFE_S = 300.0
LIMIT = 1000
SLACK = 100
PRUNE_S = 10.0
SESSIONS = 256


def digest(*parts: Any) -> str:
    """What a request asked for, to tell a repeat from another request with the same key."""
    return hashlib.sha256("\x00".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()


def user_key(run_id: str) -> str:
    """The key under which the message that started `run_id` is stored."""
    return f"{run_id}:user"


@record
class Claim:
    """One key in use. `done` is when its work ended (monotonic seconds), `answer` what was answered then; `over` is set
    when there is an answer, or never will be.
    """

    key: str
    digest: str
    done: float | None = None
    answer: Any = None
    over: asyncio.Event = field(default_factory=asyncio.Event)


class Ledger:
    """Claims by key, at most `LIMIT` ended ones. `reason` is what a conflict is called on the wire."""

    def __init__(self, now: Callable[[], float], reason: str) -> None:
        self._now = now
        self._reason = reason
        self._pruned = now()
        self._claims: OrderedDict[str, Claim] = OrderedDict()

    def claim(self, key: str, asked: str) -> tuple[Claim, bool]:
        """The claim of `key`, and whether it is new. Raises Conflict when the key was used for something else."""
        self._prune()
        known = self._claims.get(key)
        if known is None:
            known = self._claims[key] = Claim(key, asked)
            return known, True
        if known.digest != asked:
            raise conflict(self._reason)
        return known, False

    def release(self, claim: Claim) -> None:
        """Nothing came of it: the key is free again."""
        self._claims.pop(claim.key, None)
        claim.over.set()

    def settle(self, claim: Claim, answer: Any = None) -> None:
        """Its work ended."""
        claim.answer, claim.done = answer, self._now()
        claim.over.set()

    def end(self, key: str) -> None:
        """The run of `key` ended, if it is one of ours."""
        if (claim := self._claims.get(key)) and claim.done is None:
            claim.done = self._now()

    def __len__(self) -> int:
        return len(self._claims)

    def _prune(self) -> None:
        now = self._now()
        if now - self._pruned < PRUNE_S and len(self._claims) <= LIMIT + SLACK:
            return
        self._pruned = now
        limit, spare = now - LIFE_S, len(self._claims) - LIMIT
        ended = [(key, claim.done) for key, claim in self._claims.items() if claim.done is not None]
        for at, (key, done) in enumerate(ended):
            if at < spare or done < limit:
                del self._claims[key]


def conflict(reason: str) -> Conflict:
    """The error for a key that was used for another request."""
    return Conflict("idempotencyKey was already used for a different request", details={"reason": reason})


class Keys:
    """Keys of stored messages by session; each message is looked at once."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[int, dict[str, str]]] = OrderedDict()

    def find(self, session_id: str, messages: Sequence[Message], key: str) -> str | None:
        """The digest of the text stored under `key`, if `messages`, the session's so far, hold it."""
        seen, keys = self._sessions.pop(session_id, (0, {}))
        if seen > len(messages):
            seen, keys = 0, {}
        for message in messages[seen:]:
            if isinstance(message, User) and isinstance(stored := message.meta.get("idempotencyKey"), str):
                keys[stored] = digest(message.text)
        self._sessions[session_id] = (len(messages), keys)
        if len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return keys.get(key)


@dataclass(frozen=True, slots=True)
class Ledgers:
    """The ledgers of one gateway; `now` gives monotonic seconds."""

    now: Callable[[], float]
    chat: Ledger = field(init=False)
    agent: Ledger = field(init=False)
    other: Ledger = field(init=False)
    keys: Keys = field(default_factory=Keys)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chat", Ledger(self.now, "chat-request-conflict"))
        object.__setattr__(self, "agent", Ledger(self.now, "agent-request-conflict"))
        object.__setattr__(self, "other", Ledger(self.now, "request-conflict"))
