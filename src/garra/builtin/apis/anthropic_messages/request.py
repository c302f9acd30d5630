"""A request's bytes for `/v1/messages`. All up to the last answer is written once and stays the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from garra.core.messages import Assistant, Image, Message, Part, Text, Thinking, ToolCall, ToolResult, User
from garra.sdk import alternating
from garra.sdk.alternating import REDACTED, Group, apart, call_id, cut, grouped, shown
from garra.sdk.encoding import encoded
from garra.sdk.exchange import marked, params
from garra.sdk.model import Level, Model, ModelRequest, ToolSpec
from garra.sdk.written import Messages, Pieces, Written, closed


class Writer:
    """Writes request bodies; about `room` bytes of histories are remembered, the sessions used last."""

    def __init__(self, room: int = 8 << 20) -> None:
        self._written: Written[tuple[str, str]] = Written(apart, room)

    async def body(self, request: ModelRequest, thinking: str) -> Pieces:
        """The body of `request`; `thinking` is the style of the switch: `adaptive`, `enabled` or empty."""
        start = encoded(head(request, thinking))[:-1] + b',"messages":['
        done, fresh = cut(request.messages)
        key = (request.session, request.model.ref) if request.session else None
        history = await self._written.pieces(key, done, _bytes, request.rest)
        last = b"".join(encoded(group) + b"," for group in _last(groups(fresh), request, first=not done))
        return closed((start, *history, last))


def _bytes(messages: Messages, before: int) -> bytes:
    listed = groups(messages)
    if not before and listed and listed[0]["role"] != "user":
        listed.insert(0, {"role": "user", "content": [{"type": "text", "text": "(the beginning is not shown)"}]})
    return b"".join(encoded(group) + b"," for group in listed)


def _last(listed: list[Group], request: ModelRequest, *, first: bool) -> list[Group]:
    """The words not yet answered; what may be cached ends with them, the tail comes after."""
    if listed:
        listed[-1]["content"][-1] |= cached(request.model)
    if request.tail:
        block = {"type": "text", "text": marked(request.tail)}
        if listed:
            listed[-1]["content"].append(block)
        else:
            listed = [{"role": "user", "content": [block]}]
    if not listed and first:
        return [{"role": "user", "content": [{"type": "text", "text": "(nothing was said)"}]}]
    return listed


def head(request: ModelRequest, thinking: str) -> dict[str, Any]:
    """Everything but the messages."""
    model = request.model
    limit = request.max_tokens or model.max_tokens
    body: dict[str, Any] = {"model": model.id, "stream": True, "max_tokens": limit}
    switch = thought(model, request.thinking, thinking, limit)
    if request.temperature is not None and not switch:
        body["temperature"] = request.temperature
    body |= switch
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, **cached(model)}]
    if request.tools:
        tools = [_tool(tool) for tool in request.tools]
        tools[-1] |= cached(model)
        body["tools"] = tools
    return body


def cached(model: Model) -> dict[str, Any]:
    """The mark behind what may be cached: for five minutes, for an hour where that is asked for."""
    kept = params(model).get("cacheRetention", "short")
    if kept == "none":
        return {}
    return {"cache_control": {"type": "ephemeral", "ttl": "1h"} if kept == "long" else {"type": "ephemeral"}}


def thought(model: Model, level: Level, style: str, limit: int) -> dict[str, Any]:
    """The fields that let the model think first."""
    if level == "off" or not model.reasoning or not style:
        return {}
    return alternating.thought(level, style, limit)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def groups(messages: Iterable[Message]) -> list[Group]:
    """Messages by role: what people and tools said between two answers is one message, results first."""
    return grouped(messages, _blocks)


def _blocks(message: Message) -> list[dict[str, Any]]:
    match message:
        case User():
            return shown(message.content, _part)
        case Assistant():
            return shown(message.content, _part)
        case ToolResult():
            content = shown(message.content, _part) or [{"type": "text", "text": "(no output)"}]
            body = {"type": "tool_result", "tool_use_id": call_id(message.call_id), "content": content}
            return [{**body, "is_error": True} if message.is_error else body]


def _part(part: Part) -> dict[str, Any] | None:
    match part:
        case Text(text=text):
            return {"type": "text", "text": text} if text.strip() else None
        case Image(media_type="application/pdf", data=data):
            source = {"type": "base64", "media_type": "application/pdf", "data": data}
            return {"type": "document", "source": source}
        case Image(media_type=kind, data=data):
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case ToolCall(id=given, name=name, arguments=arguments):
            return {"type": "tool_use", "id": call_id(given), "name": name, "input": dict(arguments)}
        case Thinking(text=text, signature=signature):
            if signature is None:
                return None
            if signature.startswith(REDACTED):
                return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
            return {"type": "thinking", "thinking": text, "signature": signature}
