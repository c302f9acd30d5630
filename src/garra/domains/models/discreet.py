"""A model's answer without the secrets that are known, also where one arrives in pieces."""

from __future__ import annotations

from collections.abc import Callable

from garra.core.blots import Blots, Flow
from garra.core.events import Done, Failed, StreamEvent, TextDelta, ThinkingDelta
from garra.core.value import replace

Piece = TextDelta | ThinkingDelta


class Discreet:
    """Hands the events of one answer on to `push`. Words that may be the beginning of a secret wait for the next."""

    def __init__(self, push: Callable[[StreamEvent], None], blots: Blots) -> None:
        self._push, self._blots = push, blots
        self._flow = Flow(blots)
        self._last: Piece | None = None

    def push(self, event: StreamEvent) -> None:
        if not self._blots:
            self._push(event)
            return
        last = self._last
        if last is not None and (type(event) is not type(last) or getattr(event, "index", None) != last.index):
            self._release(last)
        match event:
            case TextDelta() | ThinkingDelta():
                self._flow, shown = self._flow.step(event.delta)
                self._last = event
                if shown:
                    self._push(event if shown is event.delta else replace(event, delta=shown))
            case Done(message):
                self._push(Done(self._blots.message(message)))
            case _:
                self._push(event)

    def failed(self, event: Failed) -> Failed:
        """The end of an answer that broke, which is not handed on; what waited is."""
        if self._last is not None:
            self._release(self._last)
        told = replace(event.failure, message=self._blots.text(event.failure.message))
        return Failed(self._blots.message(event.message), told) if self._blots else event

    def _release(self, last: Piece) -> None:
        rest, self._flow, self._last = self._flow.rest(), Flow(self._blots), None
        if rest:
            self._push(replace(last, delta=rest))
