"""The family of models on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from garra.builtin.apis.local import protocol
from garra.builtin.apis.local.engine import Engine, Load
from garra.core import failures
from garra.core.errors import FailureKind, RunFailed, Unavailable
from garra.core.events import CallDelta, TextDelta
from garra.core.messages import Stop, Usage
from garra.sdk.model import ModelRequest
from garra.sdk.ports import Children, Clock, Spawn, Weights
from garra.sdk.stream import Answers, Stream


class Local:
    """`sdk.model.Api` for model files. `Model.id` is a name of the catalog, or the path of a GGUF file.

    `compat`: `talkOnly` for a model that cannot use tools, `threads`.
    """

    family = "local"

    def __init__(
        self, children: Children, weights: Weights, spawn: Spawn, clock: Clock, *, idle_s: float = 300.0
    ) -> None:
        self._weights = weights
        self._clock = clock
        self._answers = Answers(self.family, clock, spawn)
        self.engine = Engine(children, spawn, clock, idle_s)

    def stream(self, request: ModelRequest, key: str | None) -> Stream:
        return self._answers.begin(request.model, lambda stream: self._call(request, stream))

    async def _call(self, request: ModelRequest, stream: Stream) -> None:
        model = request.model
        talk_only = bool(model.compat.get("talkOnly")) or not request.tools
        try:
            path = await self._weights.path(model.id)
            body = await asyncio.to_thread(protocol.talk if talk_only else protocol.work, request)
            load = Load(path, model.context_window, int(model.compat.get("threads", 1)))
            await self._heard(self.engine.chat(load, body), request, stream, talk_only=talk_only)
        except Unavailable as gone:
            raise RunFailed(failures.of(failures.gone(gone), model.provider, model.id)) from None

    async def _heard(
        self, chunks: AsyncGenerator[dict[str, Any]], request: ModelRequest, stream: Stream, *, talk_only: bool
    ) -> None:
        answer, finish, usage = protocol.Answer(), "", Usage()
        loop = asyncio.get_running_loop()
        try:
            async with aclosing(chunks), asyncio.timeout(request.timeout_first_s) as timer:
                async for chunk in chunks:
                    timer.reschedule(loop.time() + request.timeout_between_s)
                    words, finish, usage = _read(chunk, finish, usage)
                    shown = words if talk_only else answer.feed(words)
                    if shown:
                        stream.push(TextDelta(0, shown))
        except TimeoutError:
            raise RunFailed(failures.lost(FailureKind.TIMEOUT, "the local model is too slow here")) from None
        if not finish:
            raise RunFailed(failures.lost(FailureKind.CUT))
        called = None if talk_only else answer.call()
        if called is not None:
            name, given = called
            made = f"call_local_{self._clock.now_ms():x}"
            stream.push(CallDelta(0, made, name, json.dumps(given, ensure_ascii=False)))
        elif not stream.draft.parts():
            raise RunFailed(failures.lost(FailureKind.EMPTY))
        stop: Stop = "toolUse" if called else "length" if finish == "length" else "stop"
        stream.done(stop, usage)


def _read(chunk: Mapping[str, Any], finish: str, usage: Usage) -> tuple[str, str, Usage]:
    """The words of a chunk, why the answer stopped, and what it cost, as far as they are known."""
    choices: Sequence[Mapping[str, Any]] = chunk.get("choices") or ({},)
    told = chunk.get("usage")
    if isinstance(told, Mapping):
        usage = Usage(int(told.get("prompt_tokens", 0)), int(told.get("completion_tokens", 0)))
    words = (choices[0].get("delta") or {}).get("content") or ""
    return words, choices[0].get("finish_reason") or finish, usage
