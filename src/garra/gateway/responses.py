"""`/v1/responses`: one answer of an agent in the newer OpenAI form, whole or as its events."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from garra.core.ids import SessionKey
from garra.gateway.host import Host
from garra.gateway.http_io import BODY, STREAM, Lines, Rejected, fault, json, line, parse
from garra.gateway.listening import Heard, Listener, wrong
from garra.gateway.openai import NAMES, Ask, Line, agent_of, content, counted, prompt, session_of

KEPT = 1000


class Asked(msgspec.Struct, frozen=True):
    """What is used of a request."""

    model: str
    input: str | tuple[dict[str, Any], ...]
    instructions: str | None = None
    stream: bool = False
    user: str | None = None
    previous_response_id: str | None = None


class Responses:
    """Answers requests. Remembers in which session the last answers were given, so that one may go on from them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._sessions: OrderedDict[str, SessionKey] = OrderedDict()

    async def answer(self, request: Request) -> Response:
        asked = await parse(request, Asked, BODY)
        ask = self._ask(asked, request)
        answer_id = f"resp_{self._host.new_id()}"
        self._sessions[answer_id] = ask.session_key
        if len(self._sessions) > KEPT:
            self._sessions.popitem(last=False)
        told = Told(answer_id, f"msg_{self._host.new_id()}", self._host.clock.now_ms() // 1000, asked.model)
        listener = Listener(self._host, ask, answer_id)
        if asked.stream:
            return StreamingResponse(_streamed(listener, told), 200, STREAM, "text/event-stream; charset=utf-8")
        return await _whole(listener, told)

    def _ask(self, asked: Asked, request: Request) -> Ask:
        headers = request.headers
        system, text, images = prompt(_lines(asked))
        agent_id = agent_of(self._host, asked.model or NAMES[0], headers)
        key = self._sessions.get(asked.previous_response_id or "")
        key = key or session_of(self._host, agent_id, headers, user=asked.user, family="openresponses")
        return Ask(agent_id, key, text, images, system, headers.get("x-openclaw-model"))


def _lines(asked: Asked) -> list[Line]:
    lines = [Line("system", asked.instructions)] if asked.instructions else []
    if isinstance(asked.input, str):
        return [*lines, Line("user", asked.input)]
    return [*lines, *(found for item in asked.input if (found := _item(item)))]


def _item(item: dict[str, Any]) -> Line | None:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        return Line("tool", str(item.get("output", "")))
    if kind != "message":
        return None
    return Line(str(item.get("role", "user")), *content(item.get("content")))


class Told(msgspec.Struct, frozen=True):
    """What every form of one answer repeats."""

    answer_id: str
    message_id: str
    created: int
    model: str

    def response(
        self, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        return {
            "id": self.answer_id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "output": output,
            "usage": usage,
        }

    def message(self, text: str, status: str) -> dict[str, Any]:
        item = {"type": "message", "id": self.message_id, "role": "assistant", "status": status}
        return {**item, "content": [part(text)] if status == "completed" else [], "phase": "final_answer"}


def part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _usage(heard: Heard) -> dict[str, Any]:
    read, written = counted(heard.run.usage)
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_details": {"cached_tokens": heard.run.usage.cache_read},
        "output_tokens_details": {"reasoning_tokens": 0},
    }


async def _whole(listener: Listener, told: Told) -> Response:
    async with listener as heard:
        ended = await heard.run.wait()
    if bad := wrong(ended):
        return fault(bad[0], bad[1], "api_error")
    return json(told.response("completed", [told.message(ended.reply, "completed")], _usage(heard)))


async def _streamed(listener: Listener, told: Told) -> Lines:
    number = -1

    def event(name: str, **more: Any) -> bytes:
        nonlocal number
        number += 1
        return line({"type": f"response.{name}", "sequence_number": number, **more}, f"response.{name}")

    at = {"item_id": told.message_id, "output_index": 0, "content_index": 0}
    try:
        async with listener as heard:
            yield event("created", response=told.response("in_progress", []))
            yield event("in_progress", response=told.response("in_progress", []))
            yield event("output_item.added", output_index=0, item=told.message("", "in_progress"))
            yield event("content_part.added", **at, part=part(""))
            said = []
            async for words in listener.words():
                said.append(words)
                yield event("output_text.delta", **at, delta=words)
            text = "".join(said)
            ended = heard.ended
        if ended is not None and (bad := wrong(ended)):
            error = {"code": "server_error", "message": bad[0]}
            yield event("failed", response={**told.response("failed", [], _usage(heard)), "error": error})
        else:
            whole = told.message(text, "completed")
            yield event("output_text.done", **at, text=text)
            yield event("content_part.done", **at, part=part(text))
            yield event("output_item.done", output_index=0, item=whole)
            yield event("completed", response=told.response("completed", [whole], _usage(heard)))
    except Rejected as refused:
        yield line(bytes(refused.response.body).decode(), "error")
    yield line("[DONE]")
