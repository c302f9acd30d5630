"""Times in the form that cron reads: minute, hour, day, month, day of the week; numbers, `*`, `*/n`, `a-b`, lists."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Final

from garra.core.errors import UserError
from garra.core.value import frozen

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
YEARS: Final = 5
"""So far is looked for the next time; the 29th of February comes within."""


@frozen
class Times:
    """The numbers of each field. `any_day` and `any_weekday`: the field says nothing."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool


def parse(text: str) -> Times:
    """Such as `0 3 * * *`. Raises UserError for anything else than five such fields."""
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        raise UserError(f"{text[:60]!r} is no time: five fields are needed, such as '0 3 * * *' for 3:00 each day")
    minutes, hours, days, months, weekdays = (
        _numbers(field, *bounds, text=text) for field, bounds in zip(fields, _BOUNDS, strict=True)
    )
    sundays = frozenset(0 if number == 7 else number for number in weekdays)
    return Times(minutes, hours, days, months, sundays, fields[2] == "*", fields[4] == "*")


def _numbers(field: str, low: int, high: int, *, text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        start, end = (
            (str(low), str(high)) if span == "*" else (first, last if dash else (str(high) if slash else first))
        )
        if not all(number.isascii() and number.isdigit() for number in (start, end, step or "1")):
            raise UserError(f"{text[:60]!r} is no time: {part[:20]!r} is no number, `*`, `*/n`, or `a-b`")
        if not low <= int(start) <= int(end) <= high or (slash and int(step or 0) == 0):
            raise UserError(f"{text[:60]!r} is no time: {part[:20]!r} is not within {low} to {high}")
        found.update(range(int(start), int(end) + 1, int(step or 1)))
    return frozenset(found)


def after(times: Times, now_ms: int, zone: tzinfo | None) -> int | None:
    """The first such time behind `now_ms`, both in milliseconds since 1970; without a zone by the machine's own. None
    where there is none in years. An hour that a clock skips in spring comes when the clock has skipped it.
    """
    today = datetime.fromtimestamp(now_ms / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    for ahead in range(366 * YEARS):
        day = today + timedelta(days=ahead)
        if not _on(times, day):
            continue
        for hour in sorted(times.hours):
            for minute in sorted(times.minutes):
                at = round(day.replace(hour=hour, minute=minute).timestamp() * 1000)
                if at > now_ms:
                    return at
    return None


def _on(times: Times, day: datetime) -> bool:
    """Where both kinds of day are named, either will do: so cron reads it."""
    if day.month not in times.months:
        return False
    by_date, by_week = day.day in times.days, day.isoweekday() % 7 in times.weekdays
    return (by_date and by_week) if times.any_day or times.any_weekday else (by_date or by_week)
