"""A request's bytes for `/responses`: what never changes first, the history last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from garra.core.messages import Assistant, Content, Image, Message, Text, Thinking, ToolCall, ToolResult, User
from garra.sdk.encoding import encoded
from garra.sdk.exchange import marked, params
from garra.sdk.model import Level, Model, ModelRequest, ToolSpec
from garra.sdk.written import Messages, Pieces, Written, closed

_OFF = "none"
_EMPTY: dict[str, Any] = {"role": "user", "content": [{"type": "input_text", "text": "(nothing was said)"}]}


class Writer:
    """Writes request bodies; about `room` bytes of histories are remembered, the sessions used last."""

    def __init__(self, room: int = 8 << 20) -> None:
        self._written: Written[tuple[str, str]] = Written(lambda _messages, _at: True, room)

    async def body(self, request: ModelRequest, model_id: str, left: frozenset[str] = frozenset()) -> Pieces:
        """The body of `request`; `model_id` is what the server calls the model, `left` are fields that it refuses."""
        fields = {name: value for name, value in head(request, model_id).items() if name not in left}
        start = encoded(fields)[:-1] + b',"input":['
        key = (request.session, request.model.ref) if request.session else None
        history = await self._written.pieces(key, request.messages, lambda some, _: _bytes(some), request.rest)
        last = []
        if request.tail:
            last.append({"role": "user", "content": [{"type": "input_text", "text": marked(request.tail)}]})
        elif not any(history):
            last.append(_EMPTY)
        return closed((start, *history, b"".join(encoded(item) + b"," for item in last)))


def head(request: ModelRequest, model_id: str) -> dict[str, Any]:
    """Everything but the input. `store` is off: what was said stays here."""
    model = request.model
    body: dict[str, Any] = {"model": model_id, "stream": True, "store": False}
    chatgpt = bool(model.compat.get("chatgpt"))  # which has a mind of its own about limits
    if request.system or chatgpt:
        body["instructions"] = request.system or "Answer."
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = "auto"
        body["parallel_tool_calls"] = True
    if model.compat.get("supportsMaxOutputTokens", not chatgpt):
        body["max_output_tokens"] = max(request.max_tokens or model.max_tokens, 16)
    if model.reasoning:
        body |= _reasoning(model, request.thinking)
    elif request.temperature is not None:
        body["temperature"] = request.temperature
    return body | _cache(request) | dict(model.compat.get("extraBody") or {})


def _cache(request: ModelRequest) -> dict[str, Any]:
    """What leads calls of one session to the machine that has its beginning in its cache."""
    model, kept = request.model, params(request.model).get("cacheRetention", "short")
    if not request.session or kept == "none" or not model.compat.get("supportsPromptCacheKey", True):
        return {}
    body: dict[str, Any] = {"prompt_cache_key": request.session[:64]}
    if kept == "long" and model.compat.get("supportsPromptCacheRetention", "//api.openai.com" in model.base_url):
        body["prompt_cache_retention"] = "24h"
    return body


def _reasoning(model: Model, level: Level) -> dict[str, Any]:
    """The switch for thinking; its encrypted form comes along, to be sent back."""
    efforts = model.compat.get("reasoningEffortMap") or {}
    effort = efforts.get(level, _OFF if level == "off" else level)
    asked: dict[str, Any] = {"effort": effort} if effort else {}
    if level != "off":
        asked["summary"] = "auto"
    fields: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}
    return {"reasoning": asked, **fields} if asked else fields


def _tool(tool: ToolSpec) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", **about, "strict": False}


def _bytes(messages: Messages) -> bytes:
    return b"".join(encoded(item) + b"," for item in items(messages))


def items(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    """The wire form of `messages`."""
    for message in messages:
        match message:
            case User():
                yield {"role": "user", "content": _shown(message.content)}
            case Assistant():
                yield from _answered(message)
            case ToolResult():
                yield {"type": "function_call_output", "call_id": message.call_id, "output": _output(message)}


def _answered(message: Assistant) -> Iterator[dict[str, Any]]:
    for part in message.content:
        match part:
            case Text(text=text) if text.strip():
                said = {"type": "output_text", "text": text, "annotations": []}
                yield {"type": "message", "role": "assistant", "status": "completed", "content": [said]}
            case ToolCall(id=given, name=name, arguments=arguments):
                written = encoded(arguments).decode()
                yield {"type": "function_call", "call_id": given, "name": name, "arguments": written}
            case Thinking(text=text, signature=signature) if signature:
                yield from _thought(text, signature)
            case _:
                pass


def _thought(text: str, signature: str) -> Iterator[dict[str, Any]]:
    """A thought goes back in the form in which it came, encrypted."""
    try:
        item = msgspec.json.decode(signature)
    except msgspec.DecodeError:
        return
    if isinstance(item, dict) and item.get("encrypted_content"):
        summary = [{"type": "summary_text", "text": text}] if text else []
        yield {"type": "reasoning", **item, "summary": summary}


def _output(result: ToolResult) -> Any:
    if any(isinstance(part, Image) for part in result.content):
        return _shown(result.content)
    return result.text or "(no output)"


def _shown(content: Content) -> list[dict[str, Any]]:
    return [_part(part) for part in content]


def _part(part: Text | Image) -> dict[str, Any]:
    match part:
        case Text(text=text):
            return {"type": "input_text", "text": text}
        case Image(media_type="application/pdf" as kind, data=data):
            return {"type": "input_file", "filename": "document.pdf", "file_data": f"data:{kind};base64,{data}"}
        case Image(media_type=kind, data=data):
            return {"type": "input_image", "detail": "auto", "image_url": f"data:{kind};base64,{data}"}
