"""How often a credential may be wrong."""

from __future__ import annotations

from garra.core.limits import KEYS, Limits, Rule, failed, locked, passed, spent

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


def test_so_much_may_be_done_in_a_window_and_then_one_by_one() -> None:
    limits = Limits()
    for at in (0.0, 10.0, 20.0):
        limits, wait = spent(limits, "a", at, RULE)
        assert wait == 0
    assert spent(limits, "a", 30.0, RULE) == (limits, 30_000)
    assert spent(limits, "b", 30.0, RULE)[1] == 0
    limits, wait = spent(limits, "a", 60.0, RULE)
    assert wait == 0
    assert spent(limits, "a", 60.0, RULE)[1] == 10_000
    for number in range(KEYS + 1):
        limits, _ = spent(limits, f"k{number}", 61.0, RULE)
    assert len(limits.records) == KEYS
