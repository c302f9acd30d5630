"""A provider that refuses what real ones refuse: unpaired calls, foreign thoughts, empty texts, odd ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from garra.core.messages import Assistant, Content, Message, Text, Thinking, ToolCall, ToolResult

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")

Wire = list[dict[str, Any]]


def openai(messages: Sequence[Message]) -> Wire:
    """The history as chat-completions shows it, as plainly as can be."""
    return [_openai(message) for message in messages]


def _openai(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolResult):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if not isinstance(message, Assistant):
        return {"role": "user", "content": [_block(part) for part in message.content]}
    calls = [{"id": call.id, "function": {"name": call.name}} for call in message.calls]
    texts = [_block(part) for part in message.content if isinstance(part, Text)]
    return {"role": "assistant", "content": texts, **({"tool_calls": calls} if calls else {})}


def anthropic(messages: Sequence[Message]) -> Wire:
    """The history as the messages API shows it: results in one user message behind their calls."""
    wire: Wire = []
    previous: Message | None = None
    for message in messages:
        if isinstance(message, ToolResult):
            block = {"type": "tool_result", "tool_use_id": message.call_id, "content": _texts(message.content)}
            if isinstance(previous, ToolResult):
                wire[-1]["content"].append(block)
            else:
                wire.append({"role": "user", "content": [block]})
        else:
            role = "assistant" if isinstance(message, Assistant) else "user"
            wire.append({"role": role, "content": [_block(part) for part in message.content]})
        previous = message
    return wire


def _texts(content: Content) -> list[dict[str, Any]]:
    return [_block(part) for part in content]


def _block(part: Any) -> dict[str, Any]:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Thinking():
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCall():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": dict(part.arguments)}
        case _:
            return {"type": "image", "media_type": part.media_type, "data": part.data}


def fault(wire: Wire, *, signatures: str) -> str | None:
    """Why a provider would answer 400; `signatures` is how its own thoughts are signed."""
    if wire and wire[0]["role"] != "user":
        return "first message must use the user role"
    return _pairing(wire) or next((why for each in wire if (why := _blocks(each, signatures)) is not None), None)


def _blocks(message: dict[str, Any], signatures: str) -> str | None:
    content = message["content"] if isinstance(message["content"], list) else []
    if message["role"] != "tool" and not content and not message.get("tool_calls"):
        return "messages: content must be non-empty"
    for block in content:
        if block["type"] == "text" and not block["text"].strip():
            return "messages: text content blocks must be non-empty"
        if block["type"] == "thinking" and not str(block["signature"]).startswith(signatures):
            return "Invalid `signature` in `thinking` block"
        if block["type"] == "tool_result" and not block["content"]:
            return "tool_result: content must be non-empty"
    return None


def _ids(message: dict[str, Any]) -> tuple[list[str], list[str]]:
    blocks = message["content"] if isinstance(message["content"], list) else []
    uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return [call["id"] for call in message.get("tool_calls", [])], uses


def _results(message: dict[str, Any]) -> list[str]:
    blocks = message["content"] if isinstance(message["content"], list) else []
    return [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


def _pairing(wire: Wire) -> str | None:
    used: set[str] = set()
    at = 0
    while at < len(wire):
        message, at = wire[at], at + 1
        if message["role"] != "assistant":
            if message["role"] == "tool" or _results(message):
                return "a result without a preceding call"
            continue
        calls, uses = _ids(message)
        ids = calls or uses
        if len(set(ids)) < len(ids) or used & set(ids):
            return "duplicate tool call id"
        if not all(ID.match(each) for each in ids):
            return f"ids {ids} do not match the pattern"
        used |= set(ids)
        got: list[str] = []
        if calls:
            while at < len(wire) and wire[at]["role"] == "tool":
                got.append(wire[at]["tool_call_id"])
                at += 1
        elif uses:
            got = _results(wire[at]) if at < len(wire) else []
            at += 1
        if sorted(got) != sorted(ids):
            return f"calls {sorted(ids)} are answered by {sorted(got)}"
    return None
