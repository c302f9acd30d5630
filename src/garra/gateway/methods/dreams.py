"""`memory.dream`, `memory.dreams…`, `doctor.memory.dreamDiary`: what an agent proposes to keep, for its owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol, cast

import msgspec
from msgspec import Meta

from garra.core.errors import Unavailable
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, WRITE, Caller, Method
from garra.gateway.params import Name, Params

WHERE: Final = "dreams"
"""Where they stand in `Host.more`."""


class Dreams(Protocol):
    """As `app.dreaming.Dreams`."""

    async def dream(self, agent: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    async def listed(self, agent: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    async def decide(self, agent: str, params: Mapping[str, Any], *, by: str) -> dict[str, Any]: ...

    async def explain(self, agent: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    async def pages(self, agent: str) -> dict[str, Any]: ...


Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=1_000)]


class Dream(Params, frozen=True):
    """One sweep; `dryRun` writes nothing, `reflect` asks a model. The thresholds hold for this once."""

    agent_id: Name | None = None
    phase: Literal["all", "light", "rem", "deep"] = "all"
    dry_run: bool = False
    reflect: bool = False
    min_score: Share | None = None
    min_recall_count: Count | None = None
    min_unique_queries: Count | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] | None = None


class DreamsList(Params, frozen=True):
    """The proposals, or with `id` one of them and the change it makes."""

    agent_id: Name | None = None
    id: Annotated[str, Meta(max_length=40)] = ""
    state: Literal["", "proposed", "applied", "refused", "undone"] = ""


class DreamsDecide(Params, frozen=True):
    """`confirmed`: a person has seen that some of it came from somebody else, or from outside."""

    id: Annotated[str, Meta(min_length=1, max_length=40)]
    step: Literal["apply", "refuse", "undo"]
    agent_id: Name | None = None
    confirmed: bool = False


class DreamsExplain(Params, frozen=True):
    """Candidates whose words, place or digest hold `selector`."""

    selector: Annotated[str, Meta(max_length=400)]
    agent_id: Name | None = None
    min_score: Share | None = None
    min_recall_count: Count | None = None
    min_unique_queries: Count | None = None


class DreamDiary(Params, frozen=True):
    """DREAMS.md."""

    agent_id: Name | None = None


def _dreams(host: Host) -> Dreams:
    found = host.more.get(WHERE)
    if found is None:
        raise Unavailable("the gateway is only starting; try again in a moment", retryable=True)
    return cast(Dreams, found.dreams())


def _given(params: Params) -> dict[str, Any]:
    """The parameters by their wire names, without those that were not given."""
    return {name: value for name, value in msgspec.to_builtins(params).items() if value is not None}


async def dream(host: Host, caller: Caller, params: Dream) -> Mapping[str, Any]:
    return await _dreams(host).dream(host.agent(params.agent_id), _given(params))


async def listed(host: Host, caller: Caller, params: DreamsList) -> Mapping[str, Any]:
    return await _dreams(host).listed(host.agent(params.agent_id), _given(params))


async def decide(host: Host, caller: Caller, params: DreamsDecide) -> Mapping[str, Any]:
    return await _dreams(host).decide(host.agent(params.agent_id), _given(params), by="owner")


async def explain(host: Host, caller: Caller, params: DreamsExplain) -> Mapping[str, Any]:
    return await _dreams(host).explain(host.agent(params.agent_id), _given(params))


async def diary(host: Host, caller: Caller, params: DreamDiary) -> Mapping[str, Any]:
    return await _dreams(host).pages(host.agent(params.agent_id))


METHODS: tuple[Method, ...] = (
    Method("memory.dream", WRITE, Dream, dream, advertised=False),
    Method("memory.dreams", READ, DreamsList, listed, advertised=False),
    Method("memory.dreams.decide", ADMIN, DreamsDecide, decide, advertised=False),
    Method("memory.dreams.explain", READ, DreamsExplain, explain, advertised=False),
    Method("doctor.memory.dreamDiary", READ, DreamDiary, diary),
)
