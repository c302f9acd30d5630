"""What happens while an agent works, as values.

Three levels: `StreamEvent` is one model answer arriving; `AgentEvent` is the loop; `RunEvent` is one run as its
watchers (gateway, chat, terminal) see it, numbered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from garra.core.errors import Failure
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Assistant, Message, ToolCall, ToolResult
from garra.core.value import frozen


@frozen
class TextDelta:
    """More words of part `index`."""

    index: int
    delta: str


@frozen
class ThinkingDelta:
    """More thought of part `index`."""

    index: int
    delta: str


@frozen
class CallDelta:
    """More JSON of the arguments of tool call `id`; `name` is known from the first one on."""

    index: int
    id: str
    name: str
    delta: str


@frozen
class Done:
    """The answer is whole."""

    message: Assistant


@frozen
class Failed:
    """The answer failed. `message` (stop `error` or `aborted`) holds what had arrived, for the transcript."""

    message: Assistant
    failure: Failure


StreamEvent = TextDelta | ThinkingDelta | CallDelta | Done | Failed


@frozen
class AgentStarted:
    """The loop begins."""


@frozen
class TurnStarted:
    """One model answer and the tools it asks for begin."""


@frozen
class MessageStarted:
    """A message begins: whole for users and tools, empty for an assistant."""

    message: Message


@frozen
class MessageUpdated:
    """An assistant's message grew; `text` is all visible words so far."""

    delta: TextDelta | ThinkingDelta | CallDelta
    text: str


@frozen
class MessageEnded:
    """A message is whole. It is stored before the event is acted upon."""

    message: Message


@frozen
class ToolStarted:
    """A tool begins. `hidden`: it is kept out of the lines that show progress."""

    call: ToolCall
    hidden: bool = False


@frozen
class ToolUpdated:
    """A running tool has something to show; `partial` is cumulative text."""

    call: ToolCall
    partial: str
    hidden: bool = False


@frozen
class ToolEnded:
    """A tool ended, well or badly."""

    call: ToolCall
    result: ToolResult
    duration_ms: int
    hidden: bool = False


@frozen
class TurnEnded:
    """One model answer and its tools ended."""

    message: Assistant
    results: tuple[ToolResult, ...]


@frozen
class AgentEnded:
    """The loop ended. `failure` is why, when it was not by itself."""

    messages: tuple[Message, ...]
    failure: Failure | None


AgentEvent = (
    AgentStarted
    | TurnStarted
    | MessageStarted
    | MessageUpdated
    | MessageEnded
    | ToolStarted
    | ToolUpdated
    | ToolEnded
    | TurnEnded
    | AgentEnded
)

Phase = Literal["preparing_workspace", "preparing_context", "starting_model"]
Ending = Literal["ok", "error", "aborted", "timeout"]


@frozen
class RunPhase:
    """What a run does before its model speaks."""

    phase: Phase


@frozen
class ModelChosen:
    """Which model answers from here on."""

    provider: str
    model: str


@frozen
class EntryStored:
    """A transcript entry is on disk; `entry` is its stored JSON form."""

    entry: Mapping[str, Any]


@frozen
class Compacting:
    """A history is being made smaller (`start`), or that has ended. `step` is what was done: `trim`, `cut`, `drop`, or
    empty where nothing was; `before` and `after` are tokens, estimated. `why`: `threshold`, `overflow`, `manual`.
    """

    phase: Literal["start", "end"]
    why: str
    step: str = ""
    before: int = 0
    after: int = 0


@frozen
class Noticed:
    """One line for the person that no model said."""

    text: str


@frozen
class PersonAsked:
    """A tool call waits for a person: `approval` is the question's id, `subject` what is asked, whole."""

    approval: str
    call_id: str
    kind: str
    subject: str


@frozen
class PersonAnswered:
    """The question has ended, by an answer or without one."""

    approval: str
    call_id: str
    kind: str
    subject: str
    allowed: bool


@frozen
class RunEnded:
    """A run ended in exactly one of: a reply, a declared silence, or one line that says why not.

    `reply` is what a person is shown; empty only for `aborted` and a declared silence.
    """

    ending: Ending
    reply: str
    message: Assistant | None
    failure: Failure | None
    started_at: int
    ended_at: int
    silent: bool = False


RunBody = (
    RunPhase | ModelChosen | EntryStored | Compacting | Noticed | PersonAsked | PersonAnswered | AgentEvent | RunEnded
)


@frozen
class RunEvent:
    """One numbered event of a run; `seq` counts from 1 within the run, `ts` is milliseconds since 1970."""

    run_id: RunId
    session_key: SessionKey
    session_id: SessionId
    agent_id: AgentId
    seq: int
    ts: int
    body: RunBody
