"""An answer read: events of `/responses` in, `StreamEvent`s out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from garra.core import failures
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Stop, Usage
from garra.core.sse import Event
from garra.sdk.exchange import Delta, broken, number

_STATUS = {"rate_limit_exceeded": 429, "server_error": 500, "invalid_prompt": 400, "insufficient_quota": 402}
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.done")


class Reader:
    """One answer; `sdk.exchange.Reader`. An item of the answer is one part of the message."""

    def __init__(self, salt: str) -> None:
        self.response_id: str | None = None
        self.signatures: list[tuple[int, str]] = []
        self._salt = salt
        self._end: Mapping[str, Any] | None = None
        self._places: dict[str, int] = {}
        self._calls: dict[int, tuple[str, str]] = {}
        self._came: set[int] = set()
        self._said = False
        self._summary: dict[int, Any] = {}

    @property
    def over(self) -> bool:
        return self._end is not None

    def feed(self, event: Event) -> Iterator[Delta]:
        if event.data.strip() == b"[DONE]":
            return
        try:
            body = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise broken() from None
        if not isinstance(body, Mapping):
            return
        kind = str(body.get("type") or event.name)
        if kind == "error" or (body.get("error") and not kind.startswith("response.")):
            raise RunFailed(failures.refused(_status(body.get("error") or body), event.data.decode("utf-8", "replace")))
        if body.get("object") == "response":  # an answer that was not streamed
            yield from self._whole(body)
        elif kind in _ENDS:
            self._ended(body.get("response") or {}, event)
        else:
            yield from self._grown(kind, body)

    def ending(self) -> tuple[Stop, Usage]:
        end = self._end
        if end is None:
            raise RunFailed(failures.lost(FailureKind.CUT, "no response.completed came"))
        why = (end.get("incomplete_details") or {}).get("reason")
        if why == "content_filter":
            raise RunFailed(failures.lost(FailureKind.FILTERED))
        if not self._said and not self._calls:
            raise RunFailed(failures.lost(FailureKind.EMPTY, f"status {end.get('status')}"))
        if end.get("status") == "incomplete" or why:
            return "length", _usage(end.get("usage"))
        return ("toolUse" if self._calls else "stop"), _usage(end.get("usage"))

    def _ended(self, response: Mapping[str, Any], event: Event) -> None:
        if response.get("status") in ("failed", "cancelled") or response.get("error"):
            error = response.get("error") or {"message": f"the answer is {response.get('status')}"}
            raise RunFailed(failures.refused(_status(error), msgspec.json.encode({"error": error}).decode()))
        self.response_id = str(response.get("id") or "") or self.response_id
        self._end = response

    def _whole(self, response: Mapping[str, Any]) -> Iterator[Delta]:
        for at, item in enumerate(response.get("output") or ()):
            yield from self._opened(at, item)
            yield from self._closed(at, item)
        self._ended(response, Event("", b""))

    def _grown(self, kind: str, body: Mapping[str, Any]) -> Iterator[Delta]:
        words = str(body.get("delta") or "")
        match kind:
            case "response.created":
                self.response_id = (body.get("response") or {}).get("id")
            case "response.output_item.added":
                yield from self._opened(self._place(body), body.get("item") or {})
            case "response.output_item.done":
                yield from self._closed(self._place(body), body.get("item") or {})
            case "response.output_text.delta" | "response.refusal.delta":
                yield self._text(self._place(body), words)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield self._thought(self._place(body), words, body.get("summary_index"))
            case "response.function_call_arguments.delta" if (at := self._place(body)) in self._calls:
                self._came.add(at)
                yield CallDelta(at, *self._calls[at], words)
            case _:
                return

    def _place(self, body: Mapping[str, Any]) -> int:
        """Which part an event speaks of: by the item's place, else by its id."""
        told = body.get("output_index")
        if isinstance(told, int):
            return told
        given = str(body.get("item_id") or (body.get("item") or {}).get("id") or "")
        return self._places.setdefault(given, len(self._places))

    def _text(self, at: int, words: str) -> TextDelta:
        self._came.add(at)
        self._said = self._said or bool(words.strip())
        return TextDelta(at, words)

    def _thought(self, at: int, words: str, summary: Any) -> ThinkingDelta:
        gap = "\n\n" if at in self._came and summary != self._summary.get(at) else ""
        self._came.add(at)
        self._summary[at] = summary
        return ThinkingDelta(at, gap + words)

    def _opened(self, at: int, item: Mapping[str, Any]) -> Iterator[Delta]:
        if item.get("type") == "function_call":
            given = str(item.get("call_id") or item.get("id") or f"call_{self._salt}_{at}")
            taken = {other for other, _ in self._calls.values()}
            self._calls[at] = (f"{given}_{at}" if given in taken else given, str(item.get("name", "")))
            yield CallDelta(at, *self._calls[at], "")

    def _closed(self, at: int, item: Mapping[str, Any]) -> Iterator[Delta]:
        """A whole item: what did not come in pieces is in it, and a thought's encrypted form."""
        match item.get("type"):
            case "message" if at not in self._came:
                for part in item.get("content") or ():
                    yield self._text(at, str(part.get("text") or part.get("refusal") or ""))
            case "function_call" if at not in self._came:
                if at not in self._calls:
                    yield from self._opened(at, item)
                yield CallDelta(at, *self._calls[at], str(item.get("arguments") or ""))
            case "reasoning":
                if at not in self._came:
                    told = (str(part.get("text", "")) for part in (item.get("summary") or item.get("content") or ()))
                    yield ThinkingDelta(at, "\n\n".join(told))
                if item.get("encrypted_content"):
                    kept = {"id": item.get("id"), "encrypted_content": item["encrypted_content"]}
                    self.signatures.append((at, msgspec.json.encode(kept).decode()))
            case _:
                return


def _status(error: Any) -> int:
    code = error.get("code") or error.get("type") if isinstance(error, Mapping) else None
    return _STATUS.get(str(code), 0)


def _usage(told: Any) -> Usage:
    if not isinstance(told, Mapping):
        return Usage()
    details = told.get("input_tokens_details") or {}
    read, written = number(details.get("cached_tokens")), number(details.get("cache_write_tokens"))
    fresh = max(number(told.get("input_tokens")) - read - written, 0)
    return Usage(fresh, number(told.get("output_tokens")), read, written)
