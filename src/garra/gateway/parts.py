"""The parts of the house that the gateway calls, each as small as it uses them. The real ones fit, a test's too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from garra.core.events import RunEvent
from garra.core.ids import RunId, SessionKey
from garra.core.messages import ToolResult
from garra.domains.sessions.session import Session
from garra.gateway.method import READ, Link, Scope
from garra.runs.explain import Asked, Paired
from garra.runs.run import Run, Turn
from garra.sdk.model import Model
from garra.sdk.tool import ToolInfo


class Broadcast(Protocol):
    """Sends events to connections; an event is encoded once, whoever gets it."""

    def publish(
        self, event: str, payload: Any, *, scope: Scope = READ, where: Callable[[Link], bool] | None = None
    ) -> None:
        """To every connection with the right `scope` that `where` (all, when None) picks. Never blocks."""
        ...

    def watched(self, topic: str) -> bool:
        """Whether any connection subscribed to `topic`."""
        ...

    def anybody(self, where: Callable[[Link], bool]) -> bool:
        """Whether any connection is one that `where` picks."""
        ...


class RunTable(Protocol):
    """The runs of this process."""

    async def submit(self, turn: Turn) -> Run:
        """Take a turn; gives back at once, the run may wait for its session."""
        ...

    def find(self, run_id: str) -> Run | None: ...

    def active(self, session_key: str) -> Run | None: ...

    def every(self) -> Sequence[Run]: ...

    async def abort(self, session_key: str, run_id: str | None = None, reason: str = "rpc") -> list[RunId]:
        """Stop one run of a session, or all; the ids of those it stopped."""
        ...

    def subscribe(self, listener: Callable[[RunEvent], None]) -> Callable[[], None]: ...


class ModelRow(Protocol):
    """One model that can be chosen. `available`: there is a key for it, or none is needed; `configured`: the owner
    named it.
    """

    @property
    def id(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def ref(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def reasoning(self) -> bool: ...

    @property
    def context_window(self) -> int: ...

    @property
    def input(self) -> tuple[str, ...]: ...

    @property
    def available(self) -> bool: ...

    @property
    def configured(self) -> bool: ...


class ModelTable(Protocol):
    """The models."""

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        """Raises NotFound, with a line that says what to set, when there is no such model or none at all."""
        ...

    def rows(self) -> Sequence[ModelRow]: ...


class ToolTable(Protocol):
    """The tools, behind their policy."""

    def infos(self, agent_id: str) -> Sequence[ToolInfo]:
        """What an agent may call, in the order it is told of it."""
        ...

    def explain(self, name: str, asked: Asked, session: Session | None, paired: Paired) -> dict[str, Any]:
        """Why a session has a tool or has it not."""
        ...

    def policy(self, asked: Asked, session: Session | None, paired: Paired) -> dict[str, Any]:
        """Every tool with what became of it in a session."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], session_key: SessionKey) -> ToolResult:
        """Call one as a session. Raises NotFound for a tool that the session has not."""
        ...
