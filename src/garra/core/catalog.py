"""What a server says of its models, in one shape, and whose word counts: field by field, the first that says anything.

The order is the owner's configuration, a plugin's file, what servers said of themselves, a preview. A row has the
names of `FIELDS`, and only those that its source knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

FIELDS: Final = (
    "name", "api", "base_url", "context_window", "max_tokens", "reasoning", "input", "cost", "compat",
)  # fmt: skip
MOST: Final = 5_000
"""Models of one server that are kept."""

Row = Mapping[str, Any]


def merged(sources: Iterable[Row]) -> dict[str, Any]:
    """One row of several, the first with a word on a field deciding it; of `cost` and `compat` each part for itself."""
    found: dict[str, Any] = {}
    for source in sources:
        for name, value in source.items():
            if value is None or value == "":
                continue
            if isinstance(value, Mapping):
                found[name] = {**value, **found.get(name, {})}
            else:
                found.setdefault(name, value)
    return found


def listed(body: object) -> dict[str, dict[str, Any]]:
    """The rows of `GET /models` as OpenAI has it, with what OpenRouter, vLLM, llama.cpp and others say beside it."""
    inner = body.get("data") or body.get("models") if isinstance(body, Mapping) else body
    rows = inner if isinstance(inner, list) else []
    return {name: _plain(row) for row in rows[:MOST] if isinstance(row, Mapping) and (name := _name(row))}


def _name(row: Mapping[str, Any]) -> str:
    name = row.get("id") or row.get("name")
    return name if isinstance(name, str) and len(name) <= 200 else ""


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    top, meta, built = (_map(row.get(name)) for name in ("top_provider", "meta", "architecture"))
    window = (row.get(name) for name in ("loaded_context_length", "max_model_len", "context_length", "context_window",
                                         "max_context_length"))  # fmt: skip
    shown = row.get("name") or row.get("display_name")
    able = row.get("supported_parameters")
    seen = built.get("input_modalities")
    told = {
        "name": shown if isinstance(shown, str) and shown != _name(row) else None,
        "context_window": next(
            (n for each in (*window, meta.get("n_ctx"), meta.get("n_ctx_train")) if (n := _count(each))), None
        ),
        "max_tokens": _count(top.get("max_completion_tokens")) or _count(row.get("max_output_tokens")),
        "reasoning": "reasoning" in able if isinstance(able, list) else None,
        "input": tuple(each for each in ("text", "image") if each in seen) if isinstance(seen, list) else None,
        "cost": _prices(row.get("pricing")),
    }
    return {name: value for name, value in told.items() if value}


def _prices(pricing: object) -> dict[str, float] | None:
    """US dollars for a million tokens, of dollars for one."""
    names = {
        "input": "prompt",
        "output": "completion",
        "cache_read": "input_cache_read",
        "cache_write": "input_cache_write",
    }
    row = _map(pricing)
    return {name: round(each * 1e6, 6) for name, own in names.items() if (each := _price(row.get(own)))} or None


def _price(value: object) -> float:
    try:
        each = float(value) if isinstance(value, str | int | float) else 0.0
    except ValueError:
        return 0.0
    return each if 0 < each < 1 else 0.0


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# ---- a router that says how each of its models is reached

_THINKS: Final = r"claude-|gemini-|gpt-5|gpt-6|gpt-oss|deepseek-v|reasoner|glm-5|grok-4|minimax-m"
_SEES: Final = r"claude-|gemini-|gpt-4o|gpt-5|gpt-6"


def granted(body: object, root: str) -> dict[str, dict[str, Any]]:
    """The models that a key of a router may use, of its `/v1/catalog`; `root` is its address. One that is reached by
    no way we know is left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for provider in _list(_map(body).get("providers")):
        for model in _list(provider.get("models")):
            row = _reached(provider, model, root.rstrip("/").removesuffix("/v1"))
            if row is not None and len(found) < MOST:
                found.setdefault(str(model["id"]), row)
    return found


def _list(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _reached(provider: Mapping[str, Any], model: Mapping[str, Any], root: str) -> dict[str, Any] | None:
    name, upstream, native = model.get("id"), model.get("upstream"), provider.get("nativeBaseUrl")
    if not (isinstance(name, str) and isinstance(upstream, str) and str(native).startswith("/v1/native/")):
        return None
    able = model.get("capabilities") or ()
    routes = [each for each in _list(provider.get("routes")) if "POST" in (each.get("methods") or ())]
    if provider.get("openaiCompatible") is True and "llm.responses" in able:
        way = {"api": "openai-responses", "base_url": f"{root}/v1"}
    elif provider.get("openaiCompatible") is True and "llm.chat" in able:
        way = {"api": "openai-completions", "base_url": f"{root}/v1"}
    elif "llm.messages" in able and any(each.get("requestFormat") == "anthropic.messages" for each in routes):
        way = {"api": "anthropic-messages", "base_url": f"{root}{native}"}
    elif "llm.stream" in able and (path := _google(routes)):
        way = {"api": "google-generative-ai", "base_url": f"{root}{native}{path}"}
    else:
        return None
    return {**_known(provider, model), **way, "compat": _upstream(name, upstream, way["api"])}


def _upstream(name: str, upstream: str, api: str) -> dict[str, Any]:
    """The name that goes over the wire, where that is another one."""
    native = api in {"anthropic-messages", "google-generative-ai"}
    return {"upstreamModel": upstream} if native and upstream != name else {}


def _google(routes: list[Mapping[str, Any]]) -> str:
    for route in routes:
        path = str(route.get("path"))
        at = path.find("/models/${model}")
        if route.get("requestFormat") == "google.generate_content" and ":streamGenerateContent" in path and at > 0:
            return path[:at]
    return ""


def _known(provider: Mapping[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    pricing = _map(model.get("pricing"))
    name = f"{provider.get('id')}/{model['id']}".lower()
    costs = {
        "input": "inputMicrosPerMillion", "output": "outputMicrosPerMillion",
        "cache_read": "cachedInputMicrosPerMillion", "cache_write": "cacheWrite5mInputMicrosPerMillion",
    }  # fmt: skip
    cost = {ours: each / 1e6 for ours, theirs in costs.items() if (each := _count(pricing.get(theirs)))}
    return {
        "name": str(model.get("displayName") or f"{provider.get('displayName') or provider.get('id')} · {model['id']}"),
        "context_window": _count(pricing.get("maxInputTokens")) or 200_000,
        "max_tokens": _count(pricing.get("defaultMaxOutputTokens")) or 32_768,
        "reasoning": bool(model.get("supportedReasoningEfforts")) or bool(re.search(_THINKS, name)),
        "input": ("text", "image") if re.search(_SEES, name) else ("text",),
        **({"cost": cost} if cost else {}),
    }


def budget(body: object) -> dict[str, float]:
    """Of a router's `/v1/usage`: what a key may spend in a month and what it has spent, in US dollars."""
    told = _map(_map(body).get("budget"))
    limit, spent = _count(told.get("limitMicros")), _count(told.get("spentMicros"))
    return {"limit": limit / 1e6, "spent": spent / 1e6} if limit else {}
