"""A request's bytes for `converse-stream`: what never changes first, the history last.

What may be cached ends in a cache point: the system prompt, the tools, the last words before the tail.
"""

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

    async def body(self, request: ModelRequest) -> Pieces:
        start = encoded(head(request))[:-1] + b',"messages":['
        done, fresh = cut(request.messages)
        key = (request.session, request.model.ref) if request.session else None
        history = await self._written.pieces(key, done, _bytes, request.rest)
        listed = _last(groups(fresh), request, first=not done)
        return closed((start, *history, b"".join(encoded(group) + b"," for group in listed)))


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
    return alternating.thought(level, str(model.compat.get("thinkingFormat", "")), limit)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    described = tool.description or tool.name
    return {"name": tool.name, "description": described, "inputSchema": {"json": dict(tool.parameters)}}


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
            content = shown(message.content, _part) or [{"text": "(no output)"}]
            body = {"toolUseId": call_id(message.call_id), "content": content}
            return [{"toolResult": {**body, "status": "error"} if message.is_error else body}]


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
