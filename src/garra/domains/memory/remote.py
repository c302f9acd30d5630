"""Vectors from a provider: one small client for all who speak OpenAI's embeddings, and for Gemini's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.domains.memory.vectors import floats
from garra.sdk.ports import DIRECT, Clock, Http, Via

TEXTS: Final = 64
BYTES: Final = 96_000
"""What one request holds at most."""
CHARS: Final = 6_000
"""Characters of one text."""
LONGEST_WAIT: Final = 60.0
AGAIN: Final = frozenset((408, 409, 429, 500, 502, 503, 504, 529))
LIMIT: Final = 64 << 20


@frozen
class Endpoint:
    """Who is asked: `url` without the path, `headers` with the key. `shape` is `gemini`, or `openai` for all others."""

    provider: str
    model: str
    url: str
    shape: str = "openai"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    via: Via = DIRECT


Spent = Callable[[str, str, int], None]
"""Told (provider, model, tokens) after each request."""


class Remote:
    """Asks one provider. Raises Unavailable with a line; a key never stands in it."""

    def __init__(self, http: Http, clock: Clock, endpoint: Endpoint, spent: Spent) -> None:
        self._http, self._clock, self.endpoint, self._spent = http, clock, endpoint, spent

    async def query(self, text: str) -> bytes:
        """Of a question; somebody waits for it, so few tries are made."""
        return (await self._asked([text], query=True, tries=3, patience=8.0))[0]

    async def passages(self, texts: Sequence[str]) -> list[bytes]:
        """Of texts to be indexed, in as many requests as it takes."""
        found: list[bytes] = []
        for batch in batches(texts):
            found.extend(await self._asked(batch, query=False, tries=5, patience=LONGEST_WAIT))
        return found

    async def _asked(self, texts: Sequence[str], *, query: bool, tries: int, patience: float) -> list[bytes]:
        url, body = request(self.endpoint, texts, query=query)
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"content-type": "application/json", **self.endpoint.headers}
        status = 0
        for left in range(tries - 1, -1, -1):
            async with self._http.stream(
                "POST", url, headers=headers, body=data, timeout=30.0, via=self.endpoint.via
            ) as answer:
                status, told = answer.status, answer.headers.get("retry-after", "")
                raw = await answer.read(LIMIT)
            if status == 200:
                return self._read(raw, len(texts))
            wait = _wait(told, tries - left)
            if status not in AGAIN or not left or wait > patience:
                break
            patience = patience if patience == LONGEST_WAIT else patience - wait
            await self._clock.sleep(wait)
        raise Unavailable(
            f"{self.endpoint.provider} made no embeddings: it answered {status}", retryable=status in AGAIN
        )

    def _read(self, raw: bytes, wanted: int) -> list[bytes]:
        try:
            body = json.loads(raw)
            found, tokens = answer_of(body, self.endpoint.shape)
            vectors = [floats(vector) for vector in found]
        except (ValueError, KeyError, TypeError) as fault:
            raise Unavailable(f"{self.endpoint.provider} made no embeddings: its answer is no such thing") from fault
        if len(vectors) != wanted:
            raise Unavailable(f"{self.endpoint.provider} made {len(vectors)} embeddings of {wanted} texts")
        self._spent(self.endpoint.provider, self.endpoint.model, tokens)
        return vectors


def batches(texts: Sequence[str]) -> list[list[str]]:
    """Texts in requests that are not too large."""
    found: list[list[str]] = []
    held = BYTES
    for text in texts:
        text = text[:CHARS]
        size = len(text.encode("utf-8", "replace"))
        if not found or held + size > BYTES or len(found[-1]) >= TEXTS:
            found.append([])
            held = 0
        found[-1].append(text)
        held += size
    return found


def request(endpoint: Endpoint, texts: Sequence[str], *, query: bool) -> tuple[str, dict[str, Any]]:
    """Where to, and what."""
    url, model = endpoint.url.rstrip("/"), endpoint.model
    if endpoint.shape == "gemini":
        kind = "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"
        rows = [
            {"model": f"models/{model}", "content": {"parts": [{"text": text}]}, "taskType": kind} for text in texts
        ]
        return f"{url}/models/{model}:batchEmbedContents", {"requests": rows}
    body: dict[str, Any] = {"model": model, "input": list(texts)}
    if endpoint.provider == "voyage":
        body["input_type"] = "query" if query else "document"
    return f"{url}/embeddings", body


def answer_of(body: Mapping[str, Any], shape: str) -> tuple[list[list[float]], int]:
    """The vectors in the order of the texts, and the tokens that were counted. Raises KeyError, TypeError."""
    if shape == "gemini":
        return [row["values"] for row in body["embeddings"]], 0
    rows = sorted(body["data"], key=lambda row: int(row.get("index", 0)))
    usage = body.get("usage") or {}
    return [row["embedding"] for row in rows], int(usage.get("total_tokens") or usage.get("prompt_tokens") or 0)


def _wait(told: str, tried: int) -> float:
    """Seconds to wait: what the server says, else longer each time."""
    try:
        return max(0.1, float(told))
    except ValueError:
        return float(min(LONGEST_WAIT, 0.5 * 2**tried))
