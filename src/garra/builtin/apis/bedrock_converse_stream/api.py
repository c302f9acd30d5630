"""The family's moving part: a call over HTTP, with a Bedrock key or signed by AWS' own credentials."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from garra.builtin.apis.bedrock_converse_stream.answer import Reader
from garra.builtin.apis.bedrock_converse_stream.request import Writer
from garra.builtin.apis.bedrock_converse_stream.signing import Signer
from garra.sdk.cloud import Cloud, address
from garra.sdk.exchange import AMAZON, Post, exchange, headers, said_of
from garra.sdk.model import ModelRequest
from garra.sdk.ports import Clock, Http, Spawn
from garra.sdk.stream import Answers, Stream


class BedrockConverseStream:
    """`sdk.model.Api` for `/model/…/converse-stream`."""

    family = "bedrock-converse-stream"

    def __init__(self, http: Http, spawn: Spawn, clock: Clock, cloud: Cloud) -> None:
        self._http, self._clock, self._cloud = http, clock, cloud
        self._answers = Answers(self.family, clock, spawn)
        self._writer = Writer()
        self._signer = Signer(cloud)

    async def warm(self) -> None:
        """Load the HTTP library."""
        await self._http.warm()

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, key, stream))

    async def _call(self, request: ModelRequest, key: str | None, stream: Stream) -> None:
        model = request.model
        with said_of(model):
            url = f"{address(model, self._cloud)}/model/{quote(model.id, safe='')}/converse-stream"
            body = await self._writer.body(request)
            sent = {"content-type": "application/json", **headers(model)}
            if key:
                sent["authorization"] = f"Bearer {key}"
            else:
                sent |= await asyncio.to_thread(self._signer.signed, model, url, b"".join(body))
            post = Post(url, sent, body, AMAZON)
            await exchange(self._http, request, post, reader=Reader(f"{self._clock.now_ms():x}"), stream=stream)
