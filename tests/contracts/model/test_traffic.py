"""What every family that speaks HTTP owes, on the traffic that its vendor documents."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garra.core import requests
from garra.core.errors import FailureKind
from garra.core.events import CallDelta, Done, Failed, TextDelta, ThinkingDelta
from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolCall, ToolResult, User
from garra.domains.models.call import price
from garra.sdk.exchange import OPEN
from garra.sdk.model import Cost, EventStream, ModelRequest
from garra.sdk.ports import Via
from garra.testing.model_server import ModelServer, Raw
from tests.contracts.model.traffic import FAMILIES, Stand, pieces, stand

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJcfsj6IKdHJhaWxlcgo8PD4+CiUlRU9G"


@pytest.fixture(params=FAMILIES)
async def at(request: pytest.FixtureRequest) -> AsyncIterator[Stand]:
    async with stand(request.param) as ready:
        yield ready


async def events(stream: EventStream) -> list[object]:
    return [event async for event in stream]


async def done(stream: EventStream) -> Assistant:
    last = (await events(stream))[-1]
    assert isinstance(last, Done), last
    return last.message


async def failed(stream: EventStream) -> Failed:
    last = (await events(stream))[-1]
    assert isinstance(last, Failed), last
    assert "\n" not in last.failure.message
    assert last.failure.message.startswith("v/")
    return last


def said(*texts: str) -> tuple[Message, ...]:
    return tuple(User((Text(text),), at) for at, text in enumerate(texts))


@pytest.mark.req("MODEL-20")
async def test_words_and_what_they_cost(at: Stand) -> None:
    at.plays("text")
    found = await events(at.api.stream(at.request(), "k"))
    assert "".join(event.delta for event in found if isinstance(event, TextDelta)) == "Paris is the capital of France."
    assert sum(isinstance(event, TextDelta) for event in found) == 3
    last = found[-1]
    assert isinstance(last, Done)
    assert (last.message.text, last.message.stop) == ("Paris is the capital of France.", "stop")
    assert last.message.usage == at.family.usage
    fresh, out, read, written = 20, 7, at.family.usage.cache_read, at.family.usage.cache_write
    fresh = at.family.usage.input
    cost = price(last.message.usage, Cost(2, 10, 0.5, 3))
    assert cost == pytest.approx((fresh * 2 + out * 10 + read * 0.5 + written * 3) / 1_000_000)
    [seen] = at.server.requests
    assert (seen.method, seen.path) == ("POST", at.family.path)
    name, value = at.family.key
    assert seen.headers[name] == value


async def test_thoughts_come_apart_and_go_back_to_their_model_alone(at: Stand) -> None:
    at.plays("thinking")
    request = at.request(thinking="low")
    found = await events(at.api.stream(request, "k"))
    assert "".join(event.delta for event in found if isinstance(event, ThinkingDelta)) == "The user greets me."
    last = found[-1]
    assert isinstance(last, Done)
    assert last.message.text == "Hello!"
    signed = [part.signature for part in last.message.content if isinstance(part, Thinking) and part.signature]
    assert bool(signed) == at.family.signs
    secret = "EqoBCkgIARABGAIiQL2UoU0b1OHYi"
    assert all(secret in signature for signature in signed)

    history = (*request.messages, last.message, *said("and?"))
    for model, goes in ((request.model, at.family.signs), (replace(request.model, id="other"), False)):
        at.plays("text")
        valid = requests.valid(history, model)
        assert (await done(at.api.stream(replace(request, messages=valid, model=model), "k"))).stop == "stop"
        assert (secret.encode() in at.server.requests[-1].raw) == goes


async def test_a_call_comes_in_fragments(at: Stand) -> None:
    at.plays("call")
    found = await events(at.api.stream(at.request(), "k"))
    assert any(isinstance(event, CallDelta) and event.name == "read" for event in found)
    last = found[-1]
    assert isinstance(last, Done)
    assert (last.message.text, last.message.stop) == ("Let me look.", "toolUse")
    [call] = last.message.calls
    assert (call.name, call.arguments) == ("read", {"path": "/tmp/notes.txt"})


async def test_two_calls_at_once_and_their_results_go_back(at: Stand) -> None:
    at.plays("calls")
    request = at.request()
    answer = await done(at.api.stream(request, "k"))
    assert answer.stop == "toolUse"
    assert [dict(call.arguments) for call in answer.calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert len({call.id for call in answer.calls}) == 2
    results = [ToolResult(call.id, call.name, (Text(f"sun {n}"),), 3) for n, call in enumerate(answer.calls)]
    at.plays("text")
    history = requests.valid((*request.messages, answer, *results), request.model)
    await done(at.api.stream(replace(request, messages=history), "k"))
    raw = at.server.requests[-1].raw
    assert raw.index(b"Paris") < raw.index(b"Rome") < raw.index(b"sun 0") < raw.index(b"sun 1")


@pytest.mark.parametrize("kind", ["image/png", "application/pdf"])
async def test_pictures_and_documents_go_along(at: Stand, kind: str) -> None:
    data = PNG if kind == "image/png" else PDF
    if kind == "application/pdf" and not at.family.documents:
        pytest.skip("this protocol carries no documents")
    at.plays("text")
    await done(at.api.stream(at.request(User((Text("What is this?"), Image(kind, data)), 1)), "k"))
    raw = at.server.requests[-1].raw
    assert raw.count(data.encode()) == 1
    assert b"What is this?" in raw


async def test_pictures_of_a_tool_go_back(at: Stand) -> None:
    call = Assistant((ToolCall("abcdefghi", "read", {"path": "a.png"}),), 2)
    result = ToolResult("abcdefghi", "read", (Text("here"), Image("image/png", PNG)), 3)
    at.plays("text")
    history = requests.valid((*said("look"), call, result), at.model)
    await done(at.api.stream(at.request(*history), "k"))
    assert at.server.requests[-1].raw.count(PNG.encode()) == 1


async def test_an_answer_that_met_its_limit(at: Stand) -> None:
    at.plays("length")
    message = await done(at.api.stream(at.request(), "k"))
    assert (message.stop, message.text) == ("length", "As far as")


async def test_a_filtered_answer(at: Stand) -> None:
    if not at.family.filters:
        pytest.skip("this protocol has no filter")
    at.plays("filter")
    assert (await failed(at.api.stream(at.request(), "k"))).failure.kind is FailureKind.FILTERED


async def test_an_empty_answer(at: Stand) -> None:
    at.plays("empty")
    assert (await failed(at.api.stream(at.request(), "k"))).failure.kind is FailureKind.EMPTY


async def test_a_broken_piece(at: Stand) -> None:
    at.plays("malformed")
    last = await failed(at.api.stream(at.request(), "k"))
    assert (last.failure.kind, last.message.text) == (FailureKind.CUT, "Paris")


async def test_a_fault_in_the_midst_of_an_answer(at: Stand) -> None:
    at.plays("fault")
    last = await failed(at.api.stream(at.request(), "k"))
    assert last.failure.kind in {FailureKind.SERVER, FailureKind.OVERLOADED, FailureKind.RATE_LIMIT}
    assert (last.message.text, last.message.stop) == ("Paris", "error")


@pytest.mark.req("MODEL-19")
@pytest.mark.parametrize("politely", [True, False])
async def test_a_cut_stream_is_never_a_short_reply(at: Stand, *, politely: bool) -> None:
    data = at.bytes("text")
    at.server.then(Raw(pieces(data[: data.index(b"capital") + 180]), kind=at.kind, cut=not politely))
    last = await failed(at.api.stream(at.request(), "k"))
    assert (last.failure.kind, last.message.stop) == (FailureKind.CUT, "error")


async def test_refusals_are_told_apart(at: Stand) -> None:
    for row in at.refusals():
        at.server.then(
            Raw((json.dumps(row["body"]).encode(),), row["status"], "application/json", row.get("headers", {}))
        )
        failure = (await failed(at.api.stream(at.request(), "sk-abcdefgh"))).failure
        assert (failure.kind.value, failure.status) == (row["kind"], row["status"]), row
        assert failure.retry_after_ms == row.get("wait_ms"), row
        assert "sk-abcd" not in failure.message


async def test_a_page_instead_of_an_answer(at: Stand) -> None:
    at.server.then(Raw((b"<html>Bad gateway</html>",), 502, "text/html"))
    failure = (await failed(at.api.stream(at.request(), "k"))).failure
    assert (failure.kind, failure.status) == (FailureKind.SERVER, 502)
    assert "html" not in failure.message


async def test_silence_ends_by_the_first_timer(at: Stand) -> None:
    at.server.then(Raw((b"\n",), kind=at.kind, pause_s=30))
    request = at.request(timeout_first_s=0.2)
    assert (await failed(at.api.stream(request, "k"))).failure.kind is FailureKind.TIMEOUT


async def test_stopping_in_the_midst_closes_the_socket(at: Stand) -> None:
    closed = asyncio.Event()
    async with Watched(closed) as server:
        server.then(Raw((at.bytes("text")[:-400],), kind=at.kind, pause_s=20))
        model = replace(at.model, base_url=server.url + at.family.base)
        stream = at.api.stream(at.request(model=model), "k")
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        stream.abort()
        message = await stream.result()
        assert (message.stop, message.text[:5]) == ("aborted", "Paris")
        await asyncio.wait_for(closed.wait(), 5)


class Watched(ModelServer):
    """Tells when its caller has hung up."""

    def __init__(self, closed: asyncio.Event) -> None:
        super().__init__()
        self._closed = closed

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = asyncio.get_running_loop().create_task(super()._serve(reader, writer))
        try:
            while not reader.at_eof():  # noqa: ASYNC110 - a reader has no event for it
                await asyncio.sleep(0.01)
            self._closed.set()
        finally:
            served.cancel()


@pytest.mark.req("LOOP-11")
async def test_a_request_begins_as_the_last_one_did(at: Stand) -> None:
    history: tuple[Message, ...] = ()
    begun: list[bytes] = []
    for turn in range(4):
        history = (*history, *said(f"question {turn}"))
        at.plays("text")
        request = at.request(*history, session="s", tail=f"now it is {turn}")
        answer = await done(at.api.stream(request, "k"))
        raw = at.server.requests[-1].raw
        assert raw.index(b"Be short.") < raw.index(b"question 0") < raw.index(OPEN.encode())
        begun.append(_unmarked(raw[: raw.index(f"question {turn}".encode())]))
        history = (*history, answer)
    for one, next_ in itertools.pairwise(begun):
        assert next_.startswith(one)


def _unmarked(raw: bytes) -> bytes:
    """Without the marks of what may be cached: they move on with the conversation."""
    for mark in (b',"cache_control":{"type":"ephemeral"}', b',{"cachePoint":{"type":"default"}}'):
        raw = raw.replace(mark, b"")
    return raw


async def test_the_way_out_holds_for_every_family(at: Stand) -> None:
    """A proxy that does not answer stops the call: nothing goes past it."""
    model = replace(at.model, via=Via(proxy="http://127.0.0.1:9"))
    failure = (await failed(at.api.stream(at.request(model=model), "k"))).failure
    assert failure.kind is FailureKind.NETWORK
    assert not at.server.requests


async def test_another_familys_model_is_refused(at: Stand) -> None:
    request: ModelRequest = at.request(model=replace(at.model, api="other"))
    with pytest.raises(ValueError, match="speaks other"):
        at.api.stream(request, "k")
