"""A request's bytes. What does not change from turn to turn stands first and is written the same way each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from garra.builtin.apis.openai_completions.dialect import Dialect, reasoning
from garra.core.messages import Assistant, Content, Image, Message, Text, Thinking, ToolResult, User
from garra.sdk.encoding import encoded
from garra.sdk.exchange import marked as as_context
from garra.sdk.exchange import params
from garra.sdk.model import ModelRequest, ToolSpec
from garra.sdk.written import Messages, Pieces, Written, closed

_Key = tuple[str, str, Dialect]
"""Session, model and dialect."""


class Writer:
    """Writes request bodies; remembers what it wrote for a session, so that a long history is written once.

    About `room` bytes are remembered, the sessions used last.
    """

    def __init__(self, room: int = 8 << 20) -> None:
        self._written: Written[_Key] = Written(_apart, room)

    async def body(self, request: ModelRequest, dialect: Dialect) -> Pieces:
        """The body of `request`; `messages` come last in it, so that it grows only at its end."""
        first = [encoded(_head(request, dialect))[:-1], b',"messages":[']
        if request.system:
            role = "developer" if dialect.developer else "system"
            first += [encoded({"role": role, "content": request.system}), b","]
        merged = request.messages[-1:] if request.tail and dialect.tail == "merge" else ()
        messages = request.messages[: len(request.messages) - len(merged)]
        key = (request.session, request.model.ref, dialect) if request.session else None
        history = await self._written.pieces(key, messages, lambda some, _: _listed(some, dialect), request.rest)
        return closed((b"".join(first), *history, b"".join(_closing(request.tail, dialect, merged))))


def _apart(messages: Messages, at: int) -> bool:
    """Results of one batch stay together: their pictures are shown behind the last."""
    return not isinstance(messages[at], ToolResult)


def _listed(messages: Messages, dialect: Dialect) -> bytes:
    return b"".join(encoded(body) + b"," for body in bodies(messages, dialect))


def _closing(tail: str, dialect: Dialect, last: Messages) -> list[bytes]:
    """What follows the remembered history: the tail, in the form this server takes it."""
    if not tail:
        return []
    marked = as_context(tail)
    if not last:
        return [encoded({"role": "user", "content": marked})]
    listed = list(bodies(last, dialect))
    listed[-1] = {**listed[-1], "content": _appended(listed[-1].get("content"), marked)}
    return [encoded(body) + b"," for body in listed]


def _appended(content: Any, marked: str) -> Any:
    if isinstance(content, list):
        return [*content, {"type": "text", "text": marked}]
    return f"{content}\n\n{marked}" if content else marked


def _head(request: ModelRequest, dialect: Dialect) -> dict[str, Any]:
    model = request.model
    head: dict[str, Any] = {"model": model.id, "stream": True}
    if dialect.usage:
        head["stream_options"] = {"include_usage": True}
    if dialect.limit_field:
        head[dialect.limit_field] = request.max_tokens or model.max_tokens
    if request.temperature is not None and dialect.temperature:
        head["temperature"] = request.temperature
    if dialect.cache_key and request.session:
        head |= _cache(request)
    if model.reasoning:
        head |= reasoning(dialect, model, request.thinking)
    if request.tools and dialect.tools:
        head["tools"] = [_tool(tool) for tool in request.tools]
        if dialect.tool_choice:
            head["tool_choice"] = "auto"
    return head | dict(model.compat.get("extraBody") or {}) | _own(params(model))


def _own(told: Mapping[str, Any]) -> dict[str, Any]:
    """What the owner wants in the body as it is."""
    template, body = told.get("chat_template_kwargs"), told.get("extra_body", told.get("extraBody"))
    own: dict[str, Any] = {"chat_template_kwargs": template} if isinstance(template, Mapping) else {}
    return own | dict(body) if isinstance(body, Mapping) else own


def _cache(request: ModelRequest) -> dict[str, Any]:
    """What leads calls of one session to the machine that has its beginning in its cache."""
    kept = params(request.model).get("cacheRetention", "short")
    if kept == "none":
        return {}
    key = {"prompt_cache_key": request.session[:64]}
    return {**key, "prompt_cache_retention": "24h"} if kept == "long" else key


def _tool(tool: ToolSpec) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": about}


def bodies(messages: Iterable[Message], dialect: Dialect) -> Iterator[dict[str, Any]]:
    """The wire form of `messages`. Pictures that tools gave follow their batch of results in a user message."""
    pictures: list[Image] = []
    for message in messages:
        if pictures and not isinstance(message, ToolResult):
            yield _shown(pictures, dialect)
            pictures = []
        match message:
            case User():
                yield {"role": "user", "content": _content(message.content, dialect)}
            case Assistant():
                yield _assistant(message, dialect)
            case ToolResult():
                pictures += [part for part in message.content if isinstance(part, Image)]
                yield _result(message, dialect)
    if pictures:
        yield _shown(pictures, dialect)


def _assistant(message: Assistant, dialect: Dialect) -> dict[str, Any]:
    calls = message.calls if dialect.tools else ()
    text = message.text
    body: dict[str, Any] = {"role": "assistant", "content": text or (None if calls and dialect.null_content else "")}
    if dialect.reasoning_back:
        thoughts = "".join(part.text for part in message.content if isinstance(part, Thinking))
        if dialect.reasoning_back != "content":
            body[dialect.reasoning_back] = thoughts
        elif thoughts:
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": thoughts}]}
            body["content"] = [thought, {"type": "text", "text": text}] if text else [thought]
    if calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": encoded(call.arguments).decode()},
            }
            for call in calls
        ]
    return body


def _result(message: ToolResult, dialect: Dialect) -> dict[str, Any]:
    text = message.text or ("(see the picture)" if message.content else "(no output)")
    if not dialect.tools:
        return {"role": "user", "content": f"Result of {message.name}:\n{text}"}
    body = {"role": "tool", "tool_call_id": message.call_id, "content": text}
    return {**body, "name": message.name} if dialect.result_name else body


def _shown(pictures: list[Image], dialect: Dialect) -> dict[str, Any]:
    shown = [_picture(picture, dialect) for picture in pictures]
    return {"role": "user", "content": [{"type": "text", "text": "From the tool:"}, *shown]}


def _content(content: Content, dialect: Dialect) -> Any:
    pictures = [part for part in content if isinstance(part, Image)]
    if not pictures or dialect.plain_content:
        return "".join(part.text for part in content if isinstance(part, Text))
    return [
        _picture(part, dialect) if isinstance(part, Image) else {"type": "text", "text": part.text} for part in content
    ]


def _picture(image: Image, dialect: Dialect) -> dict[str, Any]:
    if image.media_type == "application/pdf":
        data = f"data:application/pdf;base64,{image.data}"
        if dialect.documents == "document_url":
            return {"type": "document_url", "document_url": data}
        return {"type": "file", "file": {"filename": "document.pdf", "file_data": data}}
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{image.data}"}}
