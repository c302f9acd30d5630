"""A request's bytes for `streamGenerateContent`: what never changes first, the history last.

Google signs parts of an answer. The signature of a part is kept as that of a thought before it, and goes back on the
same part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from garra.core.messages import Assistant, Content, Image, Message, Text, Thinking, ToolCall, ToolResult
from garra.sdk.encoding import encoded
from garra.sdk.exchange import marked, params
from garra.sdk.model import Level, Model, ModelRequest, ToolSpec
from garra.sdk.written import Messages, Pieces, Written, closed

_BUDGET: Final[dict[str, int]] = {"minimal": 512, "low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576}
_LEVEL: Final[dict[str, str]] = {"xhigh": "high"}
Group = dict[str, Any]


class Writer:
    """Writes request bodies; about `room` bytes of histories are remembered, the sessions used last."""

    def __init__(self, room: int = 8 << 20) -> None:
        self._written: Written[tuple[str, str]] = Written(_apart, room)

    async def body(self, request: ModelRequest, *, thinks: bool = True) -> Pieces:
        """The body of `request`; without `thinks` nothing is said of thinking."""
        start = encoded(head(request, thinks=thinks))[:-1] + b',"contents":['
        key = (request.session, request.model.ref) if request.session else None
        history = await self._written.pieces(key, request.messages, lambda some, _: _bytes(some), request.rest)
        last: list[Group] = []
        if request.tail:
            last.append({"role": "user", "parts": [{"text": marked(request.tail)}]})
        elif not any(history):
            last.append({"role": "user", "parts": [{"text": "(nothing was said)"}]})
        return closed((start, *history, b"".join(encoded(group) + b"," for group in last)))


def _apart(messages: Messages, at: int) -> bool:
    """Results of one batch are one message."""
    return not isinstance(messages[at], ToolResult)


def head(request: ModelRequest, *, thinks: bool = True) -> dict[str, Any]:
    """Everything but the contents."""
    model = request.model
    body: dict[str, Any] = {}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
    made: dict[str, Any] = {"maxOutputTokens": request.max_tokens or model.max_tokens}
    if request.temperature is not None:
        made["temperature"] = request.temperature
    if thinks and (thought := thinking(model, request.thinking)):
        made["thinkingConfig"] = thought
    body["generationConfig"] = made
    if cached := params(model).get("cachedContent"):
        body["cachedContent"] = str(cached)
    return body


def thinking(model: Model, level: Level) -> dict[str, Any]:
    """The switch for thinking: a budget for Gemini 2.5, a level for those after it. Some cannot be kept from it."""
    if not model.reasoning:
        return {}
    style = str(model.compat.get("thinkingFormat") or ("budget" if "gemini-2" in model.id else "level"))
    if style == "budget":
        if level == "off":
            return {"thinkingBudget": 128 if "pro" in model.id else 0}
        return {"includeThoughts": True, "thinkingBudget": _BUDGET[level]}
    if level == "off":
        return {"thinkingLevel": "low" if "pro" in model.id else "minimal"}
    named = "low" if "pro" in model.id and level == "minimal" else _LEVEL.get(level, level)
    return {"includeThoughts": True, "thinkingLevel": named}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": dict(tool.parameters)}


def _bytes(messages: Messages) -> bytes:
    return b"".join(encoded(group) + b"," for group in groups(messages))


def groups(messages: Iterable[Message]) -> list[Group]:
    """Messages in Google's roles. Pictures that tools gave follow their batch of results in a message of their own."""
    listed: list[Group] = []
    results: list[ToolResult] = []
    for message in messages:
        if isinstance(message, ToolResult):
            results.append(message)
            continue
        listed += _results(results)
        results = []
        parts = _answered(message) if isinstance(message, Assistant) else _shown(message.content)
        if parts:
            listed.append({"role": "model" if isinstance(message, Assistant) else "user", "parts": parts})
    return listed + _results(results)


def _results(results: list[ToolResult]) -> list[Group]:
    if not results:
        return []
    answers = [_result(result) for result in results]
    pictures = [part for result in results for part in result.content if isinstance(part, Image)]
    shown = [{"role": "user", "parts": [{"text": "From the tool:"}, *_shown(tuple(pictures))]}] if pictures else []
    return [{"role": "user", "parts": answers}, *shown]


def _result(result: ToolResult) -> dict[str, Any]:
    text = result.text or ("(see the picture)" if result.content else "(no output)")
    return {"functionResponse": {"name": result.name, "response": {"error" if result.is_error else "output": text}}}


def _shown(content: Content) -> list[dict[str, Any]]:
    return [
        {"inlineData": {"mimeType": part.media_type, "data": part.data}}
        if isinstance(part, Image)
        else {"text": part.text}
        for part in content
        if isinstance(part, Image) or re.search(r"\S", part.text)
    ]


def _answered(message: Assistant) -> list[dict[str, Any]]:
    """An answer's parts, each with the signature that was kept before it."""
    parts: list[dict[str, Any]] = []
    signature: str | None = None
    for part in message.content:
        if isinstance(part, Thinking):
            if signature:
                parts.append({"text": "", "thoughtSignature": signature})
            signature = part.signature
            continue
        body = _said(part) if isinstance(part, Text | ToolCall) else None
        if body:
            parts.append({**body, "thoughtSignature": signature} if signature else body)
            signature = None
    return [*parts, {"text": "", "thoughtSignature": signature}] if signature else parts


def _said(part: Text | ToolCall) -> dict[str, Any] | None:
    if isinstance(part, ToolCall):
        return {"functionCall": {"name": part.name, "args": dict(part.arguments)}}
    return {"text": part.text} if part.text.strip() else None
