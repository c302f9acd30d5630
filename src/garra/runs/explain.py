"""Why a session has a tool or has it not, in words its owner understands: what each step says, and which decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.config.sections import Config
from garra.core import policy, toolsearch
from garra.core.access import NOBODY, People
from garra.core.groups import Place
from garra.core.ids import AgentId, SessionKey
from garra.core.keys import Key, agent_of, parse
from garra.core.policy import GROUPS, ORDER, Face, Heard, Verdict
from garra.core.value import frozen
from garra.domains.access.allowlist import read
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Pipeline, Scope
from garra.runs import rights
from garra.sdk.tool import ToolInfo

Paired = Callable[[str, str], People]
"""Who was let in by a code at `(channel, account)`."""


@frozen
class Asked:
    """Whose tools are asked for. `sender` is the platform's id of whoever writes there; the model is who answers."""

    key: SessionKey
    sender: str = ""
    provider: str = ""
    model: str = ""
    api: str = ""


def scope_of(asked: Asked, session: Session | None, config: Config, paired: Paired = lambda *_: NOBODY) -> Scope:
    """The scope of a turn in that session: from its chat where it has one, else the owner's own."""
    agent = AgentId(agent_of(asked.key, config.agents.default_id()))
    key = parse(asked.key, config.session.main_key)
    scope = Scope(agent, asked.key, "operator", asked.provider, asked.api, model=asked.model)
    if key.kind == "subagent":
        extra = session.extra if session is not None else {}
        depth = extra.get("spawnDepth")
        return replace(scope, origin="subagent", depth=depth if isinstance(depth, int) and depth > 0 else 1)
    place = _place(key, asked.sender, session)
    place = replace(place, named=_named(place, config, paired)) if place is not None else None
    return replace(scope, origin="channel", place=place) if place is not None else scope


def _place(key: Key, sender: str, session: Session | None) -> Place | None:
    known: Mapping[str, Any] = (session.extra.get("deliveryContext") if session is not None else None) or {}
    group = key.kind in ("group", "channel")
    if not group and key.kind != "direct" and not sender:
        return None
    channel = key.channel or str(known.get("channel", ""))
    account = key.account or str(known.get("accountId", "")) or "default"
    chat = str(known.get("to", "")) or key.id
    who = sender or ("" if group else key.id)
    return Place(channel, account, chat, who, key.thread or str(known.get("threadId") or ""), group=group)


def _named(place: Place, config: Config, paired: Paired) -> bool:
    """Whether some list of the owner's names whoever writes."""
    rules = read(config, place.channel, place.account).policy
    lists = (rules.allow, rules.group_allow, rules.owners, paired(place.channel, place.account))
    return any(each.names(place.sender) for each in lists)


def explained(name: str, pipeline: Pipeline, config: Config, scope: Scope) -> dict[str, Any]:
    """All that is said of one tool, and by whom; JSON."""
    name = policy.ALIASES.get(name.lower(), name.lower())
    info = pipeline.info(name)
    face = Face(name, _groups(info))
    heard = policy.trace(face, pipeline.layers(scope))
    told = pipeline.offer(scope)
    offered = _offered(name, [spec.name for spec in told.told], [spec.name for spec in told.deferred])
    verdict = policy.decide(face, pipeline.layers(scope)).verdict if info else Verdict.DENY
    decided = next((each for each in heard if each.refuses), None)
    decided = decided or next((each for each in reversed(heard) if each.word == "asks"), None)
    return {
        "tool": name,
        "known": info is not None,
        "source": info.source if info else None,
        "groups": sorted(set_ for set_, names in GROUPS.items() if name in names) if info else [],
        **_whose(scope),
        "verdict": str(verdict),
        "offered": offered,
        "decidedBy": _line(decided) if decided else None,
        "layers": [_line(each) for each in _complete(heard)],
        "words": _words(name, info, decided, offered),
    }


