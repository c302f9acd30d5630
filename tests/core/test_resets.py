"""When a conversation begins anew by itself, and what it is told of the one before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from garra.core import resets
from garra.core.messages import Assistant, Message, Text, ToolResult, User
from garra.core.resets import NEVER, Policies, Policy
from garra.core.taint import META, Mark

EAST = timezone(timedelta(hours=8))


def ms(day: int, hour: int, minute: int = 0) -> int:
    return round(datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("policy", "started", "last", "now", "why"),
    [
        (NEVER, ms(1, 0), ms(1, 0), ms(20, 0), ""),
        (Policy("daily"), ms(9, 5), ms(9, 23), ms(10, 3, 59), ""),
        (Policy("daily"), ms(9, 5), ms(9, 23), ms(10, 4), "daily"),
        (Policy("daily"), ms(10, 4), ms(10, 4), ms(10, 23), ""),
        (Policy("daily", at_hour=0), ms(9, 23), ms(9, 23), ms(10, 0), "daily"),
        (Policy("daily", idle_minutes=60), ms(10, 5), ms(10, 6), ms(10, 7), "idle"),
        (Policy("daily", idle_minutes=600), ms(9, 5), ms(10, 3), ms(10, 5), "daily"),
        (Policy("idle"), ms(10, 5), ms(10, 5), ms(10, 6), "idle"),
        (Policy("idle", idle_minutes=120), ms(10, 5), ms(10, 5), ms(10, 6), ""),
        (Policy("idle", idle_minutes=120), ms(10, 5), 0, ms(10, 6), ""),
    ],
)
def test_when_a_conversation_begins_anew(policy: Policy, started: int, last: int, now: int, why: str) -> None:
    assert resets.due(policy, started=started, last=last, now=now) == why


def test_a_day_begins_by_the_owner_s_own_clock() -> None:
    assert resets.day(ms(10, 21), 4, EAST) == ms(10, 20)
    assert resets.day(ms(10, 19), 4, EAST) == ms(9, 20)
    assert resets.day(ms(10, 19), 4, None) <= ms(10, 19)


def test_the_narrowest_policy_holds() -> None:
    found = Policies(Policy("daily"), {"group": Policy("idle")}, {"discord": NEVER})
    assert found.of("direct", "telegram").mode == "daily"
    assert found.of("group", "telegram").mode == "idle"
    assert found.of("group", "discord").mode == "none"


def test_what_a_new_conversation_is_told() -> None:
    mark = Mark("web", "https://example.org/")
    messages: list[Message] = [
        User((Text("the summary"),), 1),
        User((Text("My boat is called Petrel."),), 2),
        ToolResult("c", "exec", (Text("noise"),), 3, meta={META: [{"source": "web", "where": "https://example.org/"}]}),
        Assistant((Text("Noted. " + "x" * 900),), 4),
        Assistant((), 5),
    ]
    found = resets.digest(messages, summed=True)
    assert found is not None
    assert "the summary" in found.text
    assert "They: My boat is called Petrel." in found.text
    assert "noise" not in found.text
    assert found.text.endswith("…")
    assert found.marks == (mark,)


def test_where_nothing_was_said_nothing_is_told() -> None:
    assert resets.digest([]) is None
    assert resets.digest([], summed=True) is None
    plain = resets.digest([User((Text("hi"),), 1)])
    assert plain is not None
    assert plain.text.endswith("They: hi")
    only = resets.digest([User((Text("the summary"),), 1)], summed=True)
    assert only is not None
    assert only.text.endswith("the summary")


def test_for_a_day_it_can_be_undone() -> None:
    assert resets.undoable(ms(9, 5), ms(10, 5))
    assert not resets.undoable(ms(9, 5), ms(10, 5) + 1)
    assert not resets.undoable(ms(10, 6), ms(10, 5))
    assert not resets.undoable(None, ms(10, 5))
