"""A server that turns recordings into words, as it is told to: real HTTP on loopback, faults on demand.

async with AudioServer() as server:         # its address is `server.url`, with /v1 behind it
    server.then(Words("hello"), Refuse(401))
    server.asked[0].fields["model"]
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP

from garra.core.value import frozen
from garra.testing.web import Request, answered, serving


@frozen
class Words:
    """What it heard. `raw` is the whole body instead."""

    text: str = "hello there"
    raw: bytes | None = None


@frozen
class Refuse:
    """An answer of fault; `status` 0 cuts the connection, -1 never answers."""

    status: int
    words: str = "no"


@frozen
class Asked:
    """One recording that came in."""

    path: str
    headers: Mapping[str, str]
    fields: Mapping[str, str]
    file_name: str
    data: bytes


@dataclass
class AudioServer:
    """`async with AudioServer() as server:` gives a running one; without a word it hears `hello there`."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    replies: list[Words | Refuse] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._arrivals: asyncio.Queue[Asked] = asyncio.Queue()

    async def __aenter__(self) -> AudioServer:
        self._serving = serving(self._answer)
        self.url = await self._serving.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.__aexit__(None, None, None)

    def then(self, *replies: Words | Refuse) -> None:
        """What the next ones are answered."""
        self.replies.extend(replies)

    async def arrival(self) -> Asked:
        """Wait for the next one that nobody waited for."""
        return await self._arrivals.get()

    async def _answer(self, request: Request) -> bytes | None:
        self.asked.append(_read(request))
        self._arrivals.put_nowait(self.asked[-1])
        reply = self.replies.pop(0) if self.replies else Words()
        if isinstance(reply, Words):
            return answered(200, json.dumps({"text": reply.text}).encode() if reply.raw is None else reply.raw)
        if reply.status == -1:
            await asyncio.Event().wait()
        if reply.status == 0:
            return None
        return answered(reply.status, json.dumps({"error": {"message": reply.words}}).encode())


def _read(request: Request) -> Asked:
    head = f"content-type: {request.headers.get('content-type', '')}\r\n\r\n".encode()
    whole = BytesParser(policy=HTTP).parsebytes(head + request.body)
    fields: dict[str, str] = {}
    name, data = "", b""
    for part in whole.iter_parts():
        content = bytes(part.get_payload(decode=True) or b"")
        if part.get_filename():
            name, data = str(part.get_filename()), content
        else:
            fields[str(part.get_param("name", header="content-disposition"))] = content.decode()
    return Asked(request.path, request.headers, fields, name, data)
