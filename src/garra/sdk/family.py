"""What a tool may do with sub-agents: start them, look after them, wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from garra.core.taint import CLEAN, Mark, Marks
from garra.core.value import frozen


@frozen
class Wanted:
    """A sub-agent that is asked for. Empty and None: as it is set. `timeout_s` 0 is no limit; `fork`: it knows the
    conversation so far; `forget`: its session is put away once it has reported.
    """

    task: str
    label: str = ""
    agent: str = ""
    model: str = ""
    thinking: str = ""
    timeout_s: float | None = None
    fork: bool = False
    forget: bool = False


@frozen
class Relative:
    """A sub-agent as its parent is shown it. Times in milliseconds since 1970, 0 where it is not that far."""

    run_id: str
    key: str
    label: str
    state: str
    outcome: str = ""
    agent: str = ""
    task: str = ""
    created_at: int = 0
    started_at: int = 0
    ended_at: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    report: str = ""
    note: str = ""


@frozen
class Said:
    """What was said in a session, as data, and whose words from outside are in it."""

    text: str
    marks: tuple[Mark, ...] = ()


class Family(Protocol):
    """The sub-agents of one session, as its own run may have them. Everything raises ToolFailed with a line for it.

    `which` names one: its number in `members` from 1, label, run id or session key, or the beginning of these.
    """

    def members(self) -> Sequence[Relative]:
        """Those of this session, newest first."""
        ...

    async def start(self, wanted: Wanted, marks: Marks = CLEAN) -> Relative:
        """Start one, which carries the caller's `marks` from its first word. It is on the disk when this returns, and
        its report will come as a message of its own.
        """
        ...

    async def rest(self, shown: str = "") -> Sequence[Relative]:
        """End this run after the call; the next report goes on with it. `shown` is told to whoever waits for an answer.
        Gives those who are still at work.
        """
        ...

    async def stop(self, which: str) -> Sequence[Relative]:
        """Stop one with all it has started, or `all`; no report comes of those."""
        ...

    async def steer(self, which: str, text: str, marks: Marks = CLEAN) -> Relative:
        """Say something to one that is at work."""
        ...

    async def log(self, which: str, limit: int, *, tools: bool = False) -> Said:
        """The last `limit` messages of one's session, a line each."""
        ...
