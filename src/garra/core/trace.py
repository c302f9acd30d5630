"""When each step of a run began and ended: what is kept of a turn to look at later. No words of a message are in it.

All times are milliseconds since 1970; 0 stands for what has not happened. `core.waterfall` draws it.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from garra.core.messages import Usage
from garra.core.value import frozen, record

MOST: Final = 400
"""Steps of one kind that are kept of one run."""


@frozen
class Request:
    """One request to a model, by one login. `first` is when the first sign of an answer came; `result` is `success` or
    the failure's kind, `level` what led to it (`core.failover.Level`), `waited` the milliseconds before it.
    """

    began: int
    ended: int
    provider: str
    model: str
    result: str
    first: int = 0
    level: str = "first"
    status: int | None = None
    waited: int = 0
    usage: Usage = Usage()


@record
class Step:
    """Something that began and may have ended. `name` and `kind` say what; `result` how it went, `call` is the tool
    call it belongs to; `before` and `after` are tokens, of a history that was made smaller.
    """

    name: str
    began: int
    ended: int = 0
    call: str = ""
    kind: str = ""
    result: str = ""
    before: int = 0
    after: int = 0


@record
class Marks:
    """One run. `phases` name what it did from when on; `ending` is empty while it runs, `failure` why it failed."""

    accepted: int
    phases: list[tuple[str, int]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    tools: list[Step] = field(default_factory=list)
    asked: list[Step] = field(default_factory=list)
    compactions: list[Step] = field(default_factory=list)
    ended: int = 0
    ending: str = ""
    failure: str = ""
    left_out: int = 0
    """Steps for which there was no room."""
