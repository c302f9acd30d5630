"""What an API family implements: one request to one model, answered by a stream of events.

A family turns `ModelRequest` into its vendor's HTTP request, and the vendor's answer into `StreamEvent`s. Retry,
failover, keys, prices and limits belong to the host.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol, runtime_checkable

from garra.core.events import StreamEvent
from garra.core.messages import Assistant, Message
from garra.core.spending import Payer
from garra.core.thinking import Level as Level  # plugins see the sdk alone
from garra.core.value import frozen
from garra.sdk.ports import DIRECT, Via
from garra.sdk.written import Rest, breath


@frozen
class Cost:
    """US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


@frozen
class Model:
    """One model of one provider, everything a family needs to reach it.

    `api` is the family's name. `context_window` and `max_tokens` count tokens. `input` lists `text`, `image`.
    `compat` holds the provider's quirks; the keys are the family's own. `prompt` is `full`, or `lite` for small
    local windows. `via` is the way out to it.
    """

    provider: str
    id: str
    api: str
    base_url: str
    name: str = ""
    context_window: int = 128_000
    max_tokens: int = 8_192
    reasoning: bool = False
    input: tuple[str, ...] = ("text",)
    cost: Cost = Cost()
    headers: Mapping[str, str] = field(default_factory=dict)
    compat: Mapping[str, Any] = field(default_factory=dict)
    prompt: Literal["full", "lite"] = "full"
    via: Via = DIRECT

    @property
    def ref(self) -> str:
        """`provider/id`, as people and configuration name it."""
        return f"{self.provider}/{self.id}"


@frozen
class ToolSpec:
    """What a model is told of a tool: `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@frozen
class ModelRequest:
    """One call. `system` and `tools` stay byte-equal over a session; `tail` is the part that changes every turn and
    is sent last, after the history, so that a provider's prompt cache holds.

    `messages` are already valid for the target: each call has its result, nothing opaque from another model.
    Three timers, in seconds: until there is a connection, until the first sign of an answer (the connection counts),
    between two signs. `payer` is to whose account the call goes; no family looks at it. `rest` is awaited
    wherever a long history has been worked on for a millisecond.
    """

    model: Model
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tail: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    thinking: Level = "off"
    session: str = ""
    timeout_connect_s: float = 10.0
    timeout_first_s: float = 120.0
    timeout_between_s: float = 60.0
    payer: Payer | None = None
    rest: Rest = breath


class EventStream(Protocol):
    """Given back at once; events come later. Whoever attaches late gets all of them, from the first.

    The last event is always `Done` or `Failed`; iterating and `result` never raise for the model's faults. Cancelling
    the task that iterates does not stop the call; `abort` does, and then the last event is `Failed` with stop
    `aborted`.
    """

    def __aiter__(self) -> AsyncIterator[StreamEvent]: ...

    async def result(self) -> Assistant:
        """The whole answer, with stop `error` or `aborted` and its `error` line where it failed."""
        ...

    def abort(self) -> None:
        """Stop the call now; harmless when it has ended."""
        ...


class Api(Protocol):
    """One API family, such as `openai-completions`."""

    family: str

    def stream(self, request: ModelRequest, key: str | None) -> EventStream:
        """Start the call and return at once. `key` is the secret for this one call, `None` where none is needed.

        Raises ValueError when `request.model.api` is not this family.
        """
        ...


@runtime_checkable
class Warms(Protocol):
    """A family whose first call is slow to prepare; the host prepares it in the background."""

    async def warm(self) -> None:
        """Load what the first call needs, without holding up the loop. Raises RunFailed where it cannot be had."""
        ...
