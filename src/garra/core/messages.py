"""What was said: messages and their parts, and the JSON form they are stored and sent in.

The JSON form is the transcript's (`role` user, assistant, toolResult), as the original's clients read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, assert_never

from garra.core.value import frozen

Stop = Literal["stop", "length", "toolUse", "error", "aborted"]


@frozen
class Text:
    """Words."""

    text: str


@frozen
class Thinking:
    """What a model thought. `signature` is opaque and only goes back to the same provider and model."""

    text: str
    signature: str | None = None


@frozen
class Image:
    """A picture, base64 without line breaks."""

    media_type: str
    data: str


@frozen
class ToolCall:
    """A model asks for a tool. `id` is as the provider gave it; a request maps it to what its target accepts."""

    id: str
    name: str
    arguments: Mapping[str, Any]


Part = Text | Thinking | Image | ToolCall
Content = tuple[Text | Image, ...]


@frozen
class Usage:
    """Tokens of one model call, as the provider counted them; `cost` in US dollars."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cost + other.cost,
        )


@frozen
class User:
    """What came in. `meta` is kept as it is: `idempotencyKey`, and `__openclaw` with the sender."""

    content: Content
    timestamp: int
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return joined(self.content)


@frozen
class Assistant:
    """What a model answered; complete, never partial, before it is stored."""

    content: tuple[Part, ...]
    timestamp: int
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = Usage()
    stop: Stop = "stop"
    error: str | None = None
    response_id: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return joined(self.content)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.content if isinstance(part, ToolCall))


@frozen
class ToolResult:
    """What a tool answered. `details` is for people and programs; it never goes to a model."""

    call_id: str
    name: str
    content: Content
    timestamp: int
    is_error: bool = False
    details: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return joined(self.content)


Message = User | Assistant | ToolResult


def joined(parts: tuple[Part, ...] | Content) -> str:
    """The words of `parts`, without thinking, calls and pictures."""
    return "".join(part.text for part in parts if isinstance(part, Text))


def part_json(part: Part) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking():
            body = {"type": "thinking", "thinking": part.text}
            return body if part.signature is None else {**body, "thinkingSignature": part.signature}
        case Image():
            return {"type": "image", "mimeType": part.media_type, "data": part.data}
        case ToolCall():
            return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": dict(part.arguments)}
        case _:
            assert_never(part)


def usage_json(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "totalTokens": usage.total,
        "cost": {"total": usage.cost},
    }


def message_json(message: Message) -> dict[str, Any]:
    """The stored form. A user's words are plain text when there is nothing but words."""
    body: dict[str, Any]
    match message:
        case User():
            plain = all(isinstance(part, Text) for part in message.content)
            body = {"role": "user", "content": message.text if plain else [part_json(p) for p in message.content]}
        case Assistant():
            body = {
                "role": "assistant",
                "content": [part_json(part) for part in message.content],
                "api": message.api,
                "provider": message.provider,
                "model": message.model,
                "usage": usage_json(message.usage),
                "stopReason": message.stop,
            }
            if message.error is not None:
                body["errorMessage"] = message.error
            if message.response_id is not None:
                body["responseId"] = message.response_id
        case ToolResult():
            body = {
                "role": "toolResult",
                "toolCallId": message.call_id,
                "toolName": message.name,
                "content": [part_json(part) for part in message.content],
                "isError": message.is_error,
            }
            if message.details is not None:
                body["details"] = message.details
        case _:
            assert_never(message)
    return {**body, "timestamp": message.timestamp, **message.meta}


def part_from(body: Mapping[str, Any]) -> Part:
    """Raises KeyError or ValueError for what is no part."""
    kind = body.get("type")
    if kind == "text":
        return Text(str(body["text"]))
    if kind == "toolCall":
        return ToolCall(str(body["id"]), str(body["name"]), dict(body["arguments"]))
    if kind == "thinking":
        signature = body.get("thinkingSignature")
        return Thinking(str(body["thinking"]), None if signature is None else str(signature))
    if kind == "image":
        return Image(str(body["mimeType"]), str(body["data"]))
    raise ValueError(f"no such part: {kind!r}")


def usage_from(body: Mapping[str, Any]) -> Usage:
    if not body:
        return Usage()
    get = body.get
    cost = get("cost")
    return Usage(
        int(get("input", 0)),
        int(get("output", 0)),
        int(get("cacheRead", 0)),
        int(get("cacheWrite", 0)),
        float(cost.get("total", 0.0)) if isinstance(cost, dict) else 0.0,
    )


def content_from(body: Any) -> tuple[Part, ...]:
    if isinstance(body, str):
        return (Text(body),)
    return tuple([part_from(part) for part in body or ()])


_KNOWN = {
    "user": frozenset(("role", "content", "timestamp")),
    "assistant": frozenset((
        "role", "content", "timestamp", "api", "provider", "model", "usage", "stopReason", "errorMessage", "responseId",
    )),
    "toolResult": frozenset(("role", "content", "timestamp", "toolCallId", "toolName", "isError", "details")),
}  # fmt: skip


def message_from(body: Mapping[str, Any]) -> Message:
    """The inverse of `message_json`; keys it does not know go to `meta`. Raises KeyError or ValueError."""
    get = body.get
    role = get("role")
    known = _KNOWN.get(role) if isinstance(role, str) else None
    if known is None:
        raise ValueError(f"no such role: {role!r}")
    meta = {} if known.issuperset(body) else {key: value for key, value in body.items() if key not in known}
    timestamp = int(get("timestamp", 0))
    content = content_from(get("content"))
    if role == "assistant":
        return Assistant(
            content,
            timestamp,
            str(get("api", "")),
            str(get("provider", "")),
            str(get("model", "")),
            usage_from(get("usage") or {}),
            get("stopReason", "stop"),
            get("errorMessage"),
            get("responseId"),
            meta,
        )
    shown = tuple([part for part in content if isinstance(part, (Text, Image))])
    if role == "user":
        return User(shown, timestamp, meta)
    return ToolResult(
        str(body["toolCallId"]),
        str(get("toolName", "")),
        shown,
        timestamp,
        bool(get("isError", False)),
        get("details"),
        meta,
    )
