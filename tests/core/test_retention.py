"""How long conversations are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from garra.core.errors import UserError
from garra.core.retention import File, Policy, Pruning, Row, duration, files, length, pruning

DAY = 86_400_000
NOW = 100 * DAY
RULES = Policy()


@pytest.mark.parametrize(
    ("text", "ms"), [("30d", 30 * DAY), ("1.5h", 5_400_000), ("45m", 2_700_000), ("90", 90), ("1w", 7 * DAY)]
)
def test_lengths_of_time_are_read(text: str, ms: int) -> None:
    assert duration(text) == ms


def test_what_is_no_length_of_time_is_said_so() -> None:
    assert length("30d") == "30d"
    with pytest.raises(ValueError, match="write it as 30d"):
        length("soon")
    with pytest.raises(UserError, match="write it as 30d"):
        duration("soon")


def test_old_conversations_are_put_away_and_those_of_programs_removed() -> None:
    rows = [
        Row("agent:main:telegram:direct:1", NOW - 31 * DAY),
        Row("agent:main:subagent:x", NOW - 31 * DAY),
        Row("agent:main:telegram:direct:2", NOW - 29 * DAY),
        Row("agent:main:cron:y", NOW - 29 * DAY),
    ]
    assert pruning(rows, NOW, RULES) == Pruning(
        (("agent:main:telegram:direct:1", "age-retention"),), ("agent:main:subagent:x",)
    )


@pytest.mark.parametrize(
    "row", [Row("k", 0, pinned=True), Row("k", 0, busy=True), Row("k", 0, main=True), Row("k", 0, archived=True)]
)
def test_what_is_pinned_busy_main_or_archived_stays(row: Row) -> None:
    assert pruning([row], NOW, RULES) == Pruning()


def test_above_the_number_the_oldest_go_but_no_group() -> None:
    rows = [Row(f"k{at}", NOW - DAY + at) for at in range(4)]
    rows += [Row("group", NOW - 2 * DAY, group=True), Row("agent:main:cron:j", NOW - DAY - 1)]
    found = pruning(rows, NOW, replace(RULES, most=4))
    assert found == Pruning((("k0", "active-session-cap"),), ("agent:main:cron:j",))


def test_only_copies_of_deleted_conversations_go_for_age_and_for_room() -> None:
    found = [File("live", 100, 0, copy=False), File("old", 10, 0, copy=True), File("new", 10, NOW - 1, copy=True)]
    assert files(found, NOW, RULES) == ()
    assert [each.path for each in files(found, NOW, replace(RULES, archived_ms=DAY))] == ["old"]
    tight = replace(RULES, most_bytes=115, water_bytes=112)
    assert [each.path for each in files(found, NOW, tight)] == ["old"]
    assert [each.path for each in files(found, NOW, replace(tight, water_bytes=1))] == ["old", "new"]
    assert files(found, NOW, replace(tight, most_bytes=0)) == ()
