"""`GET /files/<link>/<name>`: a file that a chat's platform did not take. Whoever has the link gets it, nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from garra.core.errors import GarraError
from garra.domains.delivery.shares import Shares
from garra.gateway.host import Host
from garra.gateway.http_io import missing

HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex",
}
"""It is kept by nobody on the way, found by no search, and never shown as a page of this origin."""


async def answer(host: Host, request: Request) -> Response:
    """The file, to be saved; for every other link the same: there is nothing."""
    shares = host.more.get("shares")
    if not isinstance(shares, Shares):
        return missing()
    try:
        found = await shares.find(str(request.path_params["link"]))
    except GarraError:
        return missing()
    return FileResponse(found.path, headers=HEADERS, media_type="application/octet-stream", filename=found.name)
