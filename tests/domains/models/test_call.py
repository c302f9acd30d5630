"""One call: its key, its second try, what is mended, what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from garra.config.load import load
from garra.config.paths import resolve
from garra.core.errors import FailureKind, RunFailed
from garra.core.events import CallDelta, Done, Failed, TextDelta
from garra.core.failover import Attempt
from garra.core.messages import Assistant, Image, Text, Thinking, User
from garra.core.resuming import NOTE
from garra.core.secret import Secret
from garra.domains.models import params
from garra.domains.models.call import Way
from garra.io.env import Environment
from garra.sdk.model import EventStream
from garra.testing.model_dialects import Cut, Fail, Raw, Say, Silence, Use
from tests.domains.models.desk import Desk, desk, user


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk() as ready:
        ready.configure(ready.provider())
        yield ready


async def failure(stream: EventStream) -> Failed:
    last = [event async for event in stream][-1]
    assert isinstance(last, Failed)
    return last


@pytest.mark.req("LOOP-06")
async def test_a_key_changed_between_two_calls_counts_at_once(at: Desk) -> None:
    at.server.then(Use("ls", {}), Say("done"))
    first = await at.models.stream(at.request("fake/m")).result()
    assert first.stop == "toolUse"
    at.configure(at.provider(apiKey="fresh"))
    await at.models.stream(at.request("fake/m")).result()
    assert [seen.key for seen in at.server.requests] == ["k", "fresh"]


async def test_a_key_that_the_server_repeats_is_blotted_out(at: Desk) -> None:
    at.configure(at.provider(apiKey="Zq81fLm0pasWd77"))
    at.server.then(Fail(401, "Zq81fLm0pasWd77 is no key of ours"))
    failed = await failure(at.models.stream(at.request("fake/m")))
    assert "[key] is no key of ours" in failed.failure.message
    assert "Zq81fLm0" not in f"{failed.failure} {failed.message}"


async def test_a_key_of_the_environment(at: Desk) -> None:
    at.configure({"models": {"providers": {"groq": {"baseUrl": f"{at.server.url}/v1"}}}})
    at.env["GROQ_API_KEY"] = "g"
    await at.models.stream(at.request("groq/m")).result()
    assert at.server.requests[0].key == "g"
    assert await at.models.key("groq") == "g"
    assert await at.models.key("ollama") is None


@pytest.mark.req("COF-17")
@pytest.mark.parametrize("family", ["openai-completions", "anthropic-messages"])
@pytest.mark.timeout(40)
async def test_the_projection_of_a_managing_program(at: Desk, family: str) -> None:
    model = {"id": "m", "name": "M"}
    settings = at.provider("coffer", api=family, apiKey="from-env", models=[model])
    at.configure({**settings, "agents": {"defaults": {"model": {"primary": "coffer/m"}}}})
    message = await at.models.stream(replace(at.request("coffer/m"), model=at.models.resolve())).result()
    assert message.text == "pong: hi"
    seen = at.server.requests[0]
    assert seen.path == ("/v1/chat/completions" if family == "openai-completions" else "/v1/messages")
    assert seen.headers["authorization"] == "Bearer from-env"
    assert seen.headers.get("x-api-key", "from-env") == "from-env"


@pytest.mark.req("COF-19")
async def test_a_missing_key_fails_that_provider_only_and_no_name_goes_out(at: Desk, tmp_path: object) -> None:
    folder = str(tmp_path)
    env = Environment({"GARRA_STATE_DIR": folder, "HOME": folder})
    paths = resolve(env)
    paths.config_file.write_text(
        """{models: {providers: {
            coffer: {baseUrl: "URL/v1", apiKey: "${COFFER_PROVIDER_KEY}", models: []},
            other: {baseUrl: "URL/v1", apiKey: "k", models: []},
        }}}""".replace("URL", at.server.url)
    )
    snapshot = await asyncio.to_thread(load, paths, env)
    assert snapshot.valid
    at.config = snapshot.config
    missing = await failure(at.models.stream(at.request("coffer/m")))
    assert missing.failure.kind is FailureKind.NO_KEY
    assert "no key for coffer" in missing.failure.message
    assert "COFFER_PROVIDER_KEY" in missing.failure.message
    assert (await at.models.stream(at.request("other/m")).result()).text == "pong: hi"
    assert len(at.server.requests) == 1
    assert b"${" not in at.server.requests[0].raw
    assert not any("${" in value for value in at.server.requests[0].headers.values())


async def test_a_name_left_unfilled_never_goes_out(at: Desk) -> None:
    at.configure(at.provider(apiKey="${NOT_SET}"))
    with pytest.raises(RunFailed, match="not set"):
        await at.models.key("fake")
    at.configure(at.provider(headers={"x-tenant": Secret("", missing='Missing env var "TENANT"')}))
    assert "TENANT" in (await failure(at.models.stream(at.request("fake/m")))).failure.message
    assert not at.server.requests


async def test_no_key_says_what_to_set(at: Desk) -> None:
    found = await failure(at.models.stream(at.request("groq/m")))
    assert found.failure.kind is FailureKind.NO_KEY
    assert "GROQ_API_KEY" in found.failure.message
    assert found.failure.model == "m"


@pytest.mark.parametrize("fault", [Cut(""), Fail(500, "oops"), Fail(529, "busy"), Say("")])
async def test_a_passing_fault_is_tried_twice_more(at: Desk, fault: Cut | Fail | Say) -> None:
    at.server.then(fault, fault, Say("fine"))
    assert (await at.models.stream(at.request("fake/m")).result()).text == "fine"
    at.server.then(fault, fault, fault, Say("never"))
    assert isinstance(await failure(at.models.stream(at.request("fake/m"))), Failed)


HALF_CALL = (
    b'data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function",'
    b'"function":{"name":"ls","arguments":"{\\"path"}}]}}]}\n\n'
)


async def test_a_call_that_breaks_off_is_asked_for_again_and_never_seen(at: Desk) -> None:
    at.server.then(Raw((HALF_CALL,)), Raw((HALF_CALL,)), Use("ls", {"path": "."}))
    found = [event async for event in at.models.stream(at.request("fake/m"))]
    assert len(at.server.requests) == 3
    last = found[-1]
    assert isinstance(last, Done)
    assert [call.arguments for call in last.message.calls] == [{"path": "."}]
    assert "".join(event.delta for event in found if isinstance(event, CallDelta)) == '{"path": "."}'


async def test_nothing_is_said_twice(at: Desk) -> None:
    at.server.then(Cut("half a "), Say("whole"))
    found = [event async for event in at.models.stream(at.request("fake/m"))]
    assert [event.delta for event in found if isinstance(event, TextDelta)] == ["half ", "a ", "whole"]
    assert isinstance(found[-1], Done)
    assert found[-1].message.text == "half a whole"
    said = [message["content"] for message in at.server.requests[1].body["messages"]]
    assert said[-2:] == ["half a ", NOTE]
    assert len(at.server.requests) == 2


async def test_the_next_key_of_the_provider_answers_and_the_trace_says_so(at: Desk) -> None:
    at.configure({"models": {"providers": {"groq": {"baseUrl": f"{at.server.url}/v1"}}}})
    at.env |= {"GROQ_API_KEYS": "one,two", "GROQ_API_KEY_3": "three"}
    told: list[Attempt] = []
    for fault in (Fail(429, "slow down"), Fail(401, "no such key")):
        at.server.then(fault)
        assert (await at.models.stream(at.request("groq/m"), Way(told.append)).result()).text == "pong: hi"
    assert [seen.key for seen in at.server.requests] == ["one", "two", "two", "three"]
    assert [(each.profile, each.level, each.result) for each in told] == [
        ("groq:env", "first", "rate_limit"), ("groq:env2", "profile", "success"),
        ("groq:env2", "first", "auth"), ("groq:env3", "profile", "success"),
    ]  # fmt: skip


async def test_an_answer_cut_again_and_again_is_whole_in_the_end(at: Desk) -> None:
    at.server.then(Cut("one "), Cut("two "), Use("ls", {"path": "."}, text="three"))
    found = await at.models.stream(at.request("fake/m")).result()
    assert (found.text, found.stop, [call.name for call in found.calls]) == ("one two three", "toolUse", ["ls"])
    said = [request.body["messages"][-2]["content"] for request in at.server.requests[1:]]
    assert said == ["one ", "one two "], "each goes on behind all that was shown"
    assert all(len(request.body["messages"]) == 4 for request in at.server.requests[1:])


async def test_what_was_shown_is_kept_also_where_nobody_goes_on(at: Desk) -> None:
    at.server.then(Cut("one "), Cut("two "), Cut("three "))
    failed = await failure(at.models.stream(at.request("fake/m")))
    assert failed.message.text == "one two three "
    assert failed.failure.kind is FailureKind.CUT


async def test_thoughts_are_no_words_a_call_after_them_begins_anew(at: Desk) -> None:
    thought = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
    at.server.then(Raw((thought,), cut=True), Say("the answer", thinking="well"))
    found = await at.models.stream(at.request("fake/m")).result()
    assert found.text == "the answer"
    assert [part.text for part in found.content if isinstance(part, Thinking)] == ["well"]
    assert at.server.requests[0].body["messages"] == at.server.requests[1].body["messages"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, FailureKind.REFUSED),
        (401, FailureKind.AUTH),
        (402, FailureKind.BILLING),
        (404, FailureKind.NOT_FOUND),
        (429, FailureKind.RATE_LIMIT),
    ],
)
async def test_a_lasting_fault_is_not_tried_again(at: Desk, status: int, kind: FailureKind) -> None:
    at.server.then(Fail(status, "forced", {"retry-after": "7"}))
    found = (await failure(at.models.stream(at.request("fake/m")))).failure
    assert (found.kind, found.status, found.retry_after_ms) == (kind, status, 7_000)
    assert (found.provider, found.model) == ("fake", "m")
    assert len(at.server.requests) == 1


async def test_refused_thoughts_are_left_out_and_it_goes_on(at: Desk) -> None:
    at.server.then(Fail(400, "messages.1: Invalid `signature` in `thinking` block"), Say("fine"))
    history = (user(), Assistant((Thinking("hm", "sig"), Text("a")), 2), user("b"))
    assert (await at.models.stream(at.request("fake/m", *history)).result()).text == "fine"


async def test_a_refused_picture_is_replaced_and_it_goes_on(at: Desk) -> None:
    at.configure(at.provider(models=[{"id": "m", "name": "M", "input": ["text", "image"]}]))
    at.server.then(Fail(400, "image exceeds 5 MB maximum"), Say("fine"))
    picture = User((Text("look"), Image("image/png", "QUJD")), 1)
    assert (await at.models.stream(at.request("fake/m", picture)).result()).text == "fine"
    assert b"QUJD" in at.server.requests[0].raw
    assert b"QUJD" not in at.server.requests[1].raw


async def test_a_field_the_server_does_not_know_is_left_out_from_then_on(at: Desk) -> None:
    at.server.then(Fail(400, "Unsupported parameter: 'max_completion_tokens'"), Say("fine"), Say("again"))
    assert (await at.models.stream(at.request("fake/m")).result()).text == "fine"
    assert (await at.models.stream(at.request("fake/m")).result()).text == "again"
    assert [("max_tokens" in seen.body) for seen in at.server.requests] == [False, True, True]


async def test_a_server_that_keeps_the_line_open_after_done(at: Desk) -> None:
    said = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    at.server.then(Raw((said, b": bye\n\n"), pause_s=5.0))
    assert (await at.models.stream(at.request("fake/m")).result()).text == "hi"


async def test_an_answer_that_is_no_stream(at: Desk) -> None:
    said = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'
    at.server.then(Raw((said,), kind="application/json"), Raw((b"data: " + said + b"\n\n",), kind="text/plain"))
    assert (await at.models.stream(at.request("fake/m")).result()).text == "hi"
    assert (await at.models.stream(at.request("fake/m")).result()).text == "hi"


async def test_the_owners_patience_counts(at: Desk) -> None:
    at.configure(at.provider(timeoutSeconds=0.1))
    at.server.then(Silence())
    assert (await failure(at.models.stream(at.request("fake/m")))).failure.kind is FailureKind.TIMEOUT


async def test_a_call_has_its_price(at: Desk) -> None:
    cost = {"input": 3, "output": 15, "cacheRead": 0.3}
    at.configure(at.provider(models=[{"id": "m", "name": "M", "cost": cost}]))
    at.server.then(Say("x", usage=(1_000_000, 200_000)))
    last = [event async for event in at.models.stream(at.request("fake/m"))][-1]
    assert isinstance(last, Done)
    assert last.message.usage.cost == pytest.approx(6.0)


@pytest.mark.req("MODEL-02")
async def test_a_vendor_is_configuration_only_and_goes_with_its_family(at: Desk) -> None:
    assert (await at.models.stream(at.request("fake/m")).result()).text == "pong: hi"
    wrong = at.apis.pop("openai-completions")
    gone = await failure(at.models.stream(at.request("fake/m")))
    assert "no plugin brings the model family openai-completions" in gone.failure.message
    at.apis["anthropic-messages"] = wrong
    at.configure(at.provider(api="anthropic-messages"))
    with pytest.raises(ValueError, match="the family found there is openai-completions"):
        at.models.stream(at.request("fake/m"))


async def test_abort_stops_the_call(at: Desk) -> None:
    at.server.then(Silence())
    stream = at.models.stream(at.request("fake/m"))
    stream.abort()
    assert (await stream.result()).stop == "aborted"


async def test_a_family_is_prepared_in_the_background(at: Desk) -> None:
    at.configure({**at.provider(), "agents": {"defaults": {"model": "fake/m"}}})
    await at.models.warm()
    assert (await at.models.stream(at.request("fake/m")).result()).stop == "stop"
    at.apis.clear()
    await at.models.warm()  # a family that is gone is no fault of the start
    assert (await at.models.stream(at.request("fake/m")).result()).stop == "error"


async def test_half_a_letter_does_not_break_the_request(at: Desk) -> None:
    await at.models.stream(at.request("fake/m", user("half \ud83d a letter"))).result()
    assert at.server.requests[0].body["messages"][-1]["content"] == "half ? a letter"


async def test_params_of_an_agent_count_more_than_those_of_a_model(at: Desk) -> None:
    common = {
        "params": {"temperature": 0.9, "maxTokens": 900, "extra_body": {"seed": 7}},
        "models": {"fake/m": {"params": {"temperature": 0.5, "thinking": "high"}}},
    }
    agents = [
        {"id": "main"},
        {"id": "dry", "params": {"temperature": 0}},
        {"id": "brief", "models": {"fake/m": {"params": {"maxTokens": 90, "thinking": "off"}}}},
        {"id": "odd", "params": {"temperature": "warm", "maxTokens": -1, "thinking": 5}},
    ]
    at.configure({**at.provider(), "agents": {"defaults": common, "list": agents}})
    for agent in ("main", "dry", "brief", "odd"):
        await at.models.stream(replace(at.request("fake/m"), model=at.models.resolve("fake/m", agent))).result()
    said = [(seen.body.get("temperature"), seen.body["max_completion_tokens"], seen.body["seed"])
            for seen in at.server.requests]  # fmt: skip
    assert said[:3] == [(0.5, 900, 7), (0.0, 900, 7), (0.5, 90, 7)]
    assert (said[3][0], said[3][1] > 900) == (None, True), "what makes no sense is left out"
    levels = [params.level(at.models.resolve("fake/m", agent)) for agent in ("main", "brief", "odd")]
    assert levels == ["high", "off", None]
    await at.models.stream(replace(at.request("fake/m"), temperature=0.1)).result()
    assert at.server.requests[-1].body["temperature"] == 0.1, "what a call needs stays"
