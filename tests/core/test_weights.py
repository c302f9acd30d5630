"""What fills a window is counted by kind and told in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from garra.core import weights
from garra.core.errors import UserError
from garra.core.messages import Assistant, Image, Text, Thinking, ToolCall, ToolResult, User
from garra.core.weights import by_role, said, size, words


def test_each_kind_of_part_is_counted() -> None:
    picture = Image("image/png", "AAAA")
    found = by_role(
        (
            User((Text("hello"), picture), 1),
            Assistant((Thinking("hm"), Text("let me look"), ToolCall("c", "ls", {"path": "."})), 2),
            ToolResult("c", "ls", (Text("\u4f60\u597d"),), 3),
        )
    )
    assert {kind: row["count"] for kind, row in found.items()} == dict.fromkeys(found, 1)
    assert found["user"] == {"count": 1, "chars": 5, "bytes": 5, "tokens": 2}
    assert found["toolResults"] == {"count": 1, "chars": 2, "bytes": 6, "tokens": 2}
    assert found["images"]["tokens"] == 2_000
    assert found["toolCalls"]["chars"] == len('ls{"path":"."}')
    assert found["thinking"]["chars"] == 2
    assert found["assistant"]["chars"] == 11


def test_other_scripts_weigh_more() -> None:
    assert size("\u4f60\u597d") == {"chars": 2, "bytes": 6, "tokens": 2}


def report(**more: Any) -> dict[str, Any]:
    names = [f"tool{number}" for number in range(12)]
    return {
        "model": "fake/m",
        "engine": "legacy",
        "contextWindow": 10_000,
        "reserveTokens": 2_500,
        "workspaceDir": "/w",
        "bootstrapMaxChars": 20_000,
        "systemPrompt": size("x" * 4_000),
        "sections": [{"name": "Tooling", **size("x" * 400)}],
        "injectedWorkspaceFiles": [
            {"name": "SOUL.md", "missing": False, "truncated": False, "rawChars": 40, "injectedChars": 40},
            {"name": "AGENTS.md", "missing": False, "truncated": True, "rawChars": 90_000, "injectedChars": 20_000},
            {"name": "USER.md", "missing": True, "truncated": False, "rawChars": 0, "injectedChars": 0},
        ],
        "skills": {**size("y" * 80), "entries": [{"name": "weather", "blockChars": 80}]},
        "tools": {
            **size("z" * 800),
            "entries": [{"name": name, "sentChars": 100 + at} for at, name in enumerate(names)],
        },
        "tail": size(""),
        "history": {
            **size("h" * 2_000),
            "messages": 1,
            "byRole": by_role((User((Text("hi"),), 1),)),
            "summaryChars": 0,
        },
        "pruned": {"trimmed": 0, "cleared": 0, "images": 0, "savedChars": 0},
        "compactions": 0,
        "lastUsage": None,
        "estimatedTokens": 1_700,
        **more,
    }


def test_the_list_names_files_and_sizes() -> None:
    told = words(report())
    assert told.startswith("🧠 Context breakdown\nModel: fake/m, window 10,000 tokens")
    assert "System prompt: 4,000 chars (~1,000 tok)" in told
    assert "- SOUL.md: OK | raw 40 chars (~10 tok) | injected 40 chars (~10 tok)" in told
    assert "- AGENTS.md: cut |" in told
    assert "- USER.md: missing |" in told
    assert "Conversation: 1 messages, 2,000 chars (~500 tok)\n- People's words: 1, 2 chars (~1 tok)" in told
    assert told.endswith("In all about 1,700 tokens, 17 % of the window; 2,500 are kept free for the answer")
    assert "tool11" not in told
    assert said(report(), " LIST ") == said(report(), "") == told


def test_detail_names_sections_and_the_largest() -> None:
    told = said(report(), "detail")
    assert "- Tooling: 400 chars (~100 tok)" in told
    assert "- tool11: 111 chars (~28 tok)" in told
    assert "… (+2 more)" in told
    assert "- weather: 80 chars (~20 tok)" in told


def test_what_is_not_usual_is_told() -> None:
    told = words(
        report(
            engine="toy",
            contextWindow=0,
            injectedWorkspaceFiles=[],
            tail=size("a note"),
            history={**size("h"), "messages": 1, "byRole": by_role(()), "summaryChars": 400},
            pruned={"trimmed": 2, "cleared": 1, "images": 3, "savedChars": 9_000},
            compactions=2,
            lastUsage={"input": 1_500, "cacheRead": 1_000, "output": 5},
        )
    )
    assert "Context breakdown, engine toy" in told
    assert "- none" in told
    assert "Said behind the history, this turn only: 6 chars" in told
    assert "summary of what was before: 400 chars (~100 tok)" in told
    assert "Sent in brief: 2 results shortened, 1 cleared, 3 pictures left out; 9,000 chars (~2,250 tok) saved" in told
    assert "Summed up 2 times" in told
    assert "tokens, ? of the window" in told
    assert told.endswith("The last answer read 1,500 tokens, 1,000 of them from the cache")


def test_the_report_itself_and_nothing_else() -> None:
    assert json.loads(said(report(), "json")) == report()
    with pytest.raises(UserError, match="list, detail, map or json"):
        said(report(), "tree")
    assert weights.tokens(5) == 2


def test_the_map_has_a_bar_for_each_part_the_largest_first() -> None:
    told = said(report(), "map").splitlines()
    bars = [line for line in told if "█" in line]
    shares = [int(line.split()[1]) for line in bars]
    assert shares == sorted(shares, reverse=True)
    assert 98 <= sum(shares) <= 102
    assert {len(line.split()[0]) for line in bars} == {16}
    assert any("Tool schemas" in line for line in bars)
    assert told[0].startswith("🧠")
    assert "of the window" in said(report(), "map")
