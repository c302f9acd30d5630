"""One switch that stops a run everywhere: the model's stream, the tools, the queues."""

from __future__ import annotations

from collections.abc import Callable


class Cancel:
    """Set once, from the loop's thread. What is attached is called at once, in the order it was attached.

    `reason` is a word for programs (`rpc`, `stop`, `timeout` …), empty until it is set.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.is_set = False
        self._attached: dict[object, Callable[[], None]] = {}

    def set(self, reason: str = "stop") -> None:
        """Stop. The first reason stays; later calls change nothing."""
        if self.is_set:
            return
        self.is_set, self.reason = True, reason
        for stop in list(self._attached.values()):
            stop()

    def attach(self, stop: Callable[[], None]) -> Callable[[], None]:
        """Have `stop` called when it is set, or now if it is. Gives back what detaches it."""
        if self.is_set:
            stop()
        mark = object()
        self._attached[mark] = stop

        def detach() -> None:
            self._attached.pop(mark, None)

        return detach
