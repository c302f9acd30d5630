"""An answer read: lines of `/api/chat` in, `StreamEvent`s out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from garra.core import failures
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Stop, Usage
from garra.core.sse import Event
from garra.sdk.exchange import Delta, Reading, broken, number


class Reader(Reading):
    """One answer; `sdk.exchange.Reader`."""

    def __init__(self, salt: str) -> None:
        super().__init__(salt)
        self._why = ""
        self._open = ""
        self._at = -1
        self._ids: set[str] = set()

    def feed(self, event: Event) -> Iterator[Delta]:
        try:
            body = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise broken() from None
        if not isinstance(body, Mapping):
            return
        if body.get("error"):
            status = body.get("status_code") or body.get("StatusCode") or 0
            said = event.data.decode("utf-8", "replace")
            raise RunFailed(failures.refused(status if isinstance(status, int) else 0, said))
        message = body.get("message")
        if isinstance(message, Mapping):
            yield from self._grown(message)
        if body.get("done"):
            self.over, self._why = True, str(body.get("done_reason") or "stop")
            self._usage = Usage(number(body.get("prompt_eval_count")), number(body.get("eval_count")))

    def ending(self) -> tuple[Stop, Usage]:
        if not self.over:
            raise RunFailed(failures.lost(FailureKind.CUT, "no done came"))
        if not self._said and not self._ids:
            raise RunFailed(failures.lost(FailureKind.EMPTY, f"done_reason {self._why}"))
        if self._why == "length":
            return "length", self._usage
        return ("toolUse" if self._ids else "stop"), self._usage

    def _grown(self, message: Mapping[str, Any]) -> Iterator[Delta]:
        if message.get("thinking"):
            yield self._words("thinking", str(message["thinking"]))
        if message.get("content"):
            yield self._words("text", str(message["content"]))
        for call in message.get("tool_calls") or ():
            yield self._called(call)

    def _words(self, kind: Literal["text", "thinking"], words: str) -> Delta:
        if self._open != kind:
            self._at, self._open = self._at + 1, kind
        if kind == "thinking":
            return ThinkingDelta(self._at, words)
        self._said = self._said or bool(words.strip())
        return TextDelta(self._at, words)

    def _called(self, call: Mapping[str, Any]) -> CallDelta:
        """A call comes whole; older servers give it no id."""
        self._at, self._open = self._at + 1, "call"
        about = call.get("function") or {}
        given = str(call.get("id") or "")
        made = given if given and given not in self._ids else f"call_{self._salt}_{len(self._ids)}"
        self._ids.add(made)
        written = about.get("arguments")
        text = written if isinstance(written, str) else msgspec.json.encode(written or {}).decode()
        return CallDelta(self._at, made, str(about.get("name", "")), text)
