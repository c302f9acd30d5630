"""A request's bytes for `/api/chat`: what never changes first, the history last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from garra.core.messages import Assistant, Content, Image, Message, Thinking, ToolResult, User
from garra.sdk.encoding import encoded
from garra.sdk.exchange import marked, params
from garra.sdk.model import Level, Model, ModelRequest, ToolSpec
from garra.sdk.written import Messages, Pieces, Written, closed

_TOP: Final = ("format", "keep_alive", "truncate", "shift")
"""Keys of `params` that stand beside the messages."""

_OPTIONS: Final = (
    "num_ctx", "num_keep", "seed", "num_predict", "top_k", "top_p", "min_p", "typical_p", "repeat_last_n",
    "temperature", "repeat_penalty", "presence_penalty", "frequency_penalty", "stop", "num_batch", "num_gpu",
    "main_gpu", "use_mmap", "num_thread",
)  # fmt: skip


class Writer:
    """Writes request bodies; about `room` bytes of histories are remembered, the sessions used last."""

    def __init__(self, room: int = 8 << 20) -> None:
        self._written: Written[tuple[str, str]] = Written(_apart, room)

    async def body(self, request: ModelRequest, *, thinks: bool = True, tools: bool = True) -> Pieces:
        """The body of `request`; without `thinks` nothing is said of thinking, without `tools` none is offered."""
        first = encoded(head(request, thinks=thinks, tools=tools))[:-1] + b',"messages":['
        if request.system:
            first += encoded({"role": "system", "content": request.system}) + b","
        key = (request.session, request.model.ref) if request.session else None
        history = await self._written.pieces(key, request.messages, lambda some, _: _bytes(some), request.rest)
        last = []
        if request.tail:
            last.append({"role": "user", "content": marked(request.tail)})
        elif not any(history):
            last.append({"role": "user", "content": "(nothing was said)"})
        return closed((first, *history, b"".join(encoded(body) + b"," for body in last)))


def _apart(messages: Messages, at: int) -> bool:
    """Results of one batch stay together: their pictures are shown behind the last."""
    return not isinstance(messages[at], ToolResult)


def head(request: ModelRequest, *, thinks: bool = True, tools: bool = True) -> dict[str, Any]:
    """Everything but the messages."""
    model, told = request.model, params(request.model)
    body: dict[str, Any] = {"model": model.id, "stream": True}
    if thinks and (switch := thinking(model, request.thinking)) is not None:
        body["think"] = switch
    options: dict[str, Any] = {"num_predict": request.max_tokens or model.max_tokens}
    if request.temperature is not None:
        options["temperature"] = request.temperature
    options |= {name: told[name] for name in _OPTIONS if name in told}
    window = options.get("num_ctx", 1)
    if not isinstance(window, int) or window < 1:
        del options["num_ctx"]
    body["options"] = options
    body |= {name: told[name] for name in _TOP if name in told}
    if request.tools and tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return body


def thinking(model: Model, level: Level) -> bool | str | None:
    """The switch for thinking: on or off, a word for those that know more; None: nothing is said."""
    told = params(model)
    own = told.get("think", told.get("thinking"))
    if isinstance(own, bool | str) and level == "off":
        return own
    if not model.reasoning:
        return None
    if level == "off":
        return False
    if "gpt-oss" not in model.id:
        return True
    return {"minimal": "low", "xhigh": "high"}.get(level, level)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": about}


def _bytes(messages: Messages) -> bytes:
    return b"".join(encoded(body) + b"," for body in bodies(messages))


def bodies(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    """The wire form of `messages`. Pictures that tools gave follow their batch of results in a user message."""
    pictures: list[str] = []
    for message in messages:
        if pictures and not isinstance(message, ToolResult):
            yield {"role": "user", "content": "From the tool:", "images": pictures}
            pictures = []
        match message:
            case User():
                shown = _pictures(message.content)
                body = {"role": "user", "content": message.text}
                yield {**body, "images": shown} if shown else body
            case Assistant():
                yield _answered(message)
            case ToolResult():
                pictures = pictures + _pictures(message.content)
                text = message.text or ("(see the picture)" if message.content else "(no output)")
                yield {"role": "tool", "tool_name": message.name, "tool_call_id": message.call_id, "content": text}
    if pictures:
        yield {"role": "user", "content": "From the tool:", "images": pictures}


def _answered(message: Assistant) -> dict[str, Any]:
    body: dict[str, Any] = {"role": "assistant", "content": message.text}
    thought = "".join(part.text for part in message.content if isinstance(part, Thinking))
    if thought:
        body["thinking"] = thought
    if message.calls:
        body["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.calls
        ]
    return body


def _pictures(content: Content) -> list[str]:
    return [part.data for part in content if isinstance(part, Image) and part.media_type.startswith("image/")]
