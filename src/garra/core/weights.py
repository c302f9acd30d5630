"""What fills a model's window: the sizes of a conversation's parts, and the words in which its owner is told of them.

Sizes are characters and bytes before they become JSON; tokens are an estimate, about four characters of ASCII each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from garra.core.compaction import CHARS, IMAGE_CHARS, weight
from garra.core.errors import UserError
from garra.core.messages import Assistant, Image, Message, Text, Thinking, ToolCall, ToolResult, User

TOP: Final = 10
"""So many of a kind are named in detail, the largest."""
BAR: Final = 16
"""Signs of a bar."""
KINDS: Final[Mapping[str, str]] = {
    "user": "People's words",
    "assistant": "Answers",
    "thinking": "Thoughts",
    "toolCalls": "Calls of tools",
    "toolResults": "Results of tools",
    "images": "Pictures",
}


def size(text: str) -> dict[str, int]:
    """A text's size."""
    heavy = weight(text)
    return {"chars": len(text), "bytes": heavy, "tokens": tokens(heavy)}


def tokens(heavy: int) -> int:
    """About so many tokens for so many characters of ASCII, or bytes of anything else."""
    return math.ceil(heavy / CHARS)


def by_role(messages: Iterable[Message]) -> dict[str, dict[str, int]]:
    """How often each kind of part is in a history, and its size."""
    found = {kind: {"count": 0, "chars": 0, "bytes": 0} for kind in KINDS}
    for message in messages:
        for part in message.content:
            kind, text, heavy = _part(message, part)
            row = found[kind]
            row["count"] += 1
            row["chars"] += text
            row["bytes"] += heavy
    return {kind: {**row, "tokens": tokens(row["bytes"])} for kind, row in found.items()}


def _part(message: Message, part: Text | Thinking | Image | ToolCall) -> tuple[str, int, int]:
    """(kind, characters, weight)"""
    match part:
        case Image():
            return "images", IMAGE_CHARS, IMAGE_CHARS
        case ToolCall():
            written = len(part.name) + len(msgspec.json.encode(dict(part.arguments)))
            return "toolCalls", written, written
        case Thinking():
            return "thinking", len(part.text), weight(part.text)
    kind = {User: "user", Assistant: "assistant", ToolResult: "toolResults"}[type(message)]
    return kind, len(part.text), weight(part.text)


def said(report: Mapping[str, Any], how: str) -> str:
    """What `/context` answers. `how` is list, detail, map or json. Raises UserError for anything else."""
    match how.strip().lower():
        case "" | "list":
            return words(report)
        case "detail":
            return words(report, detail=True)
        case "map":
            return drawn(report)
        case "json":
            return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
        case _:
            raise UserError("/context takes list, detail, map or json.")


def words(report: Mapping[str, Any], *, detail: bool = False) -> str:
    """The report in words; `detail`: with sections, and the largest tools and skills."""
    return "\n".join(
        line for part in (_head(report), _fixed(report, detail=detail), _history(report), _end(report)) for line in part
    )


def drawn(report: Mapping[str, Any]) -> str:
    """The report as bars, the largest first: each part's share of all that is sent."""
    files = sum(int(row["injectedChars"]) for row in report["injectedWorkspaceFiles"])
    skills, tools = int(report["skills"]["chars"]), int(report["tools"]["chars"])
    rows = {
        "System prompt": max(0, int(report["systemPrompt"]["chars"]) - files - skills),
        "Workspace files": files,
        "Skills list": skills,
        "Tool schemas": tools,
        "This turn only": int(report["tail"]["chars"]),
        **{KINDS[kind]: int(row["chars"]) for kind, row in report["history"]["byRole"].items()},
    }
    whole = sum(rows.values()) or 1
    listed = sorted(((name, count) for name, count in rows.items() if count), key=lambda row: -row[1])
    bars = (f"{_bar(count / whole)} {100 * count / whole:3.0f} %  {name}, {_chars(count)}" for name, count in listed)
    return "\n".join((*_head(report)[:2], *bars, *_end(report)))


def _bar(share: float) -> str:
    full = min(BAR, math.ceil(share * BAR))
    return "█" * full + "░" * (BAR - full)


def _head(report: Mapping[str, Any]) -> list[str]:
    engine = f", engine {report['engine']}" if report["engine"] != "legacy" else ""
    return [
        f"🧠 Context breakdown{engine}",
        f"Model: {report['model'] or 'none'}, window {report['contextWindow']:,} tokens",
        f"Workspace: {report['workspaceDir']}",
    ]


def _fixed(report: Mapping[str, Any], *, detail: bool) -> list[str]:
    prompt, tools, skills = report["systemPrompt"], report["tools"], report["skills"]
    lines = [f"System prompt: {_told(prompt)}"]
    if detail:
        lines += [f"- {row['name']}: {_told(row)}" for row in report["sections"]]
    lines += ["", f"Injected workspace files (at most {report['bootstrapMaxChars']:,} chars each):"]
    lines += [_file(row) for row in report["injectedWorkspaceFiles"]] or ["- none"]
    lines += ["", f"Skills list: {_told(skills)} ({len(skills['entries'])} skills)"]
    if detail:
        lines += _top(skills["entries"], "blockChars")
    lines.append(f"Tool schemas: {_told(tools)} ({len(tools['entries'])} tools)")
    if detail:
        lines += _top(tools["entries"], "sentChars")
    if report["tail"]["chars"]:
        lines.append(f"Said behind the history, this turn only: {_told(report['tail'])}")
    return lines


def _file(row: Mapping[str, Any]) -> str:
    state = "missing" if row["missing"] else "cut" if row["truncated"] else "OK"
    return f"- {row['name']}: {state} | raw {_chars(row['rawChars'])} | injected {_chars(row['injectedChars'])}"


def _top(rows: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    largest = sorted(rows, key=lambda row: -int(row[key]))
    more = [f"… (+{len(rows) - TOP} more)"] if len(rows) > TOP else []
    return [*(f"- {row['name']}: {_chars(row[key])}" for row in largest[:TOP]), *more]


def _history(report: Mapping[str, Any]) -> list[str]:
    told, pruned = report["history"], report["pruned"]
    lines = ["", f"Conversation: {told['messages']} messages, {_told(told)}"]
    lines += [f"- {KINDS[kind]}: {row['count']}, {_told(row)}" for kind, row in told["byRole"].items() if row["count"]]
    if told["summaryChars"]:
        lines.append(f"- of it the summary of what was before: {_chars(told['summaryChars'])}")
    if pruned["savedChars"]:
        what = (
            f"{pruned['trimmed']} results shortened, {pruned['cleared']} cleared, {pruned['images']} pictures left out"
        )
        lines.append(f"Sent in brief: {what}; {_chars(pruned['savedChars'])} saved")
    if report["compactions"]:
        lines.append(f"Summed up {report['compactions']} times")
    return lines


def _end(report: Mapping[str, Any]) -> list[str]:
    total, window, reserve = report["estimatedTokens"], report["contextWindow"], report["reserveTokens"]
    share = f"{100 * total / window:.0f} %" if window else "?"
    lines = ["", f"In all about {total:,} tokens, {share} of the window; {reserve:,} are kept free for the answer"]
    if last := report["lastUsage"]:
        lines.append(f"The last answer read {last['input']:,} tokens, {last['cacheRead']:,} of them from the cache")
    return lines


def _told(row: Mapping[str, Any]) -> str:
    return f"{row['chars']:,} chars (~{row['tokens']:,} tok)"


def _chars(count: int) -> str:
    return f"{count:,} chars (~{tokens(count):,} tok)"
