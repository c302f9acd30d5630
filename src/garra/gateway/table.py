"""The whole method table, and a way to call it from inside as somebody with few rights."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from garra.core.errors import Forbidden, UserError
from garra.core.frames import reword
from garra.gateway import errands
from garra.gateway.host import Host
from garra.gateway.method import READ, Registry, Reply, inside
from garra.gateway.methods import (
    agent,
    agents,
    agents_files,
    approvals,
    channels,
    chat,
    config,
    context,
    device,
    logs,
    memory,
    messages,
    models,
    models_auth,
    node,
    pairing,
    presence,
    questions,
    secrets,
    sessions,
    sessions_change,
    sessions_compact,
    sessions_keep,
    sessions_say,
    sessions_tree,
    sessions_watch,
    status,
    stop,
    tools,
    tools_why,
    usage,
    waiting,
)
from garra.gateway.schema import emit
from garra.gateway.server import Gateway
from garra.runs.errand import Asking, Errand

DOMAINS = (
    agent,
    agents,
    agents_files,
    approvals,
    channels,
    chat,
    config,
    context,
    logs,
    memory,
    messages,
    models,
    models_auth,
    pairing,
    questions,
    secrets,
    sessions,
    sessions_change,
    sessions_compact,
    sessions_keep,
    sessions_say,
    sessions_tree,
    sessions_watch,
    status,
    stop,
    tools,
    tools_why,
    usage,
    waiting,
)


def of(gateway: Gateway) -> Registry:
    """Every method this gateway answers."""
    own = (presence.rows(gateway), device.DeviceMethods(gateway).rows(), node.rows(gateway))
    return Registry.of(*(domain.METHODS for domain in DOMAINS), *own)


def caller(registry: Registry, host: Host) -> Asking:
    """How a tool asks the gateway: as the turn that it was called in. What is no errand the owner's own turns may read,
    nobody else's. Raises UserError as the method does.
    """
    asking = inside((READ,), "tool")

    async def ask(errand: Errand, method: str, params: Mapping[str, Any]) -> Any:
        if (known := errands.ALL.get(method)) is not None:
            return await known(host, errand, params)
        if errand.place is not None or errand.origin not in ("local", "operator"):
            raise Forbidden(f"{method} is not for turns that come from a chat, a job or another agent")
        row = registry.pick(method, asking.who)
        try:
            parsed = msgspec.convert(dict(params), row.params) if row.params else dict(params)
        except msgspec.ValidationError as fault:
            raise UserError(f"invalid {method} params: {reword(str(fault))}") from None
        answer = row.run(host, asking, parsed)
        if isawaitable(answer):
            answer = await answer
        return answer.payload if isinstance(answer, Reply) else answer

    return ask


def document() -> dict[str, Any]:
    """The protocol as one JSON Schema document, without a gateway that runs."""
    nobody = cast(Gateway, SimpleNamespace(devices=None))  # the rows bind it, none is called
    return emit(of(nobody))
