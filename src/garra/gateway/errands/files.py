"""The errand of tools that name a file which came with a message, or which another tool took from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from garra.core.errors import ToolFailed
from garra.domains.delivery.handles import Handles
from garra.gateway.errands.sight import Run, parsed
from garra.gateway.host import Host
from garra.gateway.params import Params
from garra.runs.errand import Errand

WHERE: Final = "handles"
"""Where they stand in `Host.more`."""


class Naming(Params, frozen=True):
    handle: Annotated[str, Meta(min_length=1, max_length=200)]
    limit: Annotated[int, Meta(ge=1, le=64 << 20)]


async def read(host: Host, errand: Errand, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The file, if its name was given in this very conversation."""
    params = parsed(raw, Naming)
    handles = host.more.get(WHERE)
    if not isinstance(handles, Handles):
        raise ToolFailed("There are no files of messages here.")
    held = await handles.read(errand.session_key, params.handle, params.limit)
    return {"name": held.name, "mime": held.mime, "data": held.data}


ERRANDS: Mapping[str, Run] = {"media.read": read}
