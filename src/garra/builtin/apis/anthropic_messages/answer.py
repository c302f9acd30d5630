"""An answer read: events of `/v1/messages` in, `StreamEvent`s out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from garra.core import failures
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Stop, Usage
from garra.core.sse import Event
from garra.sdk.alternating import REDACTED

Delta = TextDelta | ThinkingDelta | CallDelta
_STOPS: dict[str, Stop] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "toolUse",
}


class Reader:
    """One answer. `signatures` grows by (part, piece of its signature)."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self.signatures: list[tuple[int, str]] = []
        self.over = False
        self._tokens: dict[str, int] = {}
        self._calls: dict[int, tuple[str, str]] = {}
        self._ids: set[str] = set()
        self._stop: str | None = None
        self._said = False

    def feed(self, event: Event) -> Iterator[Delta]:
        """The events of one server event. Raises RunFailed when it is an error or no JSON."""
        try:
            body = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise RunFailed(failures.lost(FailureKind.CUT, "a piece of the answer is broken")) from None
        if not isinstance(body, Mapping):
            return
        match body.get("type") or event.name:
            case "error":
                raise RunFailed(failures.refused(_status(body), event.data.decode("utf-8", "replace")))
            case "message_start":
                self._started(body.get("message") or {})
            case "content_block_start":
                yield from self._opened(int(body.get("index", 0)), body.get("content_block") or {})
            case "content_block_delta":
                yield from self._grown(int(body.get("index", 0)), body.get("delta") or {})
            case "message_delta":
                self._stop = (body.get("delta") or {}).get("stop_reason") or self._stop
                self._count(body.get("usage"))
            case "message_stop":
                self.over = True
            case _:
                return

    def ending(self) -> tuple[Stop, Usage]:
        """Why the answer stopped and what it cost. Raises RunFailed for one that was cut, refused or is empty."""
        if not self.over:
            raise RunFailed(failures.lost(FailureKind.CUT, "no message_stop came"))
        if self._stop == "refusal":
            raise RunFailed(failures.lost(FailureKind.FILTERED, "the model refused"))
        if not self._said:
            raise RunFailed(failures.lost(FailureKind.EMPTY, f"stop_reason {self._stop}"))
        stop = _STOPS.get(self._stop or "end_turn", "stop")
        counted = self._tokens
        usage = Usage(
            counted.get("input_tokens", 0),
            counted.get("output_tokens", 0),
            counted.get("cache_read_input_tokens", 0),
            counted.get("cache_creation_input_tokens", 0),
        )
        return ("toolUse" if self._calls and stop == "stop" else stop), usage

    def _started(self, message: Mapping[str, Any]) -> None:
        self.response_id = message.get("id")
        self._count(message.get("usage"))

    def _count(self, told: Any) -> None:
        if isinstance(told, Mapping):
            self._tokens |= {name: value for name, value in told.items() if isinstance(value, int)}

    def _opened(self, index: int, block: Mapping[str, Any]) -> Iterator[Delta]:
        match block.get("type"):
            case "tool_use":
                given = str(block.get("id") or f"call_{index}")
                given = f"{given}_{index}" if given in self._ids else given
                self._ids.add(given)
                self._calls[index] = (given, str(block.get("name", "")))
                self._said = True
                whole = block.get("input")
                yield CallDelta(index, *self._calls[index], msgspec.json.encode(whole).decode() if whole else "")
            case "redacted_thinking":
                self.signatures.append((index, REDACTED + str(block.get("data", ""))))
                yield ThinkingDelta(index, "")
            case "text" if block.get("text"):
                yield from self._grown(index, {"type": "text_delta", "text": block["text"]})
            case "thinking" if block.get("thinking"):
                yield ThinkingDelta(index, str(block["thinking"]))
            case _:
                return

    def _grown(self, index: int, delta: Mapping[str, Any]) -> Iterator[Delta]:
        match delta.get("type"):
            case "text_delta":
                words = str(delta.get("text", ""))
                self._said = self._said or bool(words.strip())
                yield TextDelta(index, words)
            case "thinking_delta":
                yield ThinkingDelta(index, str(delta.get("thinking", "")))
            case "signature_delta":
                self.signatures.append((index, str(delta.get("signature", ""))))
            case "input_json_delta" if index in self._calls:
                yield CallDelta(index, *self._calls[index], str(delta.get("partial_json", "")))
            case _:
                return


def _status(body: Mapping[str, Any]) -> int:
    error = body.get("error")
    kind = error.get("type") if isinstance(error, Mapping) else None
    known = {
        "overloaded_error": 529,
        "rate_limit_error": 429,
        "api_error": 500,
        "authentication_error": 401,
        "permission_error": 403,
        "not_found_error": 404,
        "billing_error": 402,
        "timeout_error": 504,
        "request_too_large": 413,
        "invalid_request_error": 400,
    }
    return known.get(str(kind), 0)
