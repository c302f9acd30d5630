"""What one server accepts: the quirks of a provider as values, read from `Model.compat` (the original's key names)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

from garra.core.errors import Failure, FailureKind
from garra.core.value import frozen
from garra.sdk.model import Level, Model

Field = Literal["max_completion_tokens", "max_tokens", ""]
_LEVELS: dict[str, str] = {"minimal": "low", "xhigh": "high"}


@frozen
class Dialect:
    """How to write a request for one server.

    `limit_field` names the field of the output limit; empty: none is sent. `tail` says where the changing part
    goes: a `message` of its own, or merged into the last one for servers that want roles to alternate.
    `thinking` is the style of the reasoning switch. `reasoning_back` names the field in which thoughts go back;
    `content`: they are parts of it. `documents` is the form of a PDF file.
    """

    limit_field: Field = "max_completion_tokens"
    usage: bool = True
    developer: bool = False
    temperature: bool = True
    tools: bool = True
    tool_choice: bool = True
    plain_content: bool = False
    result_name: bool = False
    tail: Literal["message", "merge"] = "message"
    thinking: str = ""
    reasoning_back: str = ""
    cache_key: bool = False
    null_content: bool = True
    documents: Literal["file", "document_url"] = "file"


MISTRAL = Dialect(
    limit_field="max_tokens",
    usage=False,
    result_name=True,
    tail="merge",
    thinking="mistral",
    reasoning_back="content",
    documents="document_url",
)
"""Mistral's own."""


def of(model: Model) -> Dialect:
    """The dialect of `model`'s provider, as far as it is told."""
    told = model.compat
    plain = Dialect()
    back = "reasoning_content" if told.get("requiresReasoningContentOnAssistantMessages") else ""
    effort = "openai" if told.get("supportsReasoningEffort", model.reasoning) else ""
    return Dialect(
        limit_field=told.get("maxTokensField", plain.limit_field),
        usage=bool(told.get("supportsUsageInStreaming", plain.usage)),
        developer=bool(told.get("supportsDeveloperRole", plain.developer)) and model.reasoning,
        temperature=bool(told.get("supportsTemperature", plain.temperature)),
        tools=bool(told.get("supportsTools", plain.tools)),
        tool_choice=bool(told.get("supportsToolChoice", plain.tool_choice)),
        plain_content=bool(told.get("requiresStringContent", plain.plain_content)),
        result_name=bool(told.get("requiresToolResultName", plain.result_name)),
        tail="merge" if told.get("tail") == "merge" else "message",
        thinking=str(told.get("thinkingFormat", effort)),
        reasoning_back=back,
        cache_key=bool(told.get("supportsPromptCacheKey", plain.cache_key)),
        null_content=bool(told.get("acceptsNullContent", plain.null_content)),
    )


def reasoning(dialect: Dialect, model: Model, level: Level) -> dict[str, Any]:
    """The fields that turn thinking on or off for this server."""
    on = level != "off"
    efforts = model.compat.get("reasoningEffortMap") or {}
    effort = str(efforts.get(level, _LEVELS.get(level, level)))
    match dialect.thinking:
        case "openai":
            return {"reasoning_effort": effort} if on else {}
        case "openrouter":
            return {"reasoning": {"effort": effort}} if on else {}
        case "together":
            return {"reasoning": {"enabled": on}}
        case "mistral":
            return _mistral(model) if on else {}
        case "qwen":
            return {"enable_thinking": on}
        case "qwen-chat-template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case "deepseek" | "zai":
            return {"thinking": {"type": "enabled" if on else "disabled"}}
        case _:
            return {}


def _mistral(model: Model) -> dict[str, Any]:
    """Those that always think are asked by another word than those that can."""
    return {"prompt_mode": "reasoning"} if "magistral" in model.id else {"reasoning_effort": "high"}


_COMPLAINTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("stream_options|include_usage", {"usage": False}),
    ("developer", {"developer": False}),
    ("temperature", {"temperature": False}),
    ("reasoning_effort|reasoning|prompt_mode|enable_thinking|chat_template_kwargs|thinking", {"thinking": ""}),
    ("prompt_cache_key", {"cache_key": False}),
    ("tool_choice", {"tool_choice": False}),
    (
        "alternat|unexpected role|only supports? .{0,20}roles?|system message must be at the beginning",
        {"tail": "merge"},
    ),
    ("content.{0,40}(must be|should be|expected).{0,20}string|expected a string", {"plain_content": True}),
    ("does not support tools|tools? (is|are) not supported|tool use is not supported", {"tools": False}),
    ("content.{0,30}null|null.{0,30}content", {"null_content": False}),
)


def without(dialect: Dialect, failure: Failure) -> Dialect | None:
    """A plainer dialect, when the server's refusal names what it does not know; None when there is nothing to drop."""
    if failure.kind is not FailureKind.REFUSED:
        return None
    said = failure.message
    if re.search(r"max_completion_tokens|max_tokens", said):
        return _other_limit(dialect, said)
    for pattern, change in _COMPLAINTS:
        plainer = replace(dialect, **change)
        if plainer != dialect and re.search(pattern, said, re.I):
            return plainer
    return None


def _other_limit(dialect: Dialect, said: str) -> Dialect | None:
    """Each field in turn, then none. A limit that is only too large is not a matter of the field's name."""
    if dialect.limit_field == "max_completion_tokens" and "max_completion_tokens" in said:
        return replace(dialect, limit_field="max_tokens")
    if dialect.limit_field == "max_tokens" and re.search(
        r"max_completion_tokens|unsupported|unknown|not permitted", said, re.I
    ):
        return replace(dialect, limit_field="max_completion_tokens" if "instead" in said else "")
    return replace(dialect, limit_field="") if dialect.limit_field else None
