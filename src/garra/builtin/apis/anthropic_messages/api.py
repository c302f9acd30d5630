"""The family's moving part: a call over HTTP, and the second try with an older switch for thinking."""

from __future__ import annotations

import re

from garra.builtin.apis.anthropic_messages.answer import Reader
from garra.builtin.apis.anthropic_messages.request import Writer
from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.exchange import Post, exchange, headers, said_of
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream

VERSION = "2026-10-21"
"""Of the protocol, as the vendor's own library names it."""

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

    async def warm(self) -> None:
        """Load the HTTP library."""
        await self._http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        model = request.model
        style = self._styles.get(model.ref, str(model.compat.get("thinkingFormat", "enabled")))
        with said_of(model):
            while True:
                try:
                    post = Post(_url(model), _headers(model, key), await self._writer.body(request, style))
                    return await exchange(self._http, request, post, reader=Reader(), stream=stream)
                except RunFailed as failed:
                    plainer = _plainer(style, failed.failure)
                    if plainer is None or request.thinking == "off" or stream.draft.parts():
                        raise
                    style = self._styles[model.ref] = plainer


def _url(model: Model) -> str:
    return model.base_url.rstrip("/").removesuffix("/v1") + "/v1/messages"


def _headers(model: Model, key: str | None) -> dict[str, str]:
    sent = {"anthropic-version": VERSION}
    if key:
        sent["authorization"] = f"Bearer {key}"
        if key.startswith(_LOGIN):
            sent["anthropic-beta"] = _LOGINS_BETA
        elif not _takes_bearer(model):
            sent["x-api-key"] = key
    return sent | headers(model)


def _takes_bearer(model: Model) -> bool:
    """Whether the key goes in the Authorization header alone, as the library sends it; others look for `x-api-key`."""
    return bool(model.compat.get("authHeader")) or "//api.anthropic.com" in model.base_url


def _plainer(style: str, failure: Failure) -> str | None:
    """The next older way to switch thinking on, when that is what was refused."""
    named = failure.kind is FailureKind.REFUSED and re.search(
        r"adaptive|thinking\.|output_config|budget", failure.message
    )
    after = _STYLES[_STYLES.index(style) + 1 :] if style in _STYLES else ()
    return after[0] if named and after else None
