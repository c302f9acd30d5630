"""Approvals as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from garra.core.characters import escaped
from garra.core.programs import can_do_anything

Row = Mapping[str, Any]
DECIDED: Final = {"allow-once": "is allowed, once.", "allow-always": "is allowed, from now on.", "deny": "is denied."}
COLUMN: Final = 60
_EXACT: Final = "an entry for it counts only with its exact arguments (argPattern)."


def plain(row: Row) -> dict[str, Any]:
    """One that waits, as JSON for scripts."""
    request = row["request"]
    return {
        "id": row["id"],
        "kind": row["approvalKind"],
        "summary": request.get("command") or request.get("detail") or request.get("description"),
        "agentId": request["agentId"],
        "sessionKey": request["sessionKey"],
        "allowedDecisions": request["allowedDecisions"],
        "createdAtMs": row["createdAtMs"],
        "expiresAtMs": row["expiresAtMs"],
        "request": request,
    }


def question(row: Row) -> str:
    """One that waits, in a few lines; what is asked stands whole."""
    request = row["request"]
    what = request.get("command") or request.get("detail") or request["description"]
    until = _clock(row["expiresAtMs"])
    head = f"{row['id'][:8]}  agent {request['agentId']}, {request['sessionKey']}, until {until}"
    about = [_indented(what)]
    if request.get("cwd"):
        about.append(f"  in {escaped(request['cwd'])}")
    if request.get("warningText"):
        about.append(_indented(f"{request['warningText']}"))
    return "\n".join((head, *about, ""))


def whole(found: Row) -> str:
    """One question with all that it says."""
    request = found["request"]
    parts = [f"{found['id']}  agent {request['agentId']}, {request['sessionKey']}", _indented(found["subject"])]
    if request.get("cwd"):
        parts.append(f"  in {escaped(request['cwd'])}")
    if found.get("warningText"):
        parts.append(_indented(found["warningText"]))
    return "\n".join(parts)


def past(row: Row) -> tuple[str, ...]:
    """An answered one, as a row."""
    shown = row["presentation"]
    what = escaped((shown.get("commandText") or shown.get("description") or "").partition("\n")[0])
    what = what if len(what) <= COLUMN else f"{what[: COLUMN - 1]}…"
    end = row.get("decision") or row["status"]
    return row["id"][:8], _clock(row.get("resolvedAtMs") or 0), end, (row.get("resolver") or {}).get("id", ""), what


def grant(row: Row) -> tuple[str, ...]:
    """A grant, as a row."""
    until = _clock(row["expiresAtMs"]) if row["expiresAtMs"] else "it is revoked"
    until = "revoked" if row["revokedAtMs"] else until
    what = escaped(row["command"])
    return row["grantId"][:8], row["agentId"], until, str(row["useCount"]), what


def changed(document: Row, agent: str, pattern: str, *, add: bool) -> dict[str, Any]:
    """The document with a program's pattern in an agent's list, or without it."""
    agents = {name: dict(value) for name, value in (document.get("agents") or {}).items()}
    mine = agents.get(agent, {})
    listed = list(mine.get("allowlist") or ())
    there = [each for each in listed if _pattern(each) == pattern]
    if add == bool(there):
        return dict(document)
    kept = [*listed, {"pattern": pattern}] if add else [each for each in listed if each not in there]
    agents[agent] = {**mine, "allowlist": kept}
    return {**document, "agents": agents}


def programs(document: Row, agent: str = "*") -> list[tuple[str, ...]]:
    """The programs of every agent's list, or, of one, those that hold for him: agent, program, arguments."""
    found: list[tuple[str, ...]] = []
    for name, own in (document.get("agents") or {}).items():
        if agent in ("*", name) or name == "*":
            for each in own.get("allowlist") or ():
                arguments = "any" if isinstance(each, str) else str(each.get("argPattern") or "any")
                found.append((escaped(_whose(name)), escaped(_pattern(each)), escaped(arguments)))
    return found


def agents(config: Row) -> tuple[str, ...]:
    """The ids of the agents that a configuration names; `main` where it names none."""
    section = config.get("agents") or {}
    listed = section.get("list") if isinstance(section, Mapping) else None
    entries = section.get("entries") if isinstance(section, Mapping) else None
    named = [str(each["id"]) for each in listed or () if isinstance(each, Mapping) and each.get("id")]
    named += [str(name) for name in entries or ()]
    return tuple(dict.fromkeys(name.lower() for name in named)) or ("main",)


def lists(document: Row, pattern: str) -> list[str]:
    """The agents in whose list a program's pattern stands."""
    agents: Mapping[str, Any] = document.get("agents") or {}
    return [name for name, own in agents.items() if pattern in map(_pattern, own.get("allowlist") or ())]


def unchanged(document: Row, agent: str, pattern: str, *, add: bool) -> str:
    """Why adding or taking away changed nothing, and where the program may still run."""
    name, others = escaped(pattern), lists(document, pattern)
    if add:
        return f"Nothing changes: {name} is on the list of {_whose(agent)} already."
    if not others:
        return f"Nothing changes: {name} is on no list."
    still = f"It still stands in that of {', '.join(map(escaped, others))}: --agent {escaped(others[0])}"
    return f"Nothing changes: {name} is not on the list of {_whose(agent)}. {still}"


def listed(agent: str, pattern: str, *, add: bool) -> str:
    """What was changed; of a program that a name alone never lets through, that too."""
    name = escaped(pattern)
    if not add:
        return f"{name} is off the list of {_whose(agent)}."
    whole = f"{name} is on the list of {_whose(agent)} now."
    if not can_do_anything(pattern):
        return whole
    return f"{whole} It can run or write anything, so by name it lets nothing through: {_EXACT}"


def _whose(agent: str) -> str:
    return "* (every agent)" if agent == "*" else escaped(agent)


def _pattern(entry: Any) -> str:
    return str(entry if isinstance(entry, str) else entry.get("pattern", ""))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def _clock(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
