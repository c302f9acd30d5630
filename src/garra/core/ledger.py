"""Which side effects were asked for already: a request is carried out once per idempotency key.

Pure: `claim` and `settle` give a new ledger. A key is remembered while its work runs and for
five minutes after; 1,000 keys at most (OpenClaw's numbers), those that ended longest ago go first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

LIFE_MS: Final = 300_000
ENTRIES: Final = 1_000

Answer = Literal["new", "in_flight", "ok", "conflict"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One claimed key. `fingerprint` is of the parameters; `result` is what a repeat is answered with."""

    fingerprint: str
    at: int
    settled: bool = False
    result: Any = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """Claimed keys, oldest first."""

    entries: Mapping[str, Entry] = field(default_factory=dict)


def claim(ledger: Ledger, key: str, fingerprint: str, now_ms: int) -> tuple[Ledger, Answer]:
    """Ask to carry out `key`: `new` says go on, the others say what became of the first time.

    `conflict` is the same key with other parameters: an error of the caller.
    """
    entry = ledger.entries.get(key)
    if entry is None or _stale(entry, now_ms):
        kept = {k: e for k, e in ledger.entries.items() if k != key and not _stale(e, now_ms)}
        return Ledger(_bounded({**kept, key: Entry(fingerprint, now_ms)})), "new"
    if entry.fingerprint != fingerprint:
        return ledger, "conflict"
    return ledger, "ok" if entry.settled else "in_flight"


def settle(ledger: Ledger, key: str, now_ms: int, result: Any = None) -> Ledger:
    """The work of `key` ended; it is remembered from now on. Unknown keys are no matter."""
    entry = ledger.entries.get(key)
    if entry is None:
        return ledger
    return Ledger({**ledger.entries, key: replace(entry, at=now_ms, settled=True, result=result)})


def release(ledger: Ledger, key: str) -> Ledger:
    """The work of `key` never began: the same key may be tried again."""
    return Ledger({k: e for k, e in ledger.entries.items() if k != key})


def _stale(entry: Entry, now_ms: int) -> bool:
    return entry.settled and now_ms - entry.at > LIFE_MS


def _bounded(entries: dict[str, Entry]) -> dict[str, Entry]:
    surplus = len(entries) - ENTRIES
    if surplus > 0:
        for key in [k for k, e in entries.items() if e.settled][:surplus]:
            del entries[key]
    return entries
