"""The family's moving part: a call over HTTP, and the second try for a model that knows no thinking or no tools."""

from __future__ import annotations

from garra.builtin.apis.ollama.answer import Reader
from garra.builtin.apis.ollama.request import Writer
from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.exchange import LINES, Post, exchange, headers, said_of
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream


class Ollama:
    """`sdk.model.Api` for `/api/chat`."""

    family = "ollama"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock) -> None:
        self._http, self._clock = http, clock
        self._answers = Answers(self.family, clock, spawn)
        self._writer = Writer()
        self._lacking: dict[str, frozenset[str]] = {}

    async def warm(self) -> None:
        """Load the HTTP library."""
        await self._http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        model = request.model
        sent = ({"authorization": f"Bearer {key}"} if key else {}) | headers(model)
        with said_of(model):
            while True:
                lacking = self._lacking.get(model.ref, frozenset())
                thinks, tools = "thinking" not in lacking, "tools" not in lacking
                body = await self._writer.body(request, thinks=thinks, tools=tools)
                try:
                    post = Post(_url(model), sent, body, LINES)
                    return await exchange(
                        self._http, request, post, reader=Reader(f"{self._clock.now_ms():x}"), stream=stream
                    )
                except RunFailed as failed:
                    less = _lacks(failed.failure) - lacking
                    if not less or stream.draft.parts():
                        raise
                    self._lacking[model.ref] = lacking | less


def _url(model: Model) -> str:
    """An address may end as the one for OpenAI's dialect does."""
    return model.base_url.rstrip("/").removesuffix("/v1") + "/api/chat"


def _lacks(failure: Failure) -> frozenset[str]:
    """What the model does not know, in the server's own words: `"x" does not support thinking`."""
    if failure.kind is not FailureKind.REFUSED:
        return frozenset()
    return frozenset(what for what in ("thinking", "tools") if f"does not support {what}" in failure.message)
