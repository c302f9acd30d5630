"""What stands in a conversation on the screen, as values; and how stored messages become them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from garra.core.value import frozen

HINTS = ("command", "path", "file_path", "pattern", "query", "url", "action", "name")
HINT_LENGTH = 120
KNOWN_MS = 50
"""A stored answer that seems to have taken less was stamped when it began: how long it took is not known."""


@frozen
class Said:
    """A person's words."""

    key: str
    text: str


@frozen
class Words:
    """An agent's words so far, Markdown."""

    key: str
    text: str


@frozen
class Thought:
    """What a model thought before it spoke."""

    key: str
    text: str


@frozen
class Tool:
    """One tool call: a line, with what came out of it folded below. `ms` is known when it has ended."""

    key: str
    name: str
    hint: str = ""
    state: Literal["running", "done", "failed"] = "running"
    output: str = ""
    ms: int | None = None


@frozen
class Foot:
    """What an answer took: model, milliseconds, tokens with the cached part, dollars."""

    key: str
    model: str = ""
    ms: int | None = None
    tokens: int = 0
    cached: int = 0
    cost: float = 0.0

    def line(self) -> str:
        parts = [self.model, duration(self.ms)]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens" + (f", {self.cached:,} cached" if self.cached else ""))
        if self.cost:
            parts.append(f"${self.cost:.4f}".rstrip("0"))
        return "  ".join(part for part in parts if part)


@frozen
class Notice:
    """A line of the program itself. `warn` and `bad` mean that a person has to look."""

    key: str
    text: str
    tone: Literal["quiet", "warn", "bad"] = "quiet"


Item = Said | Words | Thought | Tool | Foot | Notice


@frozen
class Facts:
    """What the status line says of a session."""

    model: str = ""
    tokens: int = 0
    window: int = 0
    thinking: str = ""
    title: str = ""


def duration(ms: int | None) -> str:
    """`0.3 s`, `14 s`, `2 min 5 s`; empty when not known."""
    if ms is None:
        return ""
    if ms < 9_950:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"


def hint(arguments: Any) -> str:
    """What a call is about, in one line."""
    if not isinstance(arguments, Mapping):
        return ""
    inner = arguments.get("args")
    if isinstance(inner, Mapping) and isinstance(arguments.get("id"), str):  # a tool that is called through tool_call
        return f"{arguments['id'][:HINT_LENGTH]} {hint(inner)}".strip()
    found = next((arguments[name] for name in HINTS if isinstance(arguments.get(name), str)), "")
    line = " ".join(found.split())
    return line if len(line) <= HINT_LENGTH else f"{line[: HINT_LENGTH - 1]}…"


def text_of(content: Any) -> str:
    """The words of a message's content, plain or in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts if isinstance(part, dict) and part.get("type") == "text")


def of_history(messages: Iterable[Mapping[str, Any]]) -> list[Item]:
    """Stored messages as items, in order; each tool's result joins its call."""
    made = _History()
    for message in messages:
        made.take(message)
    return list(made.items.values())


@dataclass(slots=True)
class _History:
    items: dict[str, Item] = field(default_factory=dict)
    calls: dict[str, str] = field(default_factory=dict)
    asked_at: int = 0

    def put(self, item: Item) -> None:
        self.items[item.key] = item

    def take(self, message: Mapping[str, Any]) -> None:
        at = len(self.items)
        match message.get("role"):
            case "user":
                self.asked_at = int(message.get("timestamp") or 0)
                if text := text_of(message.get("content")):
                    self.put(Said(f"history:{at}", text))
            case "assistant":
                self._assistant(message, at)
            case "toolResult":
                self._result(message)

    def _assistant(self, message: Mapping[str, Any], at: int) -> None:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for number, part in enumerate(parts):
            key = f"history:{at}:{number}"
            match part.get("type"):
                case "text" if part.get("text"):
                    self.put(Words(key, part["text"]))
                case "thinking" if part.get("thinking"):
                    self.put(Thought(key, part["thinking"]))
                case "toolCall":
                    self.calls[str(part.get("id"))] = key  # some models give each turn's first call the same id
                    self.put(Tool(key, str(part.get("name", "")), hint(part.get("arguments"))))
        if message.get("stopReason") in {"error", "aborted"}:
            stopped = message.get("stopReason") == "aborted"
            text = "stopped" if stopped else str(message.get("errorMessage") or "the model failed")
            self.put(Notice(f"history:{at}:end", text, "quiet" if stopped else "bad"))
        elif message.get("stopReason") != "toolUse":
            took = int(message.get("timestamp") or 0) - self.asked_at if self.asked_at else 0
            self.put(foot(f"history:{at}:foot", message, took if took >= KNOWN_MS else None))

    def _result(self, message: Mapping[str, Any]) -> None:
        call = str(message.get("toolCallId"))
        key = self.calls.get(call, f"history:{len(self.items)}:{call}")
        called = self.items.get(key)
        details = message.get("details")
        ms = details.get("durationMs") if isinstance(details, Mapping) else None
        self.put(
            Tool(
                key,
                str(message.get("toolName") or getattr(called, "name", "")),
                called.hint if isinstance(called, Tool) else "",
                "failed" if message.get("isError") else "done",
                text_of(message.get("content")),
                ms if isinstance(ms, int) else None,
            )
        )


def foot(key: str, message: Mapping[str, Any], ms: int | None) -> Foot:
    """The foot of a stored answer."""
    usage = message.get("usage") or {}
    cost = usage.get("cost")
    return Foot(
        key,
        str(message.get("model") or ""),
        ms,
        int(usage.get("totalTokens") or 0),
        int(usage.get("cacheRead") or 0),
        float(cost.get("total") or 0.0) if isinstance(cost, Mapping) else 0.0,
    )
