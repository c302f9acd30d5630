"""How often a credential may be wrong: failures in a window, then a lockout; and how often something may be done at
all. Pure; times are monotonic seconds.

Only wrong credentials count. A missing one says nothing about guessing, and a right one clears the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from garra.core.value import frozen

KEYS: Final = 4_096
"""So many addresses are remembered; the one that failed longest ago is forgotten first."""


@frozen
class Rule:
    """`attempts` failures within `window_s` lock for `lockout_s`."""

    attempts: int = 10
    window_s: float = 60.0
    lockout_s: float = 300.0


@frozen
class Record:
    """One key's failures and, when locked, until when."""

    failures: tuple[float, ...] = ()
    until: float = 0.0


@frozen
class Limits:
    """What is remembered, by key (address and kind of credential), oldest failure first."""

    records: Mapping[str, Record] = field(default_factory=dict)


def locked(limits: Limits, key: str, now: float) -> int:
    """Milliseconds until `key` may try again; 0 when it may now."""
    record = limits.records.get(key)
    return max(0, round((record.until - now) * 1000)) if record else 0


def failed(limits: Limits, key: str, now: float, rule: Rule) -> Limits:
    """One more wrong credential."""
    records = dict(limits.records)
    before = records.pop(key, Record())
    recent = (*(at for at in before.failures if now - at < rule.window_s), now)
    full = len(recent) >= rule.attempts
    records[key] = Record((), now + rule.lockout_s) if full else Record(recent, before.until)
    if len(records) > KEYS:
        records.pop(next(iter(records)))
    return Limits(records)


def passed(limits: Limits, key: str) -> Limits:
    """A right credential."""
    if key not in limits.records:
        return limits
    return Limits({other: record for other, record in limits.records.items() if other != key})


def spent(limits: Limits, key: str, now: float, rule: Rule) -> tuple[Limits, int]:
    """One more of what `key` may do `attempts` times within `window_s`: what is remembered then, and 0; or nothing more
    is, and the milliseconds until it may.
    """
    records = dict(limits.records)
    before = records.pop(key, Record())
    recent = tuple(at for at in before.failures if now - at < rule.window_s)
    if len(recent) >= rule.attempts:
        return limits, max(1, round((recent[-rule.attempts] + rule.window_s - now) * 1000))
    records[key] = Record((*recent, now))
    if len(records) > KEYS:
        records.pop(next(iter(records)))
    return Limits(records), 0
