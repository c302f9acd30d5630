"""An answer read: events of `converse-stream` in, `StreamEvent`s out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from garra.core import failures
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Stop, Usage
from garra.core.sse import Event
from garra.sdk.alternating import REDACTED
from garra.sdk.exchange import Delta, Reading, broken, number

_STOPS: Final[dict[str, Stop]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "toolUse",
}
_FILTERS: Final = ("guardrail_intervened", "content_filtered", "refusal")
_FAULTS: Final = {
    "throttlingException": 429,
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "validationException": 400,
    "accessDeniedException": 403,
}


class Reader(Reading):
    """One answer; `sdk.exchange.Reader`."""

    def __init__(self, salt: str) -> None:
        super().__init__(salt)
        self._stop: str | None = None
        self._calls: dict[int, tuple[str, str]] = {}

    def feed(self, event: Event) -> Iterator[Delta]:
        try:
            body = msgspec.json.decode(event.data or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise broken() from None
        if not isinstance(body, Mapping):
            return
        if event.name.startswith("!"):
            raise _fault(event)
        match event.name:
            case "contentBlockStart":
                yield from self._opened(int(body.get("contentBlockIndex", 0)), body.get("start") or {})
            case "contentBlockDelta":
                yield from self._grown(int(body.get("contentBlockIndex", 0)), body.get("delta") or {})
            case "messageStop":
                self._stop = str(body.get("stopReason") or "end_turn")
            case "metadata":
                self._usage, self.over = _usage(body.get("usage") or {}), self._stop is not None
            case _:
                return

    def ending(self) -> tuple[Stop, Usage]:
        if self._stop is None:
            raise RunFailed(failures.lost(FailureKind.CUT, "no messageStop came"))
        if self._stop in _FILTERS:
            raise RunFailed(failures.lost(FailureKind.FILTERED, self._stop))
        if self._stop not in _STOPS:
            raise RunFailed(failures.lost(FailureKind.SERVER, f"the model stopped with {self._stop}"))
        if not self._said and not self._calls:
            raise RunFailed(failures.lost(FailureKind.EMPTY, f"stopReason {self._stop}"))
        stop = _STOPS[self._stop]
        return ("toolUse" if self._calls and stop == "stop" else stop), self._usage

    def _opened(self, at: int, start: Mapping[str, Any]) -> Iterator[Delta]:
        use = start.get("toolUse")
        if isinstance(use, Mapping):
            given = str(use.get("toolUseId") or f"call_{self._salt}_{at}")
            taken = {other for other, _ in self._calls.values()}
            self._calls[at] = (f"{given}_{at}" if given in taken else given, str(use.get("name", "")))
            yield CallDelta(at, *self._calls[at], "")

    def _grown(self, at: int, delta: Mapping[str, Any]) -> Iterator[Delta]:
        thought = delta.get("reasoningContent")
        if isinstance(delta.get("text"), str):
            self._said = self._said or bool(delta["text"].strip())
            yield TextDelta(at, delta["text"])
        elif isinstance(delta.get("toolUse"), Mapping) and at in self._calls:
            yield CallDelta(at, *self._calls[at], str(delta["toolUse"].get("input") or ""))
        elif isinstance(thought, Mapping):
            yield ThinkingDelta(at, str(thought.get("text") or ""))
            if thought.get("signature"):
                self.signatures.append((at, str(thought["signature"])))
            if thought.get("redactedContent"):
                self.signatures.append((at, REDACTED + str(thought["redactedContent"])))


def _fault(event: Event) -> RunFailed:
    name = event.name.removeprefix("!")
    if name == "broken":
        return broken()
    return RunFailed(failures.refused(_FAULTS.get(name, 0), event.data.decode("utf-8", "replace")))


def _usage(told: Mapping[str, Any]) -> Usage:
    return Usage(
        number(told.get("inputTokens")),
        number(told.get("outputTokens")),
        number(told.get("cacheReadInputTokens")),
        number(told.get("cacheWriteInputTokens")),
    )
