"""A model server without a model: OpenAI chat completions, streamed or not, as fast as a server can be.

The newest user text says what is answered:

    tool:NAME {json}   one call of the tool NAME; once its result is in the history, "tool done"
    say:N              N words, a chunk each
    sleep:S            S seconds of silence, then "slept"
    anything else      "pong: " and the last 40 characters of the text

`GET /stats` gives counters and the sizes of the newest request; `?again` then counts `max_inflight` anew.
Run: python -m bench.model PORT [skim]
`skim` looks at the end of a long request only, so that it takes next to nothing of the machine it is not part of.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
from aiohttp import web

CARRIER = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT"
"""How a message starts that OpenClaw puts after the user's own text."""


class Message(msgspec.Struct):
    """One message of a request, as far as it matters here."""

    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(str(block.get("text", "")) for block in self.content)
        return self.content or ""


class Request(msgspec.Struct):
    """A chat completion request, as far as it matters here."""

    messages: list[Message]
    model: str = "fake"
    stream: bool = False
    tools: msgspec.Raw = msgspec.Raw(b"")


@dataclass(slots=True)
class Stats:
    """Counters since the start; `system_bytes`, `tools_bytes` and `tools` are of the newest request."""

    requests: int = 0
    inflight: int = 0
    max_inflight: int = 0
    bytes_in: int = 0
    newest_bytes: int = 0
    system_bytes: int = 0
    tools_bytes: int = 0
    tools: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes back: text, or one tool call; after `wait_s` seconds."""

    text: str = ""
    call: tuple[str, str] | None = None
    wait_s: float = 0.0


def answer(messages: list[Message]) -> Answer:
    """What the newest user text asks for."""
    called = False
    for message in reversed(messages):
        called = called or message.role == "tool"
        if message.role == "user" and not message.text.startswith(CARRIER):
            return _asked(message.text, called)
    return Answer("pong: ")


def _asked(text: str, called: bool) -> Answer:
    if found := re.search(r"tool:(\w+)\s+(\{.*\})", text, re.S):
        return Answer("tool done") if called else Answer(call=(found[1], found[2]))
    if found := re.search(r"say:(\d+)", text):
        return Answer(" ".join(f"w{n}" for n in range(int(found[1]))))
    if found := re.search(r"sleep:([\d.]+)", text):
        return Answer("slept", wait_s=float(found[1]))
    return Answer("pong: " + text.strip()[-40:])


TAIL = 8_000
"""Bytes at the end of a request in which its newest user text stands, if it is short."""
NEWEST = re.compile(rb'"role": ?"user", ?"content": ?("(?:[^"\\]|\\.)*")')


def skimmed(raw: bytes) -> Request | None:
    """A streamed request with its newest user text alone; None where that does not stand in its last bytes."""
    texts = NEWEST.findall(raw[-TAIL:]) if len(raw) > TAIL else []
    return Request([Message("user", json.loads(texts[-1]))], stream=True) if texts else None


@dataclass(slots=True)
class Model:
    """The server's one route that matters, and what it has seen."""

    skim: bool = False
    stats: Stats = field(default_factory=Stats)
    decoder: msgspec.json.Decoder[Request] = field(default_factory=lambda: msgspec.json.Decoder(Request))

    async def complete(self, http: web.Request) -> web.StreamResponse:
        raw = await http.read()
        request = (skimmed(raw) if self.skim else None) or self.decoder.decode(raw)
        self._seen(raw, request)
        try:
            reply = answer(request.messages)
            if reply.wait_s:
                await asyncio.sleep(reply.wait_s)
            chunks = self._chunks(request, reply, len(raw))
            return await _stream(http, chunks) if request.stream else self._whole(request, reply, len(raw))
        finally:
            self.stats.inflight -= 1

    def _seen(self, raw: bytes, request: Request) -> None:
        stats, tools = self.stats, bytes(request.tools)
        stats.requests += 1
        stats.inflight += 1
        stats.max_inflight = max(stats.max_inflight, stats.inflight)
        stats.bytes_in += len(raw)
        stats.newest_bytes = len(raw)
        system = [m.text for m in request.messages if m.role in ("system", "developer")]
        stats.system_bytes = sum(len(text.encode()) for text in system)
        stats.tools_bytes = len(tools)
        stats.tools = tools.count(b'"function":{') + tools.count(b'"function": {')

    def _head(self, request: Request, kind: str) -> dict[str, Any]:
        return {"id": f"c{self.stats.requests}", "object": kind, "created": 0, "model": request.model}

    def _chunks(self, request: Request, reply: Answer, size: int) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if reply.call:
            name, arguments = reply.call
            call = {"index": 0, "id": f"call_{self.stats.requests}", "type": "function"}
            deltas.append({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})
        else:
            deltas += [{"content": word} for word in re.findall(r"\S+\s*", reply.text)]
        head = self._head(request, "chat.completion.chunk")
        steps: list[tuple[dict[str, Any], str | None]] = [(delta, None) for delta in deltas]
        steps.append(({}, "tool_calls" if reply.call else "stop"))
        chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": end}]} for d, end in steps]
        return [*chunks, {**head, "choices": [], "usage": _usage(size)}]

    def _whole(self, request: Request, reply: Answer, size: int) -> web.Response:
        message: dict[str, Any] = {"role": "assistant", "content": None if reply.call else reply.text}
        if reply.call:
            function = {"name": reply.call[0], "arguments": reply.call[1]}
            message["tool_calls"] = [{"id": f"call_{self.stats.requests}", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.call else "stop"}
        head = self._head(request, "chat.completion")
        return web.json_response({**head, "choices": [choice], "usage": _usage(size)})

    async def tell(self, http: web.Request) -> web.Response:
        told = asdict(self.stats)
        if "again" in http.query:
            self.stats.max_inflight = self.stats.inflight
        return web.json_response(told)


def _usage(size: int) -> dict[str, int]:
    return {"prompt_tokens": size // 4, "completion_tokens": 5, "total_tokens": size // 4 + 5}


async def _stream(http: web.Request, chunks: list[dict[str, Any]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(http)
    for chunk in chunks:
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def _models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": "fake", "object": "model", "owned_by": "bench"}]})


def main() -> None:
    model = Model(skim="skim" in sys.argv[2:])
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", model.complete)
    app.router.add_get("/v1/models", _models)
    app.router.add_get("/stats", model.tell)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
