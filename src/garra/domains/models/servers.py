"""Model servers of one's own: what they have loaded, and how much it can hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.sdk.ports import DIRECT, Http, Via
from garra.sdk.provider import Provider

_TALKS_NOT = ("embed", "rerank", "whisper", "tts", "bge-", "clip")


@frozen
class Served:
    """One model of a server; `window` in tokens, None where the server does not say."""

    id: str
    window: int | None = None

    @property
    def talks(self) -> bool:
        return not any(word in self.id.lower() for word in _TALKS_NOT)


async def served(http: Http, provider: Provider, *, within_s: float = 1.0, via: Via = DIRECT) -> tuple[Served, ...]:
    """What `provider`'s server offers; empty when none answers in time."""
    base = provider.base_url.rstrip("/")
    try:
        async with asyncio.timeout(within_s):
            listed = await _json(http, f"{base}/models", via)
            found = tuple(Served(str(row["id"]), _window(row)) for row in _rows(listed) if row.get("id"))
            return await _measured(http, provider, found, via)
    except (TimeoutError, Unavailable, ValueError):
        return ()


async def _measured(http: Http, provider: Provider, found: tuple[Served, ...], via: Via) -> tuple[Served, ...]:
    """The same with the windows that some servers tell elsewhere. What cannot be learned stays unknown."""
    root = provider.base_url.rstrip("/").removesuffix("/v1")
    try:
        match provider.id:
            case "lm-studio":
                rows = _rows(await _json(http, f"{root}/api/v0/models", via))
                told = {str(row.get("id")): _window(row) for row in rows}
                return tuple(Served(item.id, item.window or told.get(item.id)) for item in found)
            case "llama.cpp":
                props = await _json(http, f"{root}/props", via)
                window = _number((props.get("default_generation_settings") or {}).get("n_ctx"))
                return tuple(Served(item.id, window or item.window) for item in found)
            case "ollama":
                rows = _rows(await _json(http, f"{root}/api/ps", via))
                told = {str(row.get("model")): _window(row) for row in rows}
                return tuple(Served(item.id, told.get(item.id) or item.window) for item in found)
            case _:
                return found
    except (Unavailable, ValueError):
        return found


async def _json(http: Http, url: str, via: Via) -> Mapping[str, Any]:
    async with http.stream("GET", url, timeout=1.0, connect=0.5, via=via) as body:
        if body.status != 200:
            raise Unavailable(f"{url} answered {body.status}")
        found = json.loads(await body.read())
    return found if isinstance(found, Mapping) else {}


def _rows(listed: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = listed.get("data") or listed.get("models") or []
    return [row for row in rows if isinstance(row, Mapping)]


def _window(row: Mapping[str, Any]) -> int | None:
    meta = row.get("meta")
    inner = meta if isinstance(meta, Mapping) else {}
    told = (
        row.get("loaded_context_length"),
        row.get("max_model_len"),
        row.get("context_length"),
        row.get("max_context_length"),
        inner.get("n_ctx"),
        inner.get("n_ctx_train"),
    )
    return next((number for value in told if (number := _number(value))), None)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
