"""Writes to the installation, thirty a minute and method, for each caller by itself."""

from __future__ import annotations

import pytest

from garra.core.errors import Unavailable
from garra.gateway.backstop import BOUNDED, RULE, Backstop
from garra.gateway.method import Client, Who
from tests.gateway.house import Hands

ME = Who("c", Client("cli", "cli"), device_id="d", address="127.0.0.1")


def test_the_thirty_first_within_a_minute_is_told_when_to_come_again() -> None:
    clock = Hands()
    backstop = Backstop(clock)
    for _ in range(RULE.attempts):
        backstop.check("config.patch", ME)
        clock.move(1)
    with pytest.raises(Unavailable, match=r"rate limit exceeded for config\.patch; retry after 30s") as fault:
        backstop.check("config.patch", ME)
    assert fault.value.retryable
    assert fault.value.details == {"method": "config.patch", "limit": "30 per 60s", "retryAfterMs": 30_000}
    backstop.check("config.apply", ME)
    backstop.check("config.patch", Who("c", Client("cli", "cli"), device_id="other", address="127.0.0.1"))
    clock.move(30)
    backstop.check("config.patch", ME)


def test_what_only_reads_or_talks_is_never_bounded() -> None:
    backstop = Backstop(Hands())
    for _ in range(1_000):
        for name in ("config.get", "chat.send", "health"):
            backstop.check(name, ME)
    assert not {name for name in BOUNDED if name.endswith((".get", ".list"))}
