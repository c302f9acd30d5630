"""A request's bytes for `converse-stream`: what never changes first, the history last.

What may be cached ends in a cache point: the system prompt, the tools, the last words before the tail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from garra.core.messages import Assistant, Content, Image, Message, Part, Text, Thinking, ToolCall, ToolResult, User
from garra.sdk.encoding import encoded
from garra.sdk.exchange import marked, params
from garra.sdk.model import Level, Model, ModelRequest, ToolSpec
from garra.sdk.written import Messages, Pieces, Written, closed

REDACTED = "redacted:"
"""Begins the signature of a thought that the provider keeps to itself."""

_BUDGET: Final[dict[str, int]] = {"minimal": 1_024, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 32_768}
_EFFORT: Final[dict[str, str]] = {"minimal": "low", "xhigh": "max"}
_ID = re.compile(r"[^A-Za-z0-9_-]")
Group = dict[str, Any]


class Writer:
    """Writes request bodies; about `room` bytes of histories are remembered, the sessions used last."""

    def __init__(self, room: int = 8 << 20) -> None:
        self._written: Written[tuple[str, str]] = Written(_apart, room)

    async def body(self, request: ModelRequest) -> Pieces:
        start = encoded(head(request))[:-1] + b',"messages":['
        done, fresh = _cut(request.messages)
        key = (request.session, request.model.ref) if request.session else None
        history = await self._written.pieces(key, done, _bytes)
        listed = _last(groups(fresh), request, first=not done)
        return closed((start, *history, b"".join(encoded(group) + b"," for group in listed)))


def _apart(messages: Messages, at: int) -> bool:
    """Between an answer and what is said to it: all else of one side is one message."""
    return isinstance(messages[at - 1], Assistant) and not isinstance(messages[at], Assistant)


def _cut(messages: Messages) -> tuple[Messages, Messages]:
    """What ends in the last answer, and what came after it."""
    for at in range(len(messages), 0, -1):
        if isinstance(messages[at - 1], Assistant):
            return messages[:at], messages[at:]
    return (), messages


def _bytes(messages: Messages, before: int) -> bytes:
    listed = groups(messages)
    if not before and listed and listed[0]["role"] != "user":
        listed.insert(0, {"role": "user", "content": [{"text": "(the beginning is not shown)"}]})
    return b"".join(encoded(group) + b"," for group in listed)


def _last(listed: list[Group], request: ModelRequest, *, first: bool) -> list[Group]:
    point = cache_point(request.model)
    if listed and point:
        listed[-1]["content"].append(point)
    if request.tail:
        block = {"text": marked(request.tail)}
        if listed:
            listed[-1]["content"].append(block)
        else:
            listed = [{"role": "user", "content": [block]}]
    if not listed and first:
        return [{"role": "user", "content": [{"text": "(nothing was said)"}]}]
    return listed


def head(request: ModelRequest) -> dict[str, Any]:
    """Everything but the messages."""
    model = request.model
    limit = request.max_tokens or model.max_tokens
    points = [point] if (point := cache_point(model)) else []
    body: dict[str, Any] = {}
    if request.system:
        body["system"] = [{"text": request.system}, *points]
    if request.tools:
        tools = [{"toolSpec": _tool(tool)} for tool in request.tools]
        body["toolConfig"] = {"tools": [*tools, *(points if claude(model) else [])]}
    measures: dict[str, Any] = {"maxTokens": limit}
    thought = thinking(model, request.thinking, limit)
    if request.temperature is not None and not thought:
        measures["temperature"] = request.temperature
    body["inferenceConfig"] = measures
    if thought:
        body["additionalModelRequestFields"] = thought
    guard = params(model).get("guardrail")
    return {**body, "guardrailConfig": guard} if guard else body


def claude(model: Model) -> bool:
    """Whether it is one of Anthropic's, behind whatever profile."""
    return "anthropic" in model.id or "claude" in model.name.lower()


def cache_point(model: Model) -> dict[str, Any] | None:
    """The mark behind what may be cached: for Claude unless it is unwanted, for others where it is asked for."""
    kept = params(model).get("cacheRetention", "short" if claude(model) else "none")
    if kept == "none":
        return None
    long = kept == "long" and claude(model)
    return {"cachePoint": {"type": "default", "ttl": "1h"} if long else {"type": "default"}}


def thinking(model: Model, level: Level, limit: int) -> dict[str, Any]:
    """The fields that let the model think first; others than Claude have none here."""
    if level == "off" or not model.reasoning or not claude(model):
        return {}
    if model.compat.get("thinkingFormat") == "adaptive":
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": _EFFORT.get(level, level)}}
    budget = min(_BUDGET[level], limit - 1_024)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1_024 else {}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    described = tool.description or tool.name
    return {"name": tool.name, "description": described, "inputSchema": {"json": dict(tool.parameters)}}


def groups(messages: Iterable[Message]) -> list[Group]:
    """Messages by role: what people and tools said between two answers is one message, results first."""
    listed: list[Group] = []
    for message in messages:
        role = "assistant" if isinstance(message, Assistant) else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if listed and listed[-1]["role"] == role:
            listed[-1]["content"] += blocks
        else:
            listed.append({"role": role, "content": blocks})
    return listed


def _blocks(message: Message) -> list[dict[str, Any]]:
    match message:
        case User():
            return _shown(message.content)
        case Assistant():
            return [block for part in message.content if (block := _part(part)) is not None]
        case ToolResult():
            content = _shown(message.content) or [{"text": "(no output)"}]
            body = {"toolUseId": call_id(message.call_id), "content": content}
            return [{"toolResult": {**body, "status": "error"} if message.is_error else body}]


def _shown(content: Content) -> list[dict[str, Any]]:
    return [block for part in content if (block := _part(part)) is not None]


def _part(part: Part) -> dict[str, Any] | None:
    match part:
        case Text(text=text):
            return {"text": text} if text.strip() else None
        case Image(media_type="application/pdf", data=data):
            return {"document": {"format": "pdf", "name": "document", "source": {"bytes": data}}}
        case Image(media_type=kind, data=data):
            return {"image": {"format": kind.removeprefix("image/"), "source": {"bytes": data}}}
        case ToolCall(id=given, name=name, arguments=arguments):
            return {"toolUse": {"toolUseId": call_id(given), "name": name, "input": dict(arguments)}}
        case Thinking(text=text, signature=signature):
            return _thought(text, signature) if signature else None


def _thought(text: str, signature: str) -> dict[str, Any]:
    if signature.startswith(REDACTED):
        return {"reasoningContent": {"redactedContent": signature.removeprefix(REDACTED)}}
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}


def call_id(given: str) -> str:
    """An id in the letters that the provider takes."""
    return _ID.sub("_", given)[:64] or "call"
