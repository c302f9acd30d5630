"""An answer read: chunks of the dialect in, `StreamEvent`s out. Pure; it forgives what servers are known to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from garra.builtin.apis.openai_completions.calls import Fragments
from garra.builtin.apis.openai_completions.thoughts import Said, Sieve
from garra.core import failures
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Stop, Usage

Delta = TextDelta | ThinkingDelta | CallDelta
_Kind = Literal["text", "thinking", "call", ""]
_STOPS: dict[str, Stop] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")


class Reader:
    """One answer. Feed it the data of each event, then ask for the `ending`."""

    def __init__(self, salt: str) -> None:
        self.usage = Usage()
        self.response_id: str | None = None
        self._finish: str | None = None
        self.over = False
        self._said = False
        self._sieve = Sieve()
        self._calls = Fragments(salt)
        self._open: _Kind = ""
        self._parts = 0

    @property
    def finished(self) -> bool:
        """Whether the server said that the answer is whole."""
        return self.over or self._finish is not None

    def feed(self, data: bytes) -> Iterator[Delta]:
        """The events of one chunk. Raises RunFailed when the chunk is an error, or no JSON at all."""
        if data.strip() == b"[DONE]":
            self.over = True
            return
        chunk = _decoded(data)
        if chunk.get("error") or chunk.get("object") == "error":
            raise RunFailed(failures.refused(_status(chunk), data.decode("utf-8", "replace")))
        if isinstance(chunk.get("id"), str) and chunk["id"]:
            self.response_id = self.response_id or chunk["id"]
        self._count(chunk)
        for choice in (chunk.get("choices") or ())[:1]:
            yield from self._choice(choice)

    def ending(self) -> tuple[Stop, list[Delta]]:
        """Why the answer stopped, and the last words that were kept back.

        Raises RunFailed for one that was cut, is empty, or was filtered.
        """
        rest = [event for said in self._sieve.rest() for event in self._words(said)]
        if self._finish is None and not (self.over and (self._said or self._calls)):
            raise RunFailed(failures.lost(FailureKind.EMPTY if self.over else FailureKind.CUT))
        if self._finish == "content_filter":
            raise RunFailed(failures.lost(FailureKind.FILTERED))
        if self._finish == "error":
            raise RunFailed(failures.lost(FailureKind.SERVER, "the provider says only: error"))
        if not self._said and not self._calls:
            raise RunFailed(failures.lost(FailureKind.EMPTY, f"finish_reason {self._finish}"))
        stop = _STOPS.get(self._finish or "stop", "stop")
        return ("toolUse" if self._calls and stop != "length" else "stop" if stop == "toolUse" else stop), rest

    def _count(self, chunk: Mapping[str, Any]) -> None:
        groq = chunk.get("x_groq")
        told = chunk.get("usage") or (groq.get("usage") if isinstance(groq, Mapping) else None)
        if isinstance(told, Mapping):
            self.usage = _usage(told)

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[Delta]:
        if isinstance(choice.get("usage"), Mapping):
            self.usage = _usage(choice["usage"])
        delta = choice.get("delta") or choice.get("message") or {}
        thought = next((delta[name] for name in _THOUGHTS if isinstance(delta.get(name), str) and delta[name]), "")
        if thought:
            yield self._piece("thinking", thought)
        for words in _contents(delta.get("content", choice.get("text"))):
            for said in self._sieve.feed(words.words) if words.kind == "text" else [words]:
                yield from self._words(said)
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            yield from self._words(Said("text", delta["refusal"]))
        yield from self._called(delta)
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])

    def _called(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        fragments = delta.get("tool_calls") or ()
        old = delta.get("function_call")
        listed = [*fragments, {"index": 0, "function": old}] if isinstance(old, Mapping) else fragments
        for fragment in listed:
            event = self._calls.feed(fragment, self._parts)
            if event is None:
                continue
            self._parts = max(self._parts, event.index + 1)
            self._open = "call"
            yield event

    def _words(self, said: Said) -> Iterator[Delta]:
        if said.words:
            self._said = self._said or (said.kind == "text" and bool(said.words.strip()))
            yield self._piece(said.kind, said.words)

    def _piece(self, kind: Literal["text", "thinking"], words: str) -> Delta:
        if self._open != kind:
            self._open, self._parts = kind, self._parts + 1
        index = self._parts - 1
        return TextDelta(index, words) if kind == "text" else ThinkingDelta(index, words)


def _decoded(data: bytes) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = _leniently(data)
    return found if isinstance(found, Mapping) else {}


def _leniently(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)
    except ValueError:
        if data.strip().startswith(b"{"):
            raise RunFailed(failures.lost(FailureKind.CUT, "a piece of the answer is broken")) from None
        raise RunFailed(failures.refused(0, text)) from None


def _status(chunk: Mapping[str, Any]) -> int:
    error = chunk.get("error")
    code = error.get("code", error.get("status")) if isinstance(error, Mapping) else chunk.get("code")
    return int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else 0


def _contents(content: Any) -> Iterator[Said]:
    if isinstance(content, str):
        if content:
            yield Said("text", content)
        return
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, Mapping):
            continue
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            yield from (Said("thinking", said.words) for said in _contents(inner))
        elif isinstance(part.get("text"), str):
            yield Said("text", part["text"])


def _usage(told: Mapping[str, Any]) -> Usage:
    details = told.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    read = _number(cached if cached is not None else told.get("prompt_cache_hit_tokens", told.get("cached_tokens")))
    prompt = _number(told.get("prompt_tokens", told.get("input_tokens")))
    return Usage(max(prompt - read, 0), _number(told.get("completion_tokens", told.get("output_tokens"))), read)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