def listed(pipeline: Pipeline, config: Config, scope: Scope) -> dict[str, Any]:
    """Every tool, whether the session has it, and which step took it where it has not; JSON."""
    told = pipeline.offer(scope)
    full, named = [spec.name for spec in told.told], [spec.name for spec in told.deferred]
    rows = [
        {
            "name": row.info.name,
            "source": row.info.source,
            "verdict": str(row.decision.verdict),
            "offered": _offered(row.info.name, full, named),
            "decidedBy": row.decision.source if row.decision.verdict is not Verdict.ALLOW else None,
            "description": row.info.description,
            "effects": list(row.info.effects),
        }
        for row in pipeline.rows(scope)
    ]
    found = [name for name in full if name in toolsearch.CONTROLS]
    rows += [
        {"name": name, "source": "search", "verdict": "allow", "offered": "full", "decidedBy": None, "effects": []}
        for name in found
    ]
    faces = [Face(row.info.name, _groups(row.info)) for row in pipeline.rows(scope)]
    return {**_whose(scope), "tools": rows, "warnings": warnings(config, faces)}


def warnings(config: Config, faces: Sequence[Face]) -> list[str]:
    """What in the owner's lists means nothing: he thinks something is allowed or denied that is not."""
    lines = [
        f"{place}: {', '.join(strange)} {'names' if len(strange) == 1 else 'name'} no tool and no group of tools"
        for place, items in rights.written(config)
        if (strange := policy.strange(items, faces))
    ]
    return lines + [
        f"{place} holds for nobody: a name is no reason for a right; write id:…" for place in rights.nameless(config)
    ]


def _groups(info: ToolInfo | None) -> tuple[str, ...]:
    return (*info.groups, *policy.own_groups(info.name, info.source)) if info else ()


def _whose(scope: Scope) -> dict[str, Any]:
    place = scope.place
    return {
        "sessionKey": scope.session_key,
        "agentId": scope.agent_id,
        "provider": scope.provider or None,
        "model": scope.model or None,
        "place": None
        if place is None
        else {
            "channel": place.channel,
            "accountId": place.account,
            "chat": place.chat,
            "group": place.group,
            "senderId": place.sender or None,
            "guest": place.guest,
        },
    }


def _offered(name: str, full: Sequence[str], named: Sequence[str]) -> str:
    return "full" if name in full else "byName" if name in named else "no"


def _complete(heard: Sequence[Heard]) -> list[Heard]:
    """Every step in its order; those that have nothing to do with this session say nothing."""
    steps = {each.layer.step for each in heard}
    silent = [Heard(policy.Layer("", step=step), "says nothing") for step in ORDER[:-1] if step not in steps]
    return sorted([*heard, *silent], key=lambda each: ORDER.index(each.layer.step))


def _line(heard: Heard) -> dict[str, Any]:
    return {
        "step": heard.layer.step,
        "says": heard.word,
        "source": heard.layer.source or None,
        "item": heard.item or None,
    }


_REMEDIES: Final[Mapping[str, str]] = {
    "profile": "Add it to alsoAllow beside that profile, or choose a wider one.",
    "provider profile": "Add it to alsoAllow beside that profile.",
    "group": "Allow it there: channels.<channel>.groups.<id>.tools.alsoAllow (a guest: name him in allowFrom).",
    "sender": "Change the row of that sender.",
    "sandbox": "Add it to tools.sandbox.tools.alsoAllow.",
    "sub-agent": "Sub-agents never have it; let the agent itself do it.",
    "inherited": "A sub-agent has no more than its parent had.",
    "surface": "Add it to gateway.tools.allow.",
}


def _words(name: str, info: ToolInfo | None, decided: Heard | None, offered: str) -> str:
    if info is None:
        known = any(name in names for names in GROUPS.values())
        return f"There is no tool {name} here" + ("; OpenClaw has one, Garra has not yet." if known else ".")
    if decided is None:
        how = "told in full" if offered == "full" else "told by name, and found with tool_search"
        return f"{name} is offered: no step refuses it ({how})."
    where = decided.layer.source
    if decided.layer.remedy:
        return f"{name} is not offered: {where}. {decided.layer.remedy}"
    if decided.word == "asks":
        return f"{name} is offered, and each call of it asks a person: {where}."
    why = f"names {decided.item}" if decided.word == "denies" else "does not list it"
    remedy = _REMEDIES.get(decided.layer.step, f"Change {where}.allow or {where}.deny.")
    return f"{name} is not offered. The step that decided: {decided.layer.step} ({where}) {why}. {remedy}"
