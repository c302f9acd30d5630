"""Which sessions a turn sees, and how one that it does not see is answered: as one that is not there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from garra.core import sight
from garra.core.errors import BadArguments, GarraError, NotFound
from garra.core.frames import reword
from garra.core.keys import agent_of, canonical, is_main
from garra.core.sight import Rules, Target, Viewer
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Scope
from garra.gateway.host import Host
from garra.runs import rights
from garra.runs.errand import Errand

Run = Callable[[Host, Errand, Mapping[str, Any]], Awaitable[Any]]
"""One errand: `(host, errand, params)`. Raises GarraError with a line that the model reads."""

Shape = TypeVar("Shape", bound=msgspec.Struct)

DEEPEST: Final = 8
"""Sessions that started one another, followed upwards."""
SELF: Final = ("", "current", "self")


def parsed(params: Mapping[str, Any], shape: type[Shape]) -> Shape:
    """`params` in their shape. Raises BadArguments."""
    try:
        return msgspec.convert(dict(params), shape)
    except msgspec.ValidationError as fault:
        raise BadArguments(reword(str(fault))) from None


def rules(host: Host, errand: Errand) -> Rules:
    """What the owner lets the session tools of this agent reach."""
    agent = host.config.agents.find(errand.agent_id)
    own = agent.tools if agent is not None else None
    tools = own if own is not None and "sessions" in own.model_fields_set else host.config.tools
    between = host.config.tools.agent_to_agent
    return Rules(tools.sessions.visibility, between.enabled, between.allow)


def viewer(host: Host, errand: Errand) -> Viewer:
    config, key = host.config, errand.session_key
    fenced = rights.boxed(config, Scope(errand.agent_id, key, errand.origin))
    return Viewer(key, errand.agent_id, errand.owners, is_main(key, host.main), fenced)


async def target(host: Host, session: Session) -> Target:
    """A session with those that started it."""
    above: list[str] = []
    here: Session | None = session
    while here is not None and len(above) < DEEPEST:
        parent = here.extra.get("spawnedBy")
        if not isinstance(parent, str) or parent in above:
            break
        above.append(parent)
        here = await host.sessions.get(parent)
    return Target(session.key, session.agent_id, tuple(above))


async def sees(host: Host, errand: Errand, session: Session) -> bool:
    return sight.sees(viewer(host, errand), await target(host, session), rules(host, errand))


async def reached(host: Host, errand: Errand, named: str) -> Session:
    """The session that `named` (a key, an id, a label) means to this turn. Raises NotFound, whether there is none or it
    is not this turn's to see.
    """
    for session in await _meant(host, errand, named):
        if await sees(host, errand, session):
            return session
    raise NotFound(f"No session {named[:120]!r} here; sessions_list shows those you reach.")


async def _meant(host: Host, errand: Errand, named: str) -> list[Session]:
    if named.strip().lower() in SELF:
        return [await host.session(errand.session_key)]
    found: list[Session | None] = []
    try:
        found.append(await host.sessions.get(canonical(named, errand.agent_id, host.main)))
    except GarraError:
        return []
    found.append(await host.sessions.by_id(named))
    return [session for session in found if session is not None]


def outsiders(errand: Errand, key: str) -> list[dict[str, str]]:
    """What the words of a session count as where they are read in another: somebody else's, unless the owner's own."""
    if key == errand.session_key:
        return []
    kind = key.removeprefix(f"agent:{agent_of(key)}:")
    if ":group:" in kind or ":channel:" in kind:
        return [{"source": "group", "where": key}]
    return [{"source": "person" if "direct:" in kind else "agent", "where": key}]
