"""What fills the window of a conversation: the prompt as its next turn would have it, its history as it is sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from garra.core import weights
from garra.core.compaction import FLOOR, limits, weight
from garra.core.ids import RunId
from garra.core.messages import Message
from garra.domains.context import prompt
from garra.domains.sessions.session import Session
from garra.domains.tools.pipeline import Scope
from garra.runs.assemble import Assembler
from garra.runs.engines import chosen
from garra.runs.run import Run, Turn
from garra.sdk.model import ToolSpec


async def weighed(assembler: Assembler, session: Session, scope: Scope) -> dict[str, Any]:
    """The report on a conversation, JSON; nothing is sent, stored or used up by it. `scope` is whose turn it would be.

    Raises UserError where there could be none.
    """
    parts = assembler.parts
    turn = Turn(
        RunId("context"), session.key, session.agent_id, "", origin=scope.origin, place=scope.place,
        inherited=scope.inherited,
    )  # fmt: skip
    found = await assembler.ground(Run(turn, session.session_id, parts.clock.now_ms()))
    model, config = found.models[0], parts.live.config
    specs = found.offered[model.ref]
    built = parts.prompts.build(found.stable, prompt.Turn(notes=found.changed) if found.changed else None, specs)
    messages, pruned = await assembler.sent(found.transcript, model)
    report, sections = built.report(), parts.prompts.pieces(found.stable)
    history = _history(messages, summed=found.transcript.shown().summed)
    tools = _tools(specs, report["tools"])
    system, tail = weights.size(built.system), weights.size(built.tail)
    window = min(model.context_window, config.agents.defaults.context_tokens or model.context_window)
    settings = config.agents.defaults.compaction
    floor = FLOOR if settings.reserve_tokens_floor is None else settings.reserve_tokens_floor
    count = session.extra.get("compactionCount")
    return {
        **report,
        "source": "estimate",
        "key": session.key,
        "sessionId": session.session_id,
        "agentId": session.agent_id,
        "model": model.ref,
        "engine": chosen(config)[0] or "legacy",
        "contextWindow": window,
        "reserveTokens": limits(window, settings.reserve_tokens, floor).reserve,
        "systemPrompt": {**report["systemPrompt"], **system},
        "sections": [{"name": name, **weights.size(text)} for name, text in sections],
        "skills": {**report["skills"], **weights.size("\n".join(each.line for each in found.stable.skills))},
        "tools": tools,
        "tail": tail,
        "history": history,
        "pruned": {
            "trimmed": pruned.trimmed,
            "cleared": pruned.cleared,
            "images": pruned.pictures,
            "savedChars": pruned.saved,
            "rounds": pruned.rounds,
        },
        "compactions": count if isinstance(count, int) else 0,
        "lastUsage": _last(session),
        "estimatedTokens": system["tokens"] + tools["tokens"] + history["tokens"] + tail["tokens"],
    }


def _history(messages: tuple[Message, ...], *, summed: bool) -> dict[str, Any]:
    rows = weights.by_role(messages)
    heavy = sum(row["bytes"] for row in rows.values())
    return {
        "messages": len(messages),
        "chars": sum(row["chars"] for row in rows.values()),
        "bytes": heavy,
        "tokens": weights.tokens(heavy),
        "byRole": rows,
        "summaryChars": len(messages[0].text) if summed and messages else 0,
    }


def _tools(specs: Iterable[ToolSpec], report: dict[str, Any]) -> dict[str, Any]:
    """The tools as they are sent: names, descriptions and schemas."""
    sizes = {
        spec.name: len(spec.name) + weight(spec.description) + len(msgspec.json.encode(dict(spec.parameters)))
        for spec in specs
    }
    heavy = sum(sizes.values())
    entries = [{**row, "sentChars": sizes[row["name"]]} for row in report["entries"]]
    return {**report, "entries": entries, "chars": heavy, "bytes": heavy, "tokens": weights.tokens(heavy)}


def _last(session: Session) -> dict[str, int] | None:
    totals = session.totals
    if totals is None:
        return None
    read = totals.input + totals.cache_read + totals.cache_write
    return {"input": read, "cacheRead": totals.cache_read, "output": totals.output}
