"""`memory.search`, `memory.index`, `doctor.memory.status`: what an agent remembers, for the owner's own clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol, cast

from msgspec import Meta

from garra.core.errors import Unavailable
from garra.gateway.host import Host
from garra.gateway.method import READ, WRITE, Caller, Method
from garra.gateway.params import Name, Params

WHERE: Final = "memory"
"""Where memory stands in `Host.more`."""


class Memory(Protocol):
    """As `app.memory.Remembering`."""

    async def asked(self, agent_id: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    async def status(self, agent_id: str, *, deep: bool) -> dict[str, Any]: ...

    async def index(self, agent_id: str, *, force: bool, wait: bool) -> dict[str, Any]: ...


class MemorySearch(Params, frozen=True):
    """A search as the owner; scores go from 0 to 1."""

    query: Annotated[str, Meta(min_length=1, max_length=4_000)]
    agent_id: Name | None = None
    max_results: Annotated[int, Meta(ge=1, le=50)] | None = None
    min_score: Annotated[float, Meta(ge=0, le=1)] | None = None
    corpus: Literal["memory", "sessions", "all"] = "all"


class MemoryIndex(Params, frozen=True):
    """`force` reads everything again; `wait`: until all vectors are made."""

    agent_id: Name | None = None
    force: bool = False
    wait: bool = False


class MemoryStatus(Params, frozen=True):
    """`deep` also asks whoever makes the vectors."""

    agent_id: Name | None = None
    deep: bool = False
    probe: bool = False


def _memory(host: Host) -> Memory:
    found = host.more.get(WHERE)
    if found is None:
        raise Unavailable("the gateway is only starting; try again in a moment", retryable=True)
    return cast(Memory, found.memory())


def _off(host: Host, agent: str) -> dict[str, Any] | None:
    """What is answered where there is no memory."""
    found = host.more.get(WHERE)
    return None if found is None or found.on else {"agentId": agent, "status": "disabled"}


async def search(host: Host, caller: Caller, params: MemorySearch) -> Mapping[str, Any]:
    agent = host.agent(params.agent_id)
    if (off := _off(host, agent)) is not None:
        return off
    asked = {
        "query": params.query,
        "maxResults": params.max_results,
        "minScore": params.min_score,
        "corpus": params.corpus,
    }
    return await _memory(host).asked(agent, asked)


async def index(host: Host, caller: Caller, params: MemoryIndex) -> Mapping[str, Any]:
    agent = host.agent(params.agent_id)
    return _off(host, agent) or await _memory(host).index(agent, force=params.force, wait=params.wait)


async def status(host: Host, caller: Caller, params: MemoryStatus) -> Mapping[str, Any]:
    agent = host.agent(params.agent_id)
    return _off(host, agent) or await _memory(host).status(agent, deep=params.deep or params.probe)


METHODS: tuple[Method, ...] = (
    Method("memory.search", READ, MemorySearch, search),
    Method("memory.index", WRITE, MemoryIndex, index, advertised=False),
    Method("doctor.memory.status", READ, MemoryStatus, status),
)
