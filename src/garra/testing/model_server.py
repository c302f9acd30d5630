"""A model server with no model: real HTTP on loopback, chat completions and Anthropic messages, streamed.

What it answers stands in `replies`, in order; once they are used up, the last words of the user decide:

    tool:NAME {json}   one call of NAME, then, once its result is there, "tool done"
    say:N              N words
    sleep:S            S seconds, then "slept"
    fail:CODE          an HTTP error
    cut                the connection breaks in the middle
    anything else      "pong: " and the last 40 letters

Of words that stand in a part marked as text from outside, what stands in it counts.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from garra.core.value import frozen
from garra.testing.model_dialects import CARRIER, Cut, Fail, Raw, Reply, Say, Silence, Use, rendered

__all__ = ["Cut", "Fail", "ModelServer", "Raw", "Reply", "Say", "Seen", "Silence", "Use"]


@frozen
class Seen:
    """One request that came in. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw or b"null")

    @property
    def key(self) -> str | None:
        """The secret it brought, whichever header carries it."""
        bearer = self.headers.get("authorization")
        return bearer.removeprefix("Bearer ") if bearer else self.headers.get("x-api-key")


@dataclass
class ModelServer:
    """`async with ModelServer() as server:` gives a running one; point a provider's base URL at `server.url`."""

    replies: list[Reply] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    models: tuple[str, ...] = ("fake",)
    url: str = ""

    def then(self, *replies: Reply) -> ModelServer:
        """Give these next, one a request."""
        self.replies.extend(replies)
        return self

    async def __aenter__(self) -> ModelServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._serving: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            while (seen := await _request(reader)) is not None:
                self.requests.append(seen)
                if not await self._answer(seen, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the caller gave up, as an aborted turn does, or the server closes
        finally:
            writer.transport.abort()

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        if seen.method == "GET":
            listed = [{"id": name, "object": "model"} for name in self.models]
            raw = Raw((json.dumps({"object": "list", "data": listed}).encode(),), kind="application/json")
        else:
            reply = self.replies.pop(0) if self.replies else script(seen.body)
            raw = reply if isinstance(reply, Raw) else rendered(reply, seen.path, seen.body)
        headers = {"content-type": raw.kind, "transfer-encoding": "chunked", **raw.headers}
        lines = [f"HTTP/1.1 {raw.status} x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        if raw.delay_s:
            await asyncio.sleep(raw.delay_s)
        writer.write("\r\n".join(lines).encode())
        for chunk in raw.chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            if raw.pause_s:
                await asyncio.sleep(raw.pause_s)
        if raw.cut:
            await asyncio.sleep(0.02)
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _request(reader: asyncio.StreamReader) -> Seen | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ", 2)
    return Seen(method, path, headers, body)


_MARKED = re.compile(r"<<<EXTERNAL_UNTRUSTED_CONTENT [^\n]*\n[^\n]*\n---\n(.*?)\n<<<END_EXTERNAL_[^\n]*>>>", re.S)


def script(body: Mapping[str, Any]) -> Reply:
    """What the user's last words ask for."""
    said, answered = _last(body.get("messages", ()))
    said = _MARKED.sub(r"\1", said)
    call = re.search(r"tool:(\w+)\s+(\{.*\})", said, re.S)
    if call:
        return Say("tool done") if answered else Use(call[1], json.loads(call[2]))
    if found := re.search(r"say:(\d+)", said):
        return Say(" ".join(f"w{number}" for number in range(int(found[1]))))
    if found := re.search(r"sleep:([\d.]+)", said):
        return Say("slept", delay_s=float(found[1]))
    if found := re.search(r"fail:(\d+)", said):
        return Fail(int(found[1]), f"forced {found[1]}")
    if re.search(r"\bcut\b", said):
        return Cut("partial ")
    return Say("pong: " + said.strip()[-40:])


def _last(messages: Any) -> tuple[str, bool]:
    said, answered = "", False
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        text = content if isinstance(content, str) else "\n".join(str(block.get("text", "")) for block in blocks)
        if message.get("role") == "tool" or any(block.get("type") == "tool_result" for block in blocks):
            answered = True
        elif message.get("role") == "user" and not text.startswith(CARRIER):
            said, answered = text, False
    return said, answered
