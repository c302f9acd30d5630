"""How a model finds and calls tools that it was told by name only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from garra.core import toolsearch
from garra.core.errors import BadArguments, ToolFailed
from garra.core.messages import Content, Text
from garra.core.toolsearch import CALL, DESCRIBE, SEARCH, Entry, Settings
from garra.core.value import frozen
from garra.sdk.model import ToolSpec

Answer = tuple[Content, Any]
"""What the model reads, and what programs do."""

QUERIES = 16
HITS = 50
"""Of one call at most: so many questions, so many hits in all."""
LONGEST = 4_000
"""Characters of one answer."""


@frozen
class Offer:
    """What one scope's model is told: `told` in full; `deferred` by name, to be found and called through the others."""

    told: tuple[ToolSpec, ...]
    deferred: tuple[ToolSpec, ...] = ()


def offer(specs: Sequence[ToolSpec], settings: Settings) -> Offer:
    """Tell in full what is used most, and a way to the rest where there is one."""
    sizes = {spec.name: size(spec) for spec in specs}
    held = set(toolsearch.deferred(sizes, settings))
    if not held:
        return Offer(tuple(specs))
    told = tuple(spec for spec in specs if spec.name not in held)
    return Offer((*told, *_controls(held)), tuple(spec for spec in specs if spec.name in held))


def size(spec: ToolSpec) -> int:
    """About how many bytes a request grows by it."""
    return len(spec.name) + len(spec.description) + len(json.dumps(spec.parameters, separators=(",", ":"))) + 70


def _controls(names: set[str]) -> tuple[ToolSpec, ...]:
    find = f"Find one of your other tools by English words: {toolsearch.listed(names)}."
    query = {"type": "string"}
    return (
        ToolSpec(SEARCH, find, {"type": "object", "properties": {"query": query}, "required": ["query"]}),
        ToolSpec(
            CALL,
            f"Call one of those. {DESCRIBE} gives its schema.",
            {
                "type": "object",
                "properties": {"id": {"type": "string"}, "args": {"type": "object"}},
                "required": ["id"],
            },
        ),
    )


def found(arguments: Mapping[str, Any], offer: Offer, sources: Mapping[str, str], settings: Settings) -> Answer:
    """The answer to `tool_search`: one question, or several. Raises BadArguments."""
    entries = [
        Entry(spec.name, spec.description, spec.parameters, sources.get(spec.name, ""))
        for spec in (*offer.deferred, *offer.told)
        if spec.name not in toolsearch.CONTROLS
    ]
    asked = _asked(arguments, settings)
    groups: list[dict[str, Any]] = [
        {"query": query, "candidates": [_hit(each) for each in toolsearch.search(query, entries, limit)]}
        for query, limit in asked
    ]
    body: Any = groups[0]["candidates"] if len(asked) == 1 and not arguments.get("queries") else {"results": groups}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    while len(text) > LONGEST and any(group["candidates"] for group in groups):
        longest = max(groups, key=lambda group: len(group["candidates"]))
        longest["candidates"].pop()
        longest["truncated"] = True
        body = body if isinstance(body, list) else {"results": groups, "truncated": True}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return (Text(text if body else "Nothing fits; try other words."),), body


def _asked(arguments: Mapping[str, Any], settings: Settings) -> list[tuple[str, int]]:
    most = settings.most
    rows: list[Any] = [] if arguments.get("query") in (None, "") else [arguments]
    more = arguments.get("queries") or []
    rows += more if isinstance(more, list) else []
    asked = []
    for row in rows:
        query = row.get("query") if isinstance(row, Mapping) else row
        limit = row.get("limit") if isinstance(row, Mapping) else None
        if not isinstance(query, str) or len(query) > 512:
            raise BadArguments("The arguments of tool_search do not fit: each query is a text of at most 512 letters.")
        asked.append((query, min(limit if isinstance(limit, int) and limit > 0 else settings.limit, most)))
    if not asked or len(asked) > QUERIES or sum(limit for _, limit in asked) > HITS:
        raise BadArguments(
            f"The arguments of tool_search do not fit: give query, or queries (at most {QUERIES}, {HITS} hits in all)."
        )
    return asked


def _hit(entry: Entry) -> dict[str, Any]:
    about = " ".join(entry.description.split())
    return {
        "id": entry.name,
        "description": about if len(about) <= 200 else f"{about[:199]}…",
        "input": toolsearch.signature(entry.parameters),
        "source": entry.source,
    }


def described(arguments: Mapping[str, Any], offer: Offer, sources: Mapping[str, str]) -> Answer:
    """The answer to `tool_describe`: all of one tool. Raises ToolFailed."""
    wanted = str(arguments.get("id") or arguments.get("name") or "")
    spec = next((each for each in (*offer.deferred, *offer.told) if each.name == wanted), None)
    if spec is None:
        raise unknown(wanted, offer)
    body = {
        "id": spec.name,
        "source": sources.get(spec.name, ""),
        "description": spec.description,
        "parameters": spec.parameters,
    }
    return (Text(json.dumps(body, ensure_ascii=False)),), body


def unknown(name: str, offer: Offer) -> ToolFailed:
    """There is no such tool here, and what there is."""
    names = sorted(spec.name for spec in (*offer.told, *offer.deferred) if spec.name not in toolsearch.CONTROLS)
    listed = ", ".join(names) or "none"
    return ToolFailed(f"There is no tool {name[:80]}. Tools: {listed}.", details={"kind": "unknown-tool"})
