"""The family's moving part: a call over HTTP, and the second try for a model that knows no switch for thinking."""

from __future__ import annotations

from urllib.parse import quote

from garra.builtin.apis.google_generative_ai.answer import Reader
from garra.builtin.apis.google_generative_ai.request import Writer
from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.cloud import Cloud, address
from garra.sdk.exchange import Post, exchange, headers, said_of
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream


class GoogleGenerativeAI:
    """`sdk.model.Api` for `models/…:streamGenerateContent`."""

    family = "google-generative-ai"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock, cloud: Cloud) -> None:
        self.http, self.clock, self.cloud = http, clock, cloud
        self._answers = Answers(self.family, clock, spawn)
        self._writer = Writer()
        self._thoughtless: set[str] = set()

    async def warm(self) -> None:
        """Load the HTTP library."""
        await self.http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        model = request.model
        with said_of(model):
            url, signed = await self.where(request, key)
            while True:
                thinks = model.ref not in self._thoughtless
                post = Post(url, signed | headers(model), await self._writer.body(request, thinks=thinks))
                try:
                    return await exchange(
                        self.http, request, post, reader=Reader(f"{self.clock.now_ms():x}"), stream=stream
                    )
                except RunFailed as failed:
                    if not thinks or not _thinking(failed.failure) or stream.draft.parts():
                        raise
                    self._thoughtless.add(model.ref)

    async def where(self, request: ModelRequest, key: str | None) -> tuple[str, dict[str, str]]:
        """The address, and the headers that carry the key. Raises RunFailed where something is not set."""
        base = address(request.model, self.cloud).removesuffix("/openai")
        return asked(base, request.model), {"x-goog-api-key": key} if key else {}


def asked(base: str, model: Model) -> str:
    """The address of the model's method below `base`."""
    return f"{base}/models/{quote(model.id.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"


def _thinking(failure: Failure) -> bool:
    """Whether a server refuses the switch for thinking."""
    return failure.kind is FailureKind.REFUSED and "thinking" in failure.message.lower()
