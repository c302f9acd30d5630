"""What a tool implements, and what it is given.

A tool sees its arguments, already checked against its schema, and a `ToolContext`: the workspace through the one
file door, programs through the one process door. It never sees a secret, a session of somebody else, or the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol, runtime_checkable

from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.messages import Content, Text
from garra.core.taint import CLEAN, Mark, Marks
from garra.core.value import frozen
from garra.sdk.family import Family
from garra.sdk.ports import Clock, Exec, Files, Grants

Origin = Literal["local", "operator", "channel", "subagent", "job"]
Effect = Literal["sends", "runs", "remembers", "schedules", "configures"]
"""What a tool changes beyond the workspace: it sends something to somebody else, runs programs, writes memory or
skills, makes jobs, changes the configuration. A turn that has read text from outside needs a person's yes for it."""
Source = Literal["core", "shell", "channel", "openclaw", "plugin", "search"]


@frozen
class Result:
    """What a tool answers: `content` for the model, `details` (JSON) for people and programs only.

    `marks` tell which of it is text from outside: the turn that reads it carries them from then on.
    """

    content: Content
    details: Any = None
    marks: tuple[Mark, ...] = ()

    @classmethod
    def of(cls, text: str, details: Any = None, marks: tuple[Mark, ...] = ()) -> Result:
        return cls((Text(text),), details, marks)


@frozen
class ToolContext:
    """Where a call happens and what it may use. `requester` is the immutable id (`channel:account:id`) of whoever asked
    for the turn; empty for the owner at his own screen. `marks` tell what text from outside the turn has read; `seen`
    whether an address stands in what the turn was asked or has read: one that it did not make up carries no secret out.
    """

    agent_id: AgentId
    session_key: SessionKey
    run_id: RunId
    origin: Origin
    files: Files
    exec: Exec
    clock: Clock
    grants: Grants
    time_zone: str = "UTC"
    requester: str = ""
    marks: Marks = CLEAN
    seen: Callable[[str], bool] = lambda address: False
    family: Family | None = None
    model: str = ""
    """The model that calls, as `provider/id`; empty where a person or a program does."""


@frozen
class Call:
    """One call: `arguments` fit the tool's schema."""

    id: str
    arguments: Mapping[str, Any]
    context: ToolContext


Update = Callable[[str], None]
"""Shows a running tool's text so far; may be called often, from the loop's thread."""


@frozen
class ToolInfo:
    """A tool's face. `parameters` is a JSON Schema object with `additionalProperties: false`.

    `mode` sequential makes a whole batch of calls run one after another. `hidden` keeps it out of a chat's progress
    lines. `description` is paid for in every request: short.

    `effects` are all it may change beyond the workspace. `declared`: of a plugin's tool, that `effects` and the `marks`
    of its results tell all; without it, whatever it answers is text from outside, and each call of it sends something.
    """

    name: str
    label: str
    description: str
    parameters: Mapping[str, Any]
    mode: Literal["parallel", "sequential"] = "parallel"
    hidden: bool = False
    source: Source = "core"
    groups: tuple[str, ...] = field(default=())
    effects: tuple[Effect, ...] = field(default=())
    declared: bool = False


class Tool(Protocol):
    """One tool."""

    info: ToolInfo

    async def execute(self, call: Call, update: Update) -> Result:
        """Do it. Cancelling the task stops it, with everything it started in the foreground.

        Raises ToolFailed with a line that the model can act on; any other exception is reported as a fault of ours.
        Where that line holds text from outside, the error's `details["marks"]` are its marks.
        """
        ...


@runtime_checkable
class Prepares(Protocol):
    """A tool that mends a model's usual slips before its arguments are checked (a name of old, a list as text)."""

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]: ...


@runtime_checkable
class Shows(Protocol):
    """A tool that says better than its bare arguments what a person is asked for (a diff, a recipient, a text)."""

    async def show(self, call: Call) -> str:
        """The whole of it, in plain text; nothing that matters is left out. Raises ToolFailed as `execute` would."""
        ...


@runtime_checkable
class Affects(Protocol):
    """A tool of whose effects a call may have fewer, or none."""

    async def affects(self, call: Call) -> tuple[Effect, ...]:
        """Those of this very call, among `info.effects`. Raises ToolFailed as `execute` would."""
        ...
