"""Times as cron writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from garra.core.cron import after, parse
from garra.core.errors import UserError


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("times", "now", "then"),
    [
        ("0 3 * * *", "2026-05-02T02:59", "2026-05-02T03:00"),
        ("0 3 * * *", "2026-05-02T03:00", "2026-05-03T03:00"),
        ("0 */6 * * *", "2026-05-02T13:00", "2026-05-02T18:00"),
        ("30 8-10,22 * * *", "2026-05-02T10:30", "2026-05-02T22:30"),
        ("15/30 1 * * *", "2026-05-02T01:15", "2026-05-02T01:45"),
        ("0 0 * * 1", "2026-05-02T00:00", "2026-05-04T00:00"),
        ("0 0 * * 7", "2026-05-02T00:00", "2026-05-03T00:00"),
        ("0 0 1 1 *", "2026-05-02T00:00", "2027-01-01T00:00"),
        ("0 0 15 * 1", "2026-05-05T00:00", "2026-05-11T00:00"),
        ("0 0 29 2 *", "2026-05-05T00:00", "2028-02-29T00:00"),
    ],
)
def test_the_next_time(times: str, now: str, then: str) -> None:
    assert after(parse(times), at(now), UTC) == at(then)


def test_a_day_that_never_comes_and_an_hour_that_is_skipped() -> None:
    assert after(parse("0 0 31 2 *"), at("2026-05-05T00:00"), UTC) is None
    berlin = ZoneInfo("Europe/Berlin")
    assert after(parse("30 2 * * *"), at("2026-03-28T12:00"), berlin) == at("2026-03-29T01:30")
    assert after(parse("0 0 * * *"), at("2026-05-05T00:00"), None) is not None


@pytest.mark.parametrize("text", ["", "0 3 * *", "0 25 * * *", "x 3 * * *", "*/0 3 * * *", "5-1 * * * *", "@daily"])
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(UserError, match="is no time"):
        parse(text)
