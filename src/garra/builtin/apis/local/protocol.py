"""How a small model is spoken to: a short prompt, few tools, and answers that a grammar keeps to one JSON object.

The runtime does not enforce tool calls, but it enforces a schema: every answer is `{"reply": …}` or
`{"tool": NAME, "args": …}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from garra.core.messages import Assistant, Message, ToolResult, User
from garra.sdk.model import ModelRequest, ToolSpec

MOST_TOOLS = 6
_PREFERRED = ("read", "write", "exec", "ls", "edit", "find", "grep")
_RESULT_LETTERS = 2_000
_LETTERS_A_TOKEN = 3
_STAMP = re.compile(r"^\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d[^\]\n]{0,40}\] ")
_CONTEXT = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT"


def prompt(name: str) -> str:
    """A prompt file's text."""
    return (resources.files(__package__) / "prompts" / f"{name}.md").read_text("utf-8").strip()


def chosen(tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
    """The few tools a small model can tell apart, in a fixed order."""
    known = {tool.name: tool for tool in tools}
    first = [known[name] for name in _PREFERRED if name in known]
    return tuple([*first, *(tool for tool in tools if tool.name not in _PREFERRED)][:MOST_TOOLS])


def talk(request: ModelRequest) -> dict[str, Any]:
    """The body for plain words. The smallest models do best with one short order, whatever else they are told."""
    order = prompt("talk") if request.model.compat.get("talkOnly") else request.system
    messages = [{"role": "system", "content": order}, *_spoken(request, plain=True)]
    return {"messages": messages, "temperature": 0, "max_tokens": request.max_tokens or request.model.max_tokens}


def work(request: ModelRequest) -> dict[str, Any]:
    """The body for a model that can use tools."""
    tools = chosen(request.tools)
    text = prompt("work").replace("{tools}", "\n".join(map(_line, tools)))
    system = f"{request.system}\n\n{text}".strip()
    examples = [message for message in json.loads(prompt_json()) if _fits(message, tools)]
    messages = [{"role": "system", "content": system}, *examples, *_spoken(request, plain=False)]
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": grammar(tools)}}
    limit = request.max_tokens or request.model.max_tokens
    return {"messages": messages, "temperature": 0, "max_tokens": limit, "response_format": schema}


def prompt_json() -> str:
    return (resources.files(__package__) / "prompts" / "examples.json").read_text("utf-8")


def grammar(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The schema of an answer: a reply, or a call of one of `tools` with arguments that fit it."""
    reply = _closed({"reply": {"type": "string"}})
    calls = [_closed({"tool": {"const": tool.name}, "args": _arguments(tool.parameters)}) for tool in tools]
    return {"anyOf": [reply, *calls]} if calls else reply


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Only what a call must have: what may be left out only tempts a small model."""
    properties = parameters.get("properties") or {}
    needed = [name for name in parameters.get("required") or () if name in properties]
    return _closed({name: _typed(properties[name]) for name in needed})


def _typed(schema: Any) -> dict[str, Any]:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return dict(schema) if kind in {"array", "object"} else {"type": kind if isinstance(kind, str) else "string"}


def _line(tool: ToolSpec) -> str:
    needed = ", ".join(tool.parameters.get("required") or ())
    about = tool.description.strip().split("\n")[0].split(". ")[0][:80]
    return f"- {tool.name}({needed}): {about}"


def _fits(message: Mapping[str, str], tools: Sequence[ToolSpec]) -> bool:
    """Whether an example speaks only of tools that are there."""
    needed = message.get("needs", "")
    return not needed or any(tool.name == needed for tool in tools)


def _spoken(request: ModelRequest, *, plain: bool) -> list[dict[str, str]]:
    """The newest messages that fit the window, the oldest of them a user's."""
    model = request.model
    left = (model.context_window - model.max_tokens) * _LETTERS_A_TOKEN - (0 if plain else 4_000)
    left = max(left // (4 if plain else 1), 1_000)
    kept: list[dict[str, str]] = []
    for message in reversed(request.messages):
        said = _one(message, plain=plain)
        if said is None:
            continue
        left -= len(said["content"])
        if left < 0 and kept:
            break
        kept.append(said)
    kept.reverse()
    while len(kept) > 1 and kept[0]["role"] != "user":
        del kept[0]
    return kept


def _one(message: Message, *, plain: bool) -> dict[str, str] | None:
    match message:
        case User():
            if message.text.startswith(_CONTEXT):
                return None
            return {"role": "user", "content": _STAMP.sub("", message.text)[:12_000]}
        case Assistant():
            return _answered(message, plain=plain)
        case ToolResult():
            if plain:
                return None
            text = message.text[:_RESULT_LETTERS] or "(nothing)"
            return {"role": "user", "content": f"Result of {message.name}:\n{text}"}


def _answered(message: Assistant, *, plain: bool) -> dict[str, str] | None:
    if plain:
        return {"role": "assistant", "content": message.text} if message.text else None
    call = message.calls[0] if message.calls else None
    said: dict[str, Any] = {"reply": message.text}
    if call is not None:
        said = {"tool": call.name, "args": dict(call.arguments)}
    return {"role": "assistant", "content": json.dumps(said, ensure_ascii=False)}


class Answer:
    """Reads the JSON object as it grows: the words of a reply at once, a call when it is whole."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, piece: str) -> str:
        """More of the object; gives the words of the reply that are new."""
        self._text += piece
        start = re.match(r'\s*\{\s*"reply"\s*:\s*"', self._text)
        if start is None:
            return ""
        words = _decoded(self._text[start.end() :])
        fresh, self._shown = words[self._shown :], len(words)
        return fresh

    def call(self) -> tuple[str, dict[str, Any]] | None:
        """The call, when the answer was one."""
        try:
            found = json.loads(self._text)
        except ValueError:
            return None
        if isinstance(found, dict) and isinstance(found.get("tool"), str):
            given = found.get("args")
            return found["tool"], given if isinstance(given, dict) else {}
        return None


def _decoded(raw: str) -> str:
    """A JSON string that may not have ended yet, as far as it can be read."""
    end = re.match(r'(?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*', raw)
    text = end[0] if end else ""
    text = re.sub(r"\\u[dD][89abAB][0-9a-fA-F]{2}$", "", text)
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return ""
