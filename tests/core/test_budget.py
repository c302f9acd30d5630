"""What of the workspace's files a prompt shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.budget import SHORTER, Document, cut, fit, injected_json, room, share, truncation_json
from garra.core.compaction import weight


@pytest.mark.req("LOOP-12")
def test_a_long_file_keeps_its_head_and_tail() -> None:
    (one,) = fit([Document("SOUL.md", "/w/SOUL.md", "a" * 30_000 + "END")])
    assert len(one.text) <= 20_000
    assert one.text.startswith("aaa")
    assert one.text.endswith("END")
    assert "SOUL.md has 30003 characters" in one.text
    assert injected_json([one]) == [
        {
            "name": "SOUL.md",
            "path": "/w/SOUL.md",
            "missing": False,
            "rawChars": 30_003,
            "injectedChars": len(one.text),
            "truncated": True,
        }
    ]


@pytest.mark.req("LOOP-12")
def test_all_files_share_one_budget() -> None:
    files = fit([Document(str(n), "", "x" * 19_000) for n in range(5)])
    assert sum(len(file.text) for file in files) <= 60_000
    assert [file.truncated for file in files] == [False, False, False, True, True]
    assert files[4].text == ""
    assert truncation_json(files, 20_000, 60_000) == {
        "warningMode": "always",
        "warningShown": True,
        "truncatedFiles": 2,
        "nearLimitFiles": 3,
        "totalNearLimit": True,
    }


def test_what_is_missing_unreadable_or_blank() -> None:
    files = fit([Document("a", ""), Document("b", "", note="too large"), Document("c", "", "# form", blank=True)])
    assert [(file.missing, file.raw_chars, file.text) for file in files] == [
        (True, 0, ""),
        (False, 0, "[b: too large]"),
        (False, 6, ""),
    ]


@given(st.text(max_size=300), st.integers(0, 300))
def test_never_more_than_the_limit(text: str, limit: int) -> None:
    assert len(cut(text, "x", limit)) <= limit


def test_additions_share_their_room_first_come_first_served() -> None:
    assert room(200_000) == 2_000
    assert room(8_000) == 400
    assert share(["  one ", "two"], 100) == ("one", "two")
    first, second, third = share(["a" * 30, "b" * 30, "c"], 12)
    assert first == "a" * 30
    assert second == "b" * (18 - weight(SHORTER)) + SHORTER
    assert third == ""


@given(st.lists(st.text(max_size=60), max_size=5), st.integers(0, 40))
def test_additions_never_take_more_than_their_room(texts: list[str], tokens: int) -> None:
    shared = share(texts, tokens)
    assert len(shared) == len(texts)
    assert sum(map(weight, shared)) <= 4 * tokens


def test_other_scripts_weigh_more() -> None:
    (one,) = share(["\u4f60" * 100], 25)
    assert one.endswith(SHORTER)
    assert 20 <= len(one) - len(SHORTER) <= 31
