"""The family's moving part: the official library as transport, its timers, its faults in our words."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

from garra.builtin.apis.anthropic_messages.answer import Reader
from garra.builtin.apis.anthropic_messages.request import Writer
from garra.core import failures, sse
from garra.core.errors import Failure, FailureKind, RunFailed, Unavailable
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream

_CLIENTS = 16
_LONGEST_S = 3_600.0
_LARGEST = 32 << 20
_LOGIN = "sk-ant-oat"
"""How the token of a subscription's login begins, which is no API key."""
_LOGINS_BETA = "oauth-2025-04-20"
_STYLES = ("adaptive", "enabled", "")
"""How thinking is switched on, the newest first; a server that refuses one is asked with the next."""


class AnthropicMessages:
    """`sdk.model.Api` for `/v1/messages`."""

    family = "anthropic-messages"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock) -> None:
        self._http = http
        self._answers = Answers(self.family, clock, spawn)
        self._writer = Writer()
        self._styles: dict[str, str] = {}
        self._clients: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    async def warm(self) -> None:
        """Load the library in a thread, before the first call needs it. Raises RunFailed where it is absent."""
        await asyncio.to_thread(_library)
        await self._http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        model = request.model
        style = self._styles.get(model.ref, str(model.compat.get("thinkingFormat", "enabled")))
        while True:
            try:
                await self._ask(request, key, style, stream)
            except RunFailed as failed:
                plainer = _plainer(style, failed.failure)
                if plainer is None or request.thinking == "off" or stream.draft.parts():
                    raise RunFailed(failures.of(failed.failure, model.provider, model.id)) from None
                style = self._styles[model.ref] = plainer
            else:
                return

    async def _ask(self, request: ModelRequest, key: str | None, style: str, stream: Stream) -> None:
        client = await asyncio.to_thread(self._client, request.model, key)
        library = await asyncio.to_thread(_library)
        body = await self._writer.body(request, style)
        reader, loop = Reader(), asyncio.get_running_loop()
        answer = None
        try:
            async with asyncio.timeout(request.timeout_first_s) as timer:
                answer = await client.post(
                    "/v1/messages",
                    cast_to=object,
                    content=_flow(body),
                    options={"headers": {"content-type": "application/json"}},
                    stream=True,
                    stream_cls=library.AsyncStream[object],
                )
                async for event in _events(answer.response.aiter_bytes()):
                    _push(reader, event, stream)
                    if event.name != "ping":  # that only says that the line is there
                        timer.reschedule(loop.time() + request.timeout_between_s)
        except TimeoutError:
            waited = request.timeout_between_s if stream.draft.parts() else request.timeout_first_s
            raise RunFailed(failures.lost(FailureKind.TIMEOUT, f"no sign for {waited:g} s")) from None
        except Unavailable as gone:
            raise RunFailed(failures.gone(gone)) from None
        except library.APIError as error:
            raise RunFailed(_failure(error)) from None
        finally:
            if answer is not None:
                await answer.close()
        stop, usage = reader.ending()
        stream.done(stop, usage, reader.response_id)

    def _client(self, model: Model, key: str | None) -> Any:
        """The library's client for one address and key. Blocks: the first one loads the library."""
        library = _library()
        known = (model.base_url, key, model.via, tuple(sorted(model.headers.items())))
        client = self._clients.pop(known, None)
        if client is None:
            login = key if key and key.startswith(_LOGIN) else None
            extra = {"x-api-key": key} if key and not login and not _takes_bearer(model) else {}
            client = library.AsyncAnthropic(
                api_key=None if login else key or "none",
                auth_token=login,
                base_url=model.base_url.rstrip("/").removesuffix("/v1"),
                http_client=self._http.client(model.via),
                max_retries=0,
                timeout=_LONGEST_S,
                default_headers={**({"anthropic-beta": _LOGINS_BETA} if login else {}), **model.headers, **extra},
            )
        self._clients[known] = client
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return client


async def _flow(pieces: tuple[bytes, ...]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _takes_bearer(model: Model) -> bool:
    """Whether the key goes in the Authorization header alone, as the library sends it; others look for `x-api-key`."""
    return bool(model.compat.get("authHeader")) or "//api.anthropic.com" in model.base_url


def _library() -> Any:
    """The official library. Blocks the first time, for a second or two."""
    try:
        return importlib.import_module("anthropic")
    except ImportError as error:
        line = "models of the family anthropic-messages need the extra `anthropic`: pip install 'garra[anthropic]'"
        raise RunFailed(Failure(FailureKind.REFUSED, f"{line} ({error})")) from None


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[sse.Event]:
    rest = b""
    async for chunk in chunks:
        events, rest = sse.split(rest + chunk)
        for event in events:
            yield event
        if len(rest) > _LARGEST:
            raise RunFailed(failures.lost(FailureKind.SERVER, "one piece of the answer is larger than 32 MiB"))
    for event in sse.last(rest):
        yield event


def _push(reader: Reader, event: sse.Event, stream: Stream) -> None:
    for delta in reader.feed(event):
        stream.push(delta)
    for part, signature in reader.signatures:
        stream.draft.sign(part, signature)
    reader.signatures.clear()


def _failure(error: Any) -> Failure:
    """A fault of the library in our words."""
    cause = error.__cause__
    if isinstance(cause, Unavailable):
        return failures.gone(cause)
    response = getattr(error, "response", None)
    if response is None:
        return failures.lost(FailureKind.NETWORK, str(error))
    body = getattr(error, "body", None)
    said = body if isinstance(body, str) else json.dumps(body) if body is not None else str(error)
    return failures.refused(int(error.status_code), said, dict(response.headers))


def _plainer(style: str, failure: Failure) -> str | None:
    """The next older way to switch thinking on, when that is what was refused."""
    named = failure.kind is FailureKind.REFUSED and re.search(
        r"adaptive|thinking\.|output_config|budget", failure.message
    )
    after = _STYLES[_STYLES.index(style) + 1 :] if style in _STYLES else ()
    return after[0] if named and after else None
