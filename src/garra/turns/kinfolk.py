"""`/subagents`: who is at work for a conversation, what was said there, and an end to it."""

from __future__ import annotations

from typing import Final

from garra.core import policy, reports
from garra.core.errors import UserError
from garra.core.lineage import Child
from garra.runs.kin import lines
from garra.runs.subagents import Subagents

USAGE: Final = "/subagents takes list, log N [messages] [tools], info N, stop N or stop all."
LISTED: Final = 20
LOGGED: Final = 10
MOST: Final = 50


async def words(table: Subagents, key: str, argument: str) -> str:
    """What the person reads. Raises UserError with a line instead."""
    action, *rest = argument.split() or ["list"]
    match action.lower():
        case "list":
            return listed(table, key)
        case "log" if rest:
            return await _log(table, _meant(table, key, rest[0]), rest[1:])
        case "info" if rest:
            return info(_meant(table, key, rest[0]), table.ports.clock.now_ms())
        case "stop" | "kill" if rest:
            return await _stop(table, key, rest[0])
        case _:
            raise UserError(USAGE)


def listed(table: Subagents, key: str) -> str:
    """Those of one conversation, numbered as the other words name them."""
    found = table.of(key)[:LISTED]
    now = table.ports.clock.now_ms()
    rows = [f"{at}. {child.name}: {standing(child)}, {_since(child, now)}" for at, child in enumerate(found, 1)]
    return "\n".join(rows) if rows else "No sub-agent works for this conversation."


def standing(child: Child) -> str:
    """How it stands, in a word or two."""
    if child.active:
        return {"waiting": "waits for its own"}.get(child.state, child.state)
    word = {"ok": "done", "error": "failed", "timeout": "timed out", "over": "stopped"}.get(
        child.outcome, child.outcome
    )
    return word if child.state == "told" else f"{word}, its report is on the way"


def _since(child: Child, now: int) -> str:
    begun, ended = child.started_at or child.created_at, child.ended_at or now
    return reports.duration(max(0, ended - begun) // 1000)


def info(child: Child, now: int) -> str:
    """All there is to know of one at `now`, in ms. Of its parent's tools those are left out that no sub-agent has."""
    tools = [name for name in child.tools if not policy.matches(policy.Face(name), policy.SUBAGENT_DENIED)]
    rows = [
        f"{child.name}: {standing(child)}",
        f"Task: {child.task[:600]}",
        f"Agent: {child.agent}, model: {child.model or 'as configured'}, depth {child.depth}, {child.context}",
        reports.stats(child, now),
        f"Tools, at most: {', '.join(tools) or 'none'}",
        f"Fault: {child.fault}" if child.fault else "",
    ]
    return "\n".join(row for row in rows if row)


async def _log(table: Subagents, child: Child, options: list[str]) -> str:
    number = next((int(word) for word in options if word.isascii() and word.isdigit()), LOGGED)
    found = await lines(table, child, min(max(1, number), MOST), tools="tools" in options)
    return "\n".join(found) or "Nothing was said there yet."


async def _stop(table: Subagents, key: str, which: str) -> str:
    stopped = await (
        table.stop_under(key) if which == "all" else table.stop(_meant(table, key, which).key, quiet=False)
    )
    return f"Stopped: {', '.join(child.name for child in stopped)}." if stopped else "None was at work."


def _meant(table: Subagents, key: str, which: str) -> Child:
    child, why = reports.find(table.of(key), which)
    if child is None:
        raise UserError(f"{why[0].upper()}{why[1:]}. /subagents lists them.")
    return child
