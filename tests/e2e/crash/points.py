"""The points where a process is killed: before or after a step of the path from the platform to the platform."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, Literal

from garra.core.value import frozen


@frozen
class Point:
    """`step` is `module:Class.method` or `module:function`; the process dies at the `nth` time it comes by."""

    step: str
    when: Literal["before", "after"]
    nth: int = 1


INBOX = "garra.domains.delivery.inbox:Inbox"
OUTBOX = "garra.domains.delivery.outbox:Outbox"
TELEGRAM = "garra.builtin.channels.telegram.channel:Telegram.send"
TOOL = "garra.domains.tools.pipeline:Pipeline.call"
STORED = "garra.domains.sessions.transcript:Transcript.append"

POINTS = {
    "before-store": Point(f"{INBOX}.accept", "before"),
    "after-store": Point(f"{INBOX}.accept", "after"),
    "between-two-stores": Point(f"{INBOX}.accept", "after", 3),
    "after-claim": Point(f"{INBOX}.claim", "after"),
    "after-adopt": Point(f"{INBOX}.adopt", "after"),
    "after-prompt-stored": Point(STORED, "after"),
    "mid-stream": Point("garra.sdk.stream:Stream.push", "before", 6),
    "before-tool": Point(TOOL, "before"),
    "between-call-and-result": Point(TOOL, "after"),
    "after-second-append": Point(STORED, "after", 2),
    "after-third-append": Point(STORED, "after", 3),
    "after-eighth-append": Point(STORED, "after", 8),
    "before-outbox": Point(f"{OUTBOX}.put", "before"),
    "after-outbox": Point(f"{OUTBOX}.put", "after"),
    "before-claim-to-send": Point(f"{OUTBOX}.claim", "before"),
    "after-sent-mark": Point(f"{OUTBOX}.sent", "after"),
}
"""Here nothing was with the platform: each message is answered once, whatever the platform takes."""

DOUBTS = {
    "after-claim-to-send": Point(f"{OUTBOX}.claim", "after"),
    "before-send": Point(TELEGRAM, "before"),
    "after-send-before-mark": Point(TELEGRAM, "after"),
    "before-sent-mark": Point(f"{OUTBOX}.sent", "before"),
}
"""Here a message may have been with a platform that tells no two tries apart: never twice, and its owner is told."""


CHILD = "garra.domains.subagents.records:Records.put"
REPORT = "garra.turns.reports"
SMALLER = {
    "before-summary": Point("garra.runs.summariser:Summariser.sum_up", "before"),
    "after-summary": Point("garra.runs.summariser:Summariser.sum_up", "after"),
    "before-cut": Point("garra.domains.sessions.transcript:Transcript.note", "before"),
    "after-cut": Point("garra.domains.sessions.transcript:Transcript.note", "after"),
    "before-count": Point("garra.runs.compaction:Gauge._count", "before"),
}
"""Around the line that makes a history smaller."""

KIN = {
    "before-child-stored": Point(CHILD, "before"),
    "after-child-stored": Point(CHILD, "after"),
    "as-child-begins": Point(CHILD, "after", 2),
    "child-at-work": Point("garra.runs.subagents:Subagents._check", "before"),
    "before-report-stored": Point(CHILD, "before", 3),
    "after-report-stored": Point(CHILD, "after", 3),
    "before-report-given": Point(f"{REPORT}:Post.give", "before"),
    "after-report-given": Point(f"{REPORT}:Post.give", "after"),
    "after-parent-told": Point(CHILD, "after", 4),
    "before-report-turn": Point(f"{REPORT}:Reports._begin", "before"),
    "as-report-turn-begins": Point(f"{REPORT}:Reports._begin", "after"),
    "before-report-answered": Point(f"{OUTBOX}.put", "before", 2),
    "after-report-answered": Point(f"{OUTBOX}.put", "after", 2),
}
"""Along the way of a sub-agent: it is started once or started again by its parent, and its report is answered once."""


def arm(point: Point) -> None:
    """Make this process die at `point`, by SIGKILL."""
    module, _, path = point.step.partition(":")
    owner: Any = importlib.import_module(module)
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    setattr(owner, name, doomed(getattr(owner, name), point, itertools.count(1)))


def doomed(step: Callable[..., Any], point: Point, times: Iterator[int]) -> Callable[..., Any]:
    """`step`, with the end of the process in front of it or behind it."""

    def die(when: str) -> None:
        if when == point.when and next(times) == point.nth:
            os.kill(os.getpid(), signal.SIGKILL)

    if not inspect.iscoroutinefunction(step):

        @functools.wraps(step)
        def plain(*args: Any, **kwargs: Any) -> Any:
            die("before")
            result = step(*args, **kwargs)
            die("after")
            return result

        return plain

    @functools.wraps(step)
    async def waited(*args: Any, **kwargs: Any) -> Any:
        die("before")
        result = await step(*args, **kwargs)
        die("after")
        return result

    return waited
