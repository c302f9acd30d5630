"""How often a credential may be wrong."""

from __future__ import annotations

from garra.core.limits import KEYS, Limits, Rule, failed, locked, passed

RULE = Rule(attempts=3, window_s=60.0, lockout_s=300.0)


def fail(limits: Limits, times: int, at: float = 0.0, key: str = "a") -> Limits:
    for _ in range(times):
        limits = failed(limits, key, at, RULE)
    return limits


def test_the_third_failure_locks_for_five_minutes() -> None:
    limits = fail(Limits(), 2)
    assert locked(limits, "a", 0.0) == 0
    limits = fail(limits, 1)
    assert locked(limits, "a", 0.0) == 300_000
    assert locked(limits, "a", 299.5) == 500
    assert locked(limits, "a", 301.0) == 0
    assert locked(limits, "b", 0.0) == 0


def test_failures_outside_the_window_are_forgotten() -> None:
    limits = fail(fail(Limits(), 2, at=0.0), 2, at=61.0)
    assert locked(limits, "a", 61.0) == 0


def test_a_right_credential_clears_the_record() -> None:
    limits = passed(fail(Limits(), 2), "a")
    assert locked(fail(limits, 2), "a", 0.0) == 0
    assert passed(limits, "nobody") is limits


def test_only_so_many_addresses_are_remembered() -> None:
    limits = Limits()
    for number in range(KEYS + 10):
        limits = failed(limits, str(number), 0.0, RULE)
    assert len(limits.records) == KEYS
    assert "0" not in limits.records
