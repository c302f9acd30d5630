"""Which conversations a session's tools may reach.

A person reaches his own conversation and what it started. Only the owner's own turns reach further, and no further
than the owner's setting says.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

from garra.core.value import frozen

Visibility = Literal["self", "tree", "agent", "all"]


@frozen
class Rules:
    """`tools.sessions.visibility` and `tools.agentToAgent`; `allow` empty: every agent may reach every other."""

    visibility: Visibility = "tree"
    between: bool = True
    allow: tuple[str, ...] = ()


@frozen
class Viewer:
    """Who looks. `owner`: the turn is the owner's own and nobody else's. `main`: in the agent's own conversation.
    `fenced`: its session is in the sandbox as a whole.
    """

    key: str
    agent: str
    owner: bool = False
    main: bool = False
    fenced: bool = False


@frozen
class Target:
    """What is looked at. `above` are the sessions that started it, closest first."""

    key: str
    agent: str
    above: tuple[str, ...] = ()


def sees(viewer: Viewer, target: Target, rules: Rules) -> bool:
    """Whether the tools of `viewer` may reach `target`."""
    if target.key == viewer.key:
        return True
    if rules.visibility == "self":
        return False
    if viewer.key in target.above:
        return True
    if not viewer.owner or viewer.fenced:
        return False
    if target.agent == viewer.agent:
        return viewer.main or rules.visibility in ("agent", "all")
    return rules.visibility == "all" and rules.between and _meet(viewer.agent, target.agent, rules.allow)


def _meet(one: str, other: str, allow: Sequence[str]) -> bool:
    return not allow or (_listed(one, allow) and _listed(other, allow))


def _listed(agent: str, allow: Sequence[str]) -> bool:
    return any(agent == each or ("*" in each and fnmatchcase(agent.lower(), each.strip().lower())) for each in allow)
