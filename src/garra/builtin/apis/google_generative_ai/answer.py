"""An answer read: chunks of `streamGenerateContent` in, `StreamEvent`s out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from garra.core import failures
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Stop, Usage
from garra.core.sse import Event
from garra.sdk.exchange import Delta, Reading, broken, number

_FILTERS: Final = frozenset((
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
))  # fmt: skip
_STOPS: Final[dict[str, Stop]] = {"STOP": "stop", "MAX_TOKENS": "length"}
Kind = Literal["text", "thinking", "call", ""]


class Reader(Reading):
    """One answer; `sdk.exchange.Reader`. Its part n has the number 2n + 1, a thought with its signature 2n."""

    def __init__(self, salt: str) -> None:
        super().__init__(salt)
        self._finish: str | None = None
        self._blocked: str | None = None
        self._open: Kind = ""
        self._at = -1
        self._ids: set[str] = set()

    def feed(self, event: Event) -> Iterator[Delta]:
        try:
            body = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise broken() from None
        for chunk in body if isinstance(body, list) else [body]:
            if isinstance(chunk, Mapping):
                yield from self._chunk(chunk)

    def ending(self) -> tuple[Stop, Usage]:
        if self._blocked or self._finish in _FILTERS:
            raise RunFailed(failures.lost(FailureKind.FILTERED, str(self._blocked or self._finish)))
        if self._finish is None:
            raise RunFailed(failures.lost(FailureKind.CUT, "no finishReason came"))
        if self._finish not in _STOPS:
            raise RunFailed(failures.lost(FailureKind.SERVER, f"the model stopped with {self._finish}"))
        if not self._said and not self._ids:
            raise RunFailed(failures.lost(FailureKind.EMPTY, f"finishReason {self._finish}"))
        stop = _STOPS[self._finish]
        return ("toolUse" if self._ids and stop == "stop" else stop), self._usage

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[Delta]:
        error = chunk.get("error")
        if error:
            status = error.get("code") if isinstance(error, Mapping) else 0
            said = msgspec.json.encode(chunk).decode()
            raise RunFailed(failures.refused(status if isinstance(status, int) else 0, said))
        self.response_id = self.response_id or chunk.get("responseId")
        self._blocked = (chunk.get("promptFeedback") or {}).get("blockReason") or self._blocked
        self.over = self.over or self._blocked is not None
        if isinstance(chunk.get("usageMetadata"), Mapping):
            self._usage = _usage(chunk["usageMetadata"])
        for candidate in (chunk.get("candidates") or ())[:1]:
            for part in (candidate.get("content") or {}).get("parts") or ():
                yield from self._part(part)
            if candidate.get("finishReason"):
                self._finish, self.over = str(candidate["finishReason"]), True

    def _part(self, part: Mapping[str, Any]) -> Iterator[Delta]:
        call = part.get("functionCall")
        if isinstance(call, Mapping):
            yield from self._called(call)
        elif isinstance(part.get("text"), str) and part["text"]:
            yield self._words(part["text"], "thinking" if part.get("thought") else "text")
        signature = part.get("thoughtSignature")
        if signature:
            yield from self._signed(str(signature))

    def _called(self, call: Mapping[str, Any]) -> Iterator[Delta]:
        self._at, self._open = self._at + 1, "call"
        given = str(call.get("id") or "")
        made = given if given and given not in self._ids else f"call_{self._salt}_{len(self._ids)}"
        self._ids.add(made)
        written = msgspec.json.encode(call.get("args") or {}).decode()
        yield CallDelta(self._at * 2 + 1, made, str(call.get("name", "")), written)

    def _words(self, words: str, kind: Literal["text", "thinking"]) -> Delta:
        if self._open != kind:
            self._at, self._open = self._at + 1, kind
        at = self._at * 2 + 1
        if kind == "thinking":
            return ThinkingDelta(at, words)
        self._said = self._said or bool(words.strip())
        return TextDelta(at, words)

    def _signed(self, signature: str) -> Iterator[Delta]:
        """A signature belongs to the part that is open; it is kept by a thought of its own before that one."""
        if self._open == "" or self._open == "thinking":
            self._at, self._open = self._at + 1, ""
        place = self._at * 2
        self.signatures.append((place, signature))
        yield ThinkingDelta(place, "")


def _usage(told: Mapping[str, Any]) -> Usage:
    read = number(told.get("cachedContentTokenCount"))
    asked = number(told.get("promptTokenCount")) + number(told.get("toolUsePromptTokenCount"))
    written = number(told.get("candidatesTokenCount")) + number(told.get("thoughtsTokenCount"))
    return Usage(max(asked - read, 0), written, read)
