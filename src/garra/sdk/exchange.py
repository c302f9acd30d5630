"""One question over HTTP and its streamed answer: what the families of models have in common.

A family writes the request and reads the events; the connection, the timers and the faults are here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Protocol

from garra.core import eventstream, failures, sse
from garra.core.errors import FailureKind, RunFailed, Unavailable
from garra.core.events import CallDelta, TextDelta, ThinkingDelta
from garra.core.messages import Image, Stop, ToolResult, Usage
from garra.core.sse import Event
from garra.core.value import frozen
from garra.sdk.model import Model, ModelRequest
from garra.sdk.ports import Body, Http
from garra.sdk.stream import Stream

Delta = TextDelta | ThinkingDelta | CallDelta
_LARGEST = 32 << 20
_GOODBYE_S = 0.5
_IDLE: Final = frozenset(("ping", "keepalive"))
"""Events that only say that the line is there."""

OPEN, CLOSE = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
"""Mark words that hold context and are no person's, as the original marks them."""


class Reader(Protocol):
    """Reads one answer; pure, and made anew for each call. `signatures` grows by (part, piece of its signature)."""

    response_id: str | None
    signatures: list[tuple[int, str]]

    @property
    def over(self) -> bool:
        """Whether all was said: the server may only close now."""
        ...

    def feed(self, event: Event) -> Iterable[Delta]:
        """What one event says. Raises RunFailed when it is an error, or no JSON."""
        ...

    def ending(self) -> tuple[Stop, Usage]:
        """Why the answer stopped, and what it used. Raises RunFailed for one that was cut, refused or is empty."""
        ...


class Reading:
    """What a reader keeps of an answer from its first event to its end. `salt` makes ids where a server gives none."""

    def __init__(self, salt: str) -> None:
        self.response_id: str | None = None
        self.signatures: list[tuple[int, str]] = []
        self.over = False
        self._salt = salt
        self._usage = Usage()
        self._said = False


@frozen
class Frames:
    """How an answer's bytes are parted: `split` gives the whole events and the rest, `last` what a rest still says."""

    kind: str
    split: Callable[[bytes], tuple[list[Event], bytes]]
    last: Callable[[bytes], list[Event]]


def _lines(buffer: bytes) -> tuple[list[Event], bytes]:
    *whole, rest = buffer.split(b"\n")
    return [Event("", line) for line in whole if line.strip()], rest


SSE: Final = Frames("text/event-stream", sse.split, sse.last)
LINES: Final = Frames("application/x-ndjson", _lines, lambda rest: [Event("", rest)] if rest.strip() else [])
AMAZON: Final = Frames("application/vnd.amazon.eventstream", eventstream.split, lambda _: [])


@frozen
class Post:
    """A request as it goes out: its body in pieces, and how its answer will be parted."""

    url: str
    headers: Mapping[str, str]
    body: tuple[bytes, ...]
    frames: Frames = SSE


async def exchange(http: Http, request: ModelRequest, post: Post, *, reader: Reader, stream: Stream) -> None:
    """Send, read to the end, and end `stream` well. Raises RunFailed for everything else."""
    loop = asyncio.get_running_loop()
    try:
        async with (
            asyncio.timeout(request.timeout_first_s) as timer,
            http.stream(
                "POST",
                post.url,
                headers={
                    "content-type": "application/json",
                    "accept": post.frames.kind,
                    **post.headers,
                    **initiated(request),
                },
                body=post.body,
                timeout=None,
                connect=request.timeout_connect_s,
                via=request.model.via,
            ) as answer,
        ):
            async for event in _events(answer, post.frames):
                _push(reader, event, stream)
                if event.name not in _IDLE:
                    timer.reschedule(loop.time() + (_GOODBYE_S if reader.over else request.timeout_between_s))
    except TimeoutError:
        if not reader.over:  # else the server only keeps the line open
            waited = request.timeout_between_s if stream.draft.parts() else request.timeout_first_s
            raise RunFailed(failures.lost(FailureKind.TIMEOUT, f"no sign for {waited:g} s")) from None
    except Unavailable as gone:
        if not reader.over:
            raise RunFailed(failures.gone(gone)) from None
    stop, usage = reader.ending()
    stream.done(stop, usage, reader.response_id)


def initiated(request: ModelRequest) -> dict[str, str]:
    """Who began this step, for a provider that counts those of people alone; and whether there is something to see."""
    if not request.model.compat.get("initiator"):
        return {}
    own = bool(request.messages) and isinstance(request.messages[-1], ToolResult)
    sees = any(isinstance(part, Image) for message in request.messages for part in message.content)
    told = {"x-initiator": "agent" if own else "user"}
    return {**told, "copilot-vision-request": "true"} if sees else told


def _push(reader: Reader, event: Event, stream: Stream) -> None:
    for delta in reader.feed(event):
        stream.push(delta)
    for part, signature in reader.signatures:
        stream.draft.sign(part, signature)
    reader.signatures.clear()


async def _events(body: Body, frames: Frames) -> AsyncIterator[Event]:
    """The events of an answer; of one that is not streamed, the whole as one. Raises RunFailed for an error answer."""
    if body.status >= 300:
        said = (await body.read()).decode("utf-8", "replace")
        raise RunFailed(failures.refused(body.status, said, body.headers))
    if frames is SSE and "json" in body.headers.get("content-type", ""):
        yield Event("", await body.read(_LARGEST))
        return
    rest = b""
    async for chunk in body.chunks():
        events, rest = frames.split(rest + chunk)
        for event in events:
            yield event
        if len(rest) > _LARGEST:
            raise RunFailed(failures.lost(FailureKind.SERVER, "one piece of the answer is larger than 32 MiB"))
    for event in frames.last(rest):
        yield event


@contextmanager
def said_of(model: Model) -> Iterator[None]:
    """Failures inside are told as those of `model`."""
    try:
        yield
    except RunFailed as failed:
        raise RunFailed(failures.of(failed.failure, model.provider, model.id)) from None


def broken() -> RunFailed:
    """A piece of an answer is no JSON."""
    return RunFailed(failures.lost(FailureKind.CUT, "a piece of the answer is broken"))


def marked(tail: str) -> str:
    """The part of a request that changes every turn, as no person's words."""
    return f"{OPEN}\n{tail}\n{CLOSE}"


def headers(model: Model) -> dict[str, str]:
    """The headers that the owner or the provider's file set."""
    return {name.lower(): value for name, value in model.headers.items()}


def params(model: Model) -> Mapping[str, object]:
    """What the owner set under `params`, for the provider alone to read."""
    told = model.compat.get("params")
    return told if isinstance(told, Mapping) else {}


def number(value: object) -> int:
    """A count of tokens; what is none counts as nothing."""
    return int(value) if isinstance(value, int | float) else 0
