"""`/v1/models` and `/v1/chat/completions`: the agents as models, for any program that speaks OpenAI's interface."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from garra.gateway.host import Host
from garra.gateway.http_io import BODY, STREAM, Lines, Rejected, fault, json, line, parse
from garra.gateway.listening import Heard, Listener, wrong
from garra.gateway.openai import NAMES, Ask, Line, agent_of, content, counted, prompt, session_of


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class Message(msgspec.Struct, frozen=True):
    role: str
    content: Any = None
    name: str | None = None


class Completion(msgspec.Struct, frozen=True):
    """What is used of a request; sampling parameters are the agent's own affair."""

    model: str | None = None
    messages: tuple[Message, ...] = ()
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None


def rows(host: Host) -> list[dict[str, Any]]:
    """The agents as models."""
    names = [NAMES[0], f"{NAMES[0]}/default", *(f"{NAMES[0]}/{agent_id}" for agent_id in host.config.agents.ids())]
    return [{"id": name, "object": "model", "created": 0, "owned_by": NAMES[0], "permission": []} for name in names]


def models(host: Host) -> Response:
    return json({"object": "list", "data": rows(host)})


def model(host: Host, name: str) -> Response:
    found = next((row for row in rows(host) if row["id"] == name), None)
    return json(found) if found else fault(f"Unknown model: {name[:128]}")


async def complete(host: Host, request: Request) -> Response:
    """One completion, whole or streamed."""
    asked = await parse(request, Completion, BODY)
    ask = _ask(host, asked, request)
    name = asked.model or NAMES[0]
    run_id = f"chatcmpl_{host.new_id()}"
    head = {"id": run_id, "created": host.clock.now_ms() // 1000, "model": name}
    if not asked.stream:
        return await _whole(Listener(host, ask, run_id), head)
    usage = asked.stream_options is not None and asked.stream_options.include_usage
    listener = Listener(host, ask, run_id)
    return StreamingResponse(_streamed(listener, head, usage=usage), 200, STREAM, "text/event-stream; charset=utf-8")


def _ask(host: Host, asked: Completion, request: Request) -> Ask:
    headers = request.headers
    lines = [Line(message.role, *content(message.content)) for message in asked.messages]
    system, text, images = prompt(lines)
    agent_id = agent_of(host, asked.model, headers)
    key = session_of(host, agent_id, headers, user=asked.user, family="openai")
    return Ask(agent_id, key, text, images, system, headers.get("x-openclaw-model"))


async def _whole(listener: Listener, head: dict[str, Any]) -> Response:
    async with listener as heard:
        ended = await heard.run.wait()
    if bad := wrong(ended):
        return fault(bad[0], bad[1], "api_error")
    heard.ended = ended
    choice = {"index": 0, "message": {"role": "assistant", "content": ended.reply}, "finish_reason": heard.finish}
    return json({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(heard)})


async def _streamed(listener: Listener, head: dict[str, Any], *, usage: bool) -> Lines:
    chunk = {**head, "object": "chat.completion.chunk"}

    def piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return line({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    try:
        async with listener as heard:
            yield piece({"role": "assistant", "content": ""})
            async for words in listener.words():
                yield piece({"content": words})
            ended = heard.ended
        if ended is not None and (bad := wrong(ended)):
            yield line({"error": {"message": bad[0], "type": "api_error", "code": bad[1]}})
        else:
            yield piece({}, heard.finish)
            if usage:
                yield line({**chunk, "choices": [], "usage": _usage(heard)})
    except Rejected as refused:
        yield line(bytes(refused.response.body).decode())
    yield line("[DONE]")


def _usage(heard: Heard) -> dict[str, int]:
    read, written = counted(heard.run.usage)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
