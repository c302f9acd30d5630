"""Platforms that call us: each channel that wants it has a path on the gateway's port."""

from __future__ import annotations

import logging
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from garra.core.errors import GarraError
from garra.domains.delivery.links import Links
from garra.gateway.host import Host
from garra.gateway.http_io import Rejected, read
from garra.sdk.channel import Answered

log = logging.getLogger(__name__)

BODY: Final = 4 << 20
"""Bytes of one call at most, where a channel has no limit of its own."""


async def answer(host: Host, request: Request) -> Response | None:
    """What the channel at this path answers; None when there is none. The channel itself verifies who calls: by the
    head alone where it can, and only then is the body read.
    """
    links = host.more.get("links")
    found = links.hook(request.url.path) if isinstance(links, Links) else None
    if found is None:
        return None
    channel, receive = found
    headers = dict(request.headers)
    screen = getattr(channel, "screen", None)
    if screen is not None and (refused := screen(request.method, headers)) is not None:
        return _told(refused)
    try:
        body = await read(request, getattr(channel, "body_limit", BODY))
    except Rejected as rejected:
        return rejected.response
    try:
        return _told(await channel.called(request.method, headers, body, receive))
    except GarraError as fault:  # such as a full disk: what was not stored has to come again
        log.warning("a call of %s could not be stored: %s", request.url.path, fault.message)
        return Response(status_code=503, headers={"retry-after": "5"})


def _told(answer: Answered) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers))
