"""Platforms that call us: each channel that wants it has a path on the gateway's port."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from garra.domains.delivery.links import Links
from garra.gateway.host import Host
from garra.gateway.http_io import Rejected, read

BODY: Final = 4 << 20
"""Bytes of one call at most."""


async def answer(host: Host, request: Request) -> Response | None:
    """What the channel at this path answers; None when there is none. The channel itself verifies who calls."""
    links = host.more.get("links")
    found = links.hook(request.url.path) if isinstance(links, Links) else None
    if found is None:
        return None
    channel, receive = found
    try:
        body = await read(request, BODY)
    except Rejected as rejected:
        return rejected.response
    told = await channel.called(request.method, dict(request.headers), body, receive)
    return Response(told.body, told.status, dict(told.headers))
