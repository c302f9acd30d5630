"""Replies as values, and how each API family says them on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from garra.core.value import frozen

CARRIER = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT"
"""How a user message begins that holds no words of a person."""


@frozen
class Say:
    """Words, after some thought; `usage` is (input, output) tokens, None leaves it out."""

    text: str
    thinking: str = ""
    usage: tuple[int, int] | None = (11, 5)
    delay_s: float = 0.0
    finish: str = "stop"
    signature: str = "sig"


@frozen
class Use:
    """A call of a tool, after some words."""

    name: str
    arguments: Mapping[str, Any]
    id: str = "call_1"
    text: str = ""
    usage: tuple[int, int] | None = (11, 5)


@frozen
class Fail:
    """An error answer."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@frozen
class Cut:
    """Some words, then the connection breaks; with `politely` it closes as if all were said."""

    text: str
    politely: bool = False


@frozen
class Silence:
    """The head of an answer, then nothing."""

    seconds: float = 30.0


@frozen
class Raw:
    """Bytes as they go out, one chunk each."""

    chunks: tuple[bytes, ...]
    status: int = 200
    kind: str = "text/event-stream"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    delay_s: float = 0.0
    pause_s: float = 0.0


Reply = Say | Use | Fail | Cut | Silence | Raw


def rendered(reply: Reply, path: str, body: Mapping[str, Any]) -> Raw:
    """`reply` in the dialect of `path`: `/messages` is Anthropic's, everything else is chat completions."""
    anthropic = path.split("?")[0].endswith("/messages")
    match reply:
        case Raw():
            return reply
        case Silence(seconds=seconds):
            return Raw((b": waiting\n\n",), pause_s=seconds)
        case Fail():
            error = {"error": {"message": reply.message, "type": "error"}}
            said = json.dumps({"type": "error", **error} if anthropic else error).encode()
            return Raw((said,), reply.status, "application/json", reply.headers)
        case Say() | Use() | Cut():
            say = messages if anthropic else completions
            delay = reply.delay_s if isinstance(reply, Say) else 0.0
            cut = isinstance(reply, Cut) and not reply.politely
            return Raw(tuple(say(reply, str(body.get("model")))), cut=cut, delay_s=delay)


def completions(reply: Say | Use | Cut, model: str) -> Iterator[bytes]:
    """Chunks of a chat completion."""

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data({"id": "c1", "object": "chat.completion.chunk", "model": model, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    if isinstance(reply, Say) and reply.thinking:
        yield chunk({"reasoning_content": reply.thinking})
    for word in _words(reply.text):
        yield chunk({"content": word})
    if isinstance(reply, Cut):
        return
    if isinstance(reply, Use):
        function = {"name": reply.name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": reply.id, "type": "function", "function": function}]})
        for piece in _pieces(json.dumps(reply.arguments)):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if isinstance(reply, Use) else reply.finish)
    usage = reply.usage
    if usage is not None:
        counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        yield _data({"id": "c1", "choices": [], "usage": counted})
    yield b"data: [DONE]\n\n"


def messages(reply: Say | Use | Cut, model: str) -> Iterator[bytes]:
    """Events of an Anthropic message."""
    usage = (reply.usage or (0, 0)) if isinstance(reply, Say | Use) else (11, 5)
    head: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
    }
    counted = {"input_tokens": usage[0], "output_tokens": 1}
    yield _event("message_start", message={**head, "stop_reason": None, "stop_sequence": None, "usage": counted})
    for index, (start, deltas) in enumerate(_blocks(reply)):
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        if isinstance(reply, Cut):
            return
        yield _event("content_block_stop", index=index)
    finish = (
        {"stop": "end_turn", "length": "max_tokens"}.get(reply.finish, "end_turn")
        if isinstance(reply, Say)
        else "tool_use"
    )
    stopped = {"stop_reason": finish, "stop_sequence": None}
    yield _event("message_delta", delta=stopped, usage={"output_tokens": usage[1]})
    yield _event("message_stop")


def _blocks(reply: Say | Use | Cut) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if isinstance(reply, Say) and reply.thinking:
        deltas = [
            {"type": "thinking_delta", "thinking": reply.thinking},
            {"type": "signature_delta", "signature": reply.signature},
        ]
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in _words(reply.text)]
    if isinstance(reply, Use):
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(json.dumps(reply.arguments))]
        yield {"type": "tool_use", "id": reply.id, "name": reply.name, "input": {}}, pieces


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*|\s+", text)


def _pieces(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _data(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _event(name: str, **body: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **body})}\n\n".encode()
