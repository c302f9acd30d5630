"""The family's moving part at OpenAI, and the second try without what a server refuses by name."""

from __future__ import annotations

import re
from typing import Final

from garra.builtin.apis.openai_responses.answer import Reader
from garra.builtin.apis.openai_responses.request import Writer
from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.cloud import Cloud, address
from garra.sdk.exchange import Post, exchange, headers, said_of
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream

_REFUSABLE: Final = (
    "prompt_cache_retention", "prompt_cache_key", "max_output_tokens", "parallel_tool_calls", "temperature",
    "tool_choice", "include", "reasoning", "store",
)  # fmt: skip


class OpenAIResponses:
    """`sdk.model.Api` for `/responses`."""

    family = "openai-responses"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock, cloud: Cloud) -> None:
        self.cloud = cloud
        self._http, self._clock = http, clock
        self._answers = Answers(self.family, clock, spawn)
        self._writer = Writer()
        self._left: dict[str, frozenset[str]] = {}

    async def warm(self) -> None:
        """Load the HTTP library."""
        await self._http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        model = request.model
        with said_of(model):
            url, sent = self.url(model), self.signed(key) | headers(model)
            while True:
                left = self._left.get(model.ref, frozenset())
                body = await self._writer.body(request, self.called(model), left)
                try:
                    reader = Reader(f"{self._clock.now_ms():x}")
                    return await exchange(self._http, request, Post(url, sent, body), reader=reader, stream=stream)
                except RunFailed as failed:
                    refused = _refused(failed.failure, left)
                    if not refused or stream.draft.parts():
                        raise
                    self._left[model.ref] = left | {refused}

    def url(self, model: Model) -> str:
        """Where `model` is asked. Raises RunFailed where that is not set."""
        return address(model, self.cloud) + "/responses"

    def signed(self, key: str | None) -> dict[str, str]:
        """The headers that carry the key."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def called(self, model: Model) -> str:
        """What the server calls the model."""
        return model.id


def _refused(failure: Failure, left: frozenset[str]) -> str:
    """The field that the server does not know, by its own words; empty where it names none."""
    if failure.kind is not FailureKind.REFUSED:
        return ""
    return next((n for n in _REFUSABLE if n not in left and re.search(rf"\b{n}\b", failure.message)), "")
