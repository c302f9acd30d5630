"""HTTP bodies: read under a limit, answered as JSON in the forms that clients know."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from garra.core.frames import reword
from garra.gateway.site import VOUCH

T = TypeVar("T")

BODY = 20_000_000
"""Bytes of a request to /v1 at most."""

SMALL = 2_097_152
"""Bytes of a request to /tools/invoke at most."""


class Rejected(Exception):
    """Ends a request with an answer."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def vouch(request: Request) -> None:
    """Who asks has shown the secret: the body may take longer than a stranger's."""
    known = request.scope.get(VOUCH)
    if callable(known):
        known()


def json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, "application/json; charset=utf-8")


def text(body: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(body, status, headers)


def missing() -> Response:
    return text("Not Found", 404)


def disallowed(*allowed: str) -> Response:
    return text("Method Not Allowed", 405, {"allow": ", ".join(allowed)})


def fault(message: str, status: int = 400, kind: str = "invalid_request_error") -> Response:
    """The error form of the OpenAI interfaces."""
    return json({"error": {"message": message, "type": kind}}, status)


async def read(request: Request, limit: int) -> bytes:
    """The whole body. Raises Rejected (413) as soon as it is larger than `limit`; no more than that is ever held.

    A caller who hangs up before the end is Rejected too; nobody reads that answer.
    """
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > limit:
        raise Rejected(fault("Payload too large", 413))
    parts, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise Rejected(fault("Payload too large", 413))
            parts.append(chunk)
    except ClientDisconnect:
        raise Rejected(fault("the body ended early")) from None
    return b"".join(parts)


async def parse(request: Request, shape: type[T], limit: int = BODY) -> T:
    """The body as `shape`. Raises Rejected: 413, or 400 with what is wrong and where."""
    data = await read(request, limit)
    try:
        return msgspec.json.decode(data or b"{}", type=shape)
    except msgspec.ValidationError as wrong:
        raise Rejected(fault(reword(str(wrong)))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise Rejected(fault(f"invalid JSON: {wrong}")) from None


def line(data: Any, event: str = "") -> bytes:
    """One server-sent event."""
    body = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    head = f"event: {event}\n".encode() if event else b""
    return b"%bdata: %b\n\n" % (head, body)


STREAM = {"cache-control": "no-cache", "x-accel-buffering": "no"}

Lines = AsyncIterator[bytes]
