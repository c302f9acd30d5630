"""The family's one moving part: a call over HTTP, its timers, and the second try in a plainer dialect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from garra.builtin.apis.openai_completions.answer import Reader
from garra.builtin.apis.openai_completions.dialect import Dialect, of, without
from garra.builtin.apis.openai_completions.request import Writer
from garra.core import failures, sse
from garra.core.errors import FailureKind, RunFailed, Unavailable
from garra.sdk.exchange import initiated
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Body, Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream

_LARGEST = 32 << 20
_PLAINER = 6
_GOODBYE_S = 0.5


class OpenAICompletions:
    """`sdk.model.Api` for `/chat/completions`."""

    family = "openai-completions"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._answers = Answers(self.family, clock, spawn)
        self._writer = Writer()
        self._learned: dict[str, Dialect] = {}

    async def warm(self) -> None:
        """Load the HTTP library."""
        await self._http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    def dialect(self, model: Model) -> Dialect:
        """How the server is spoken to at first."""
        return of(model)

    def headers(self, request: ModelRequest, key: str | None) -> dict[str, str]:
        """What goes along with a request."""
        return _headers(request.model, key) | initiated(request)

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        """Ask; where the server refuses a field, ask again without it and remember that for this server."""
        model = request.model
        dialect = self._learned.get(model.ref) or self.dialect(model)
        for _ in range(_PLAINER):
            try:
                await self._ask(request, key, dialect, stream)
            except RunFailed as failed:
                plainer = without(dialect, failed.failure)
                if plainer is None or stream.draft.parts():
                    raise RunFailed(failures.of(failed.failure, model.provider, model.id)) from None
                dialect = self._learned[model.ref] = plainer
            else:
                return
        line = failures.lost(FailureKind.REFUSED, "the server accepts no form of the request that is known here")
        raise RunFailed(failures.of(line, model.provider, model.id))

    async def _ask(self, request: ModelRequest, key: str | None, dialect: Dialect, stream: Stream) -> None:
        reader = Reader(f"{self._clock.now_ms():x}")
        loop = asyncio.get_running_loop()
        body = await self._writer.body(request, dialect)
        try:
            async with (
                asyncio.timeout(request.timeout_first_s) as timer,
                self._http.stream(
                    "POST",
                    request.model.base_url.rstrip("/") + "/chat/completions",
                    headers=self.headers(request, key),
                    body=body,
                    timeout=None,
                    connect=request.timeout_connect_s,
                    via=request.model.via,
                ) as answer,
            ):
                async for data in _events(answer):
                    for event in reader.feed(data):
                        stream.push(event)
                    timer.reschedule(loop.time() + (_GOODBYE_S if reader.over else request.timeout_between_s))
        except TimeoutError:
            if reader.over:  # all was said; the server only keeps the line open
                return _finish(reader, stream)
            waited = request.timeout_between_s if stream.draft.parts() else request.timeout_first_s
            raise RunFailed(failures.lost(FailureKind.TIMEOUT, f"no sign for {waited:g} s")) from None
        except Unavailable as gone:
            if not reader.finished:
                raise RunFailed(failures.gone(gone)) from None
        return _finish(reader, stream)


def _finish(reader: Reader, stream: Stream) -> None:
    stop, rest = reader.ending()
    for event in rest:
        stream.push(event)
    stream.done(stop, reader.usage, reader.response_id)


async def _events(body: Body) -> AsyncIterator[bytes]:
    """The data of each event; of an answer that is no stream, the whole of it. Raises RunFailed for an error answer."""
    if body.status >= 300:
        said = (await body.read()).decode("utf-8", "replace")
        raise RunFailed(failures.refused(body.status, said, body.headers))
    if "event-stream" not in body.headers.get("content-type", "event-stream"):
        whole = await body.read(_LARGEST)
        if not whole.lstrip().startswith((b"data:", b":", b"event:")):
            yield whole
            return
        pieces, rest = sse.split(whole)
    else:
        pieces, rest = [], b""
        async for chunk in body.chunks():
            pieces, rest = sse.split(rest + chunk)
            for piece in pieces:
                yield piece.data
            if len(rest) > _LARGEST:
                raise RunFailed(failures.lost(FailureKind.SERVER, "one piece of the answer is larger than 32 MiB"))
        pieces = []
    for piece in [*pieces, *sse.last(rest)]:
        yield piece.data


def _headers(model: Model, key: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return headers | {name.lower(): value for name, value in model.headers.items()}
