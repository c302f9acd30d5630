"""The models a call may go to, in order: the next is asked when one fails before it said anything.

Whatever was shown to a person is never taken back: once a word, a thought or a call has come, a failure is final.
What never moves on: a stop by the user, and a history that does not fit (another model would not shorten it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from garra.core.errors import Failure, FailureKind
from garra.core.events import Done, Failed, StreamEvent
from garra.core.messages import Assistant
from garra.core.value import frozen
from garra.sdk.model import EventStream, Model
from garra.sdk.ports import Spawn
from garra.sdk.stream import Stream

FINAL = frozenset({FailureKind.CANCELLED, FailureKind.OVERFLOW})

Start = Callable[[Model], EventStream]


@frozen
class Ports:
    """`start` starts one call; `chose` is told of each model before it is asked, `note` how that went where there was
    a choice (provider, model, `success` or the failure's kind).
    """

    start: Start
    spawn: Spawn
    chose: Callable[[Model], None]
    note: Callable[[str, str, str], None]


class Chain:
    """Starts model calls along `models`."""

    def __init__(self, models: Sequence[Model], ports: Ports) -> None:
        self._models = tuple(models)
        self._ports = ports
        self._failed: list[str] = []

    def stream(self, now_ms: int) -> EventStream:
        """One answer from the first model that gives one."""
        first = self._models[0]
        if len(self._models) == 1:
            self._ports.chose(first)
            return self._ports.start(first)
        blank = Assistant((), now_ms, api=first.api, provider=first.provider, model=first.id)
        whole = _Whole(blank)
        whole.start(self._ports.spawn, lambda: self._walk(whole), "model call")
        return whole

    async def _walk(self, whole: _Whole) -> None:
        last = len(self._models) - 1
        for at, model in enumerate(self._models):
            self._ports.chose(model)
            inner = whole.inner = self._ports.start(model)
            failed = await self._forward(inner, whole)
            if failed is None:
                self._ports.note(model.provider, model.id, "success")
                return
            kind = failed.failure.kind.value
            self._ports.note(model.provider, model.id, kind)
            self._failed.append(f"{model.ref} ({kind})")
            if at == last or whole.spoke or failed.failure.kind in FINAL:
                whole.push(self._named(failed))
                return

    async def _forward(self, inner: EventStream, whole: _Whole) -> Failed | None:
        async for event in inner:
            if isinstance(event, Failed):
                return event
            whole.push(event)
        return None

    def _named(self, failed: Failed) -> Failed:
        """The last failure; when several models failed, its line names them all."""
        if len(self._failed) < 2:
            return failed
        tried = ", ".join(self._failed)
        old = failed.failure
        line = f"{old.message} Every model failed: {tried}."
        failure = Failure(old.kind, line, old.status, old.retry_after_ms, old.provider, old.model)
        return Failed(failed.message, failure)


class _Whole(Stream):
    """The answer as the loop sees it, whoever gives it."""

    def __init__(self, blank: Assistant) -> None:
        super().__init__(blank)
        self.inner: EventStream | None = None
        self.spoke = False

    def push(self, event: StreamEvent) -> None:
        self.spoke = self.spoke or not isinstance(event, Done | Failed)
        super().push(event)

    def abort(self) -> None:
        if self.inner is not None:
            self.inner.abort()
        super().abort()
