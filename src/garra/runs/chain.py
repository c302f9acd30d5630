"""The models a call may go to, in order: the next is asked when one fails.

Whatever was shown to a person stays: the next model goes on behind it. What never moves on: a stop by the user, a
history that does not fit (another model would not shorten it), content that a provider refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from garra.core import failover, failures, resuming
from garra.core.errors import Failure
from garra.core.events import Done, Failed, StreamEvent
from garra.core.messages import Assistant
from garra.core.value import frozen
from garra.sdk.model import EventStream, Model
from garra.sdk.ports import Spawn
from garra.sdk.stream import Stream

_STRIDE = 100
"""How many calls one model makes at the most; the parts of the next are numbered behind them."""


@frozen
class Leg:
    """How one model is asked: behind which words that were shown, and before how many other models."""

    said: str = ""
    behind: int = 0


Start = Callable[[Model, Leg], EventStream]


@frozen
class Ports:
    """`start` starts one call; `chose` is told of each model before it is asked, `note` how that went where there was
    a choice (provider, model, `success` or the failure's kind). `resting`: this model is better asked last.
    """

    start: Start
    spawn: Spawn
    chose: Callable[[Model], None]
    note: Callable[[str, str, str], None]
    resting: Callable[[Model], bool] = lambda _: False


class Chain:
    """Starts model calls along `models`."""

    def __init__(self, models: Sequence[Model], ports: Ports) -> None:
        self._models = tuple(models)
        self._ports = ports
        self._failed: list[Failure] = []

    def stream(self, now_ms: int) -> EventStream:
        """One answer from the first model that gives one."""
        first = self._models[0]
        if len(self._models) == 1:
            self._ports.chose(first)
            return self._ports.start(first, Leg())
        blank = Assistant((), now_ms, api=first.api, provider=first.provider, model=first.id)
        whole = _Whole(blank)
        whole.start(self._ports.spawn, lambda: self._walk(whole), "model call")
        return whole

    async def _walk(self, whole: _Whole) -> None:
        models = sorted(self._models, key=self._ports.resting)
        state = failover.State(models=len(models) - 1, most=0)
        for model in models:
            self._ports.chose(model)
            inner = whole.inner = self._ports.start(model, Leg(whole.said, state.models))
            failed = await self._forward(inner, whole)
            self._ports.note(model.provider, model.id, "success" if failed is None else failed.failure.kind.value)
            if failed is None:
                return
            self._failed.append(replace(failed.failure, provider=model.provider, model=model.id))
            state, effect = failover.step(state, failover.Failed(failed.failure))
            if not isinstance(effect, failover.NextModel):
                whole.push(self._summed(failed))
                return
            whole.cut()

    async def _forward(self, inner: EventStream, whole: _Whole) -> Failed | None:
        async for event in inner:
            if isinstance(event, Failed):
                return event
            whole.push(event)
        return None

    def _summed(self, failed: Failed) -> Failed:
        """The last failure; when several models failed, its line names them all, and who is free first."""
        if len(self._failed) < 2:
            return failed
        alike = groupby(self._failed, lambda each: each.kind.value)
        tried = ", ".join(
            f"{', '.join(f'{each.provider}/{each.model}' for each in same)} ({why})" for why, same in alike
        )
        free = [each for each in self._failed if each.retry_after_ms and each.kind in failover.LIMITS]
        soonest = min(free, key=lambda each: each.retry_after_ms or 0, default=None)
        old = failed.failure
        line = f"{old.message.rstrip('.')}. Every model failed: {tried}."
        if soonest is None:
            return replace(failed, failure=replace(old, message=line))
        wait = soonest.retry_after_ms or 0
        line += f" Retry in {failures.span(wait)} ({soonest.provider}/{soonest.model})."
        return replace(failed, failure=replace(old, message=line, retry_after_ms=wait))


class _Whole(Stream):
    """The answer as the loop sees it, whoever gives it."""

    def __init__(self, blank: Assistant) -> None:
        super().__init__(blank)
        self.inner: EventStream | None = None
        self.said = ""
        self._legs = 0

    def cut(self) -> None:
        """What was shown so far stays; who comes next goes on behind it."""
        self._legs += _STRIDE
        self.said = resuming.shown(self.draft.parts())

    def push(self, event: StreamEvent) -> None:
        if isinstance(event, Done | Failed):
            event = resuming.whole(event, self.said)
        super().push(resuming.moved(event, self._legs))

    def abort(self) -> None:
        if self.inner is not None:
            self.inner.abort()
        super().abort()
