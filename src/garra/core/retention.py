"""How long conversations are kept: which are put away, which are removed, and what may go when the disk is full.

A person's conversation is put away (archived), never removed; what programs began by themselves (jobs, hooks,
sub-agents) is removed when it is old. Of files only the copies of deleted conversations go, the oldest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from garra.core.errors import UserError
from garra.core.value import frozen

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
DISPOSABLE: Final = (":subagent:", ":cron:", ":hook:", ":acp:")


def duration(text: str) -> int:
    """`30d`, `12h`, `90` (milliseconds) as milliseconds. Raises UserError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?\s*", text)
    if found is None:
        raise UserError(f"{text!r} is no length of time; write it as 30d, 12h or 45m")
    return round(float(found[1]) * _UNITS[found[2] or "ms"])


def length(text: str) -> str:
    """`text`, when it is a length of time. Raises ValueError."""
    try:
        duration(text)
    except UserError as fault:
        raise ValueError(fault.message) from None
    return text


@frozen
class Policy:
    """`archived_ms` is how long copies of deleted conversations are kept, None for ever; `most_bytes` 0: no limit.
    Where there is more than that, copies go until no more than `water_bytes` are left.
    """

    prune_ms: int = 30 * 86_400_000
    most: int = 5_000
    archived_ms: int | None = None
    most_bytes: int = 10 << 30
    water_bytes: int = 0


@frozen
class Row:
    """One conversation as it is now. `busy` has work under way, `main` is an agent's own."""

    key: str
    updated_at: int
    archived: bool = False
    pinned: bool = False
    busy: bool = False
    main: bool = False
    group: bool = False

    @property
    def disposable(self) -> bool:
        return any(part in self.key for part in DISPOSABLE)


Why = Literal["age-retention", "active-session-cap"]


@frozen
class Pruning:
    """What is to be done with rows: (key, why) to be archived, keys to be removed."""

    archive: tuple[tuple[str, Why], ...] = ()
    remove: tuple[str, ...] = ()


def pruning(rows: Iterable[Row], now: int, rules: Policy) -> Pruning:
    """Old rows first, then the oldest above the number that may be open; what is pinned, busy or main stays."""
    open_rows = sorted((row for row in rows if not row.archived), key=lambda row: row.updated_at)
    free = [row for row in open_rows if not (row.pinned or row.busy or row.main)]
    old = [row for row in free if now - row.updated_at > rules.prune_ms]
    archive: list[tuple[str, Why]] = [(row.key, "age-retention") for row in old if not row.disposable]
    remove = [row.key for row in old if row.disposable]
    over = len(open_rows) - len(old) - rules.most
    if over > 0:
        young = [row for row in free if now - row.updated_at <= rules.prune_ms]
        going = [row for row in young if row.disposable or not row.group][:over]
        archive += [(row.key, "active-session-cap") for row in going if not row.disposable]
        remove += [row.key for row in going if row.disposable]
    return Pruning(tuple(archive), tuple(remove))


@frozen
class File:
    """One file of an agent's conversations; `copy` says that it is what a deleted one left."""

    path: str
    size: int
    changed_at: int
    copy: bool


def files(found: Sequence[File], now: int, rules: Policy) -> tuple[File, ...]:
    """Which copies of deleted conversations are removed: those that are too old, then the oldest till there is room."""
    copies = sorted((file for file in found if file.copy), key=lambda file: file.changed_at)
    going = [file for file in copies if rules.archived_ms is not None and now - file.changed_at > rules.archived_ms]
    used = sum(file.size for file in found) - sum(file.size for file in going)
    if rules.most_bytes and used > rules.most_bytes:
        for file in copies[len(going) :]:
            if used <= rules.water_bytes:
                break
            going.append(file)
            used -= file.size
    return tuple(going)
