"""The OpenAI interfaces, by OpenAI's own client and by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.house import TOKEN
from tests.gateway.standing import Standing, standing


@asynccontextmanager
async def sdk(gateway: Standing) -> AsyncIterator[openai.AsyncOpenAI]:
    url = f"http://127.0.0.1:{gateway.port}/v1"
    async with openai.AsyncOpenAI(base_url=url, api_key=TOKEN, max_retries=0) as client:
        yield client


def user(text: Any) -> Any:
    return [{"role": "user", "content": text}]


@pytest.mark.req("COF-25", "GW-16")
async def test_the_sdk_lists_agents_and_completes(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, sdk(gateway) as client:
        names = [model.id async for model in client.models.list()]
        assert names == ["openclaw", "openclaw/default", "openclaw/main"]
        assert (await client.models.retrieve("openclaw/main")).owned_by == "openclaw"
        whole = await client.chat.completions.create(model="openclaw/main", messages=user("say hello there"))
        assert whole.choices[0].message.content == "hello there"
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage is not None
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens) == (100, 5, 105)
        assert gateway.acting.seen[0].session_key.startswith("agent:main:openai:")


@pytest.mark.req("GW-16")
async def test_the_sdk_streams_word_by_word(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, sdk(gateway) as client:
        stream = await client.chat.completions.create(
            model="openclaw", messages=user("say a b c d"), stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content] == [
            "a ",
            "b ",
            "c ",
            "d",
        ]
        assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 105


async def test_a_stream_ends_with_done_and_words_before_a_tool_are_a_paragraph(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        body = {"messages": user("tool say x"), "stream": True}
        answer = await http.post("/v1/chat/completions", json=body)
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in answer.text.split("\n\n") if line]
        assert lines[-1] == "data: [DONE]"
        assert all(line.startswith("data: ") for line in lines)


async def test_a_caller_who_leaves_stops_the_run(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        body = {"messages": user("wait"), "stream": True}
        async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
            await anext(answer.aiter_bytes())
            (run,) = gateway.host.runs.every()
        assert (await run.wait(5)).ending == "aborted"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_reaches_the_caller(tmp_path: Path, stream: bool) -> None:
    async with standing(tmp_path) as gateway, sdk(gateway) as client:
        with pytest.raises(openai.APIError, match="refused the key"):
            answer: Any = await client.chat.completions.create(model="openclaw", messages=user("fail"), stream=stream)
            async for _ in answer:
                pass


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Missing user message"),
        ({"messages": []}, "Missing user message"),
        ({"messages": "x"}, "at /messages: must be array"),
        ({"messages": user("x"), "model": "gpt-9"}, "Invalid `model`"),
        ({"messages": user("x"), "model": "openclaw/nobody"}, "Unknown agent"),
        ({"messages": user([{"type": "image_url", "image_url": {"url": "http://x/y.png"}}])}, "data: URLs"),
        ({"messages": user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,!"}}])}, "Invalid image"),
        (
            {"messages": user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}] * 9)},
            "Too many images",
        ),
    ],
)
async def test_what_cannot_be_answered_is_told(tmp_path: Path, body: dict[str, Any], words: str) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        answer = await http.post("/v1/chat/completions", json=body)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert (words in error["message"], error["type"]) == (True, "invalid_request_error")
        assert gateway.acting.seen == []


async def test_edges_of_the_interface(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        assert (await http.get("/v1/chat/completions")).status_code == 405
        assert (await http.post("/v1/models/openclaw")).status_code == 405
        assert (await http.get("/v1/models/gpt-9")).status_code == 400
        assert (await http.post("/v1/chat/completions", content=b"{")).status_code == 400


async def test_the_callers_history_is_told_and_its_session_kept(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        talk = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "second"},
            {"role": "user", "content": [{"type": "text", "text": "say third"}, picture]},
        ]
        body = {"messages": talk, "user": "Ann:1"}
        headers = {"x-openclaw-model": "fake/fake"}
        assert (await http.post("/v1/chat/completions", json=body, headers=headers)).status_code == 200
        turn = gateway.acting.seen[0]
        assert (turn.session_key, turn.extra_system, turn.model) == (
            "agent:main:openai-user:ann:1",
            "Be brief.",
            "fake/fake",
        )
        assert "User: first\nAssistant: second" in turn.text
        assert turn.text.endswith("User: say third")
        assert [image.media_type for image in turn.images] == ["image/png"]
        named = {"x-openclaw-session-key": "mine", "x-openclaw-agent-id": "main"}
        await http.post("/v1/chat/completions", json={"messages": user("x")}, headers=named)
        assert gateway.acting.seen[1].session_key == "agent:main:mine"
        for bad in (
            {"x-openclaw-model": "none/x"},
            {"x-openclaw-agent-id": "nobody"},
            {"x-openclaw-session-key": "agent:nobody:x"},
        ):
            answer = await http.post("/v1/chat/completions", json={"messages": user("x")}, headers=bad)
            assert answer.status_code == 400


ORDER = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


async def test_responses_stream_in_order(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, sdk(gateway) as client, gateway.http() as http:
        stream = await client.responses.create(model="openclaw", input="say a b", stream=True)
        events = [event async for event in stream]
        assert [event.type for event in events] == ORDER
        raw = await http.post("/v1/responses", json={"model": "openclaw", "input": "say a b", "stream": True})
        blocks = [block for block in raw.text.split("\n\n") if block]
        assert blocks[-1] == "data: [DONE]"
        numbers = [json.loads(block.partition("data: ")[2])["sequence_number"] for block in blocks[:-1]]
        assert numbers == list(range(len(ORDER)))


async def test_responses_whole_and_going_on(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, sdk(gateway) as client:
        items: Any = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "say hi"}]}]
        first = await client.responses.create(model="openclaw", input=items, instructions="Be kind.")
        assert (first.output_text, first.status) == ("hi", "completed")
        assert first.usage is not None
        assert first.usage.total_tokens == 105
        await client.responses.create(model="openclaw", input="say more", previous_response_id=first.id)
        one, two = gateway.acting.seen
        assert one.session_key == two.session_key
        assert one.session_key.startswith("agent:main:openresponses:")
        assert one.extra_system == "Be kind."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_response(tmp_path: Path, stream: bool) -> None:
    async with standing(tmp_path) as gateway, gateway.http() as http:
        answer = await http.post("/v1/responses", json={"model": "openclaw", "input": "fail", "stream": stream})
        assert "refused the key" in answer.text
        assert answer.status_code == (200 if stream else 500)
        if stream:
            assert "response.failed" in answer.text
        missing = await http.post("/v1/responses", json={})
        assert (missing.status_code, "model" in missing.json()["error"]["message"]) == (400, True)


async def test_many_callers_at_once(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, sdk(gateway) as client:
        asked = [client.chat.completions.create(model="openclaw", messages=user(f"say n{n}")) for n in range(20)]
        answers = await asyncio.gather(*asked)
        assert [a.choices[0].message.content for a in answers] == [f"n{n}" for n in range(20)]
