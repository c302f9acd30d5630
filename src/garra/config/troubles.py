"""What is wrong with a configuration, in the form in which `core.repair` looks for remedies."""

from __future__ import annotations

from typing import Any

from garra.config.load import Snapshot
from garra.config.validate import unknown
from garra.core import repair
from garra.core.dotted import Path
from garra.core.repair import Trouble


def faults(found: Snapshot) -> tuple[Trouble, ...]:
    """Why the configuration is not valid; empty when it is."""
    return tuple(
        Trouble(one.at, one.message, one.line, one.allowed, strays=_beside(found.resolved, one.at))
        for one in found.issues
    )


def slips(found: Snapshot) -> tuple[Trouble, ...]:
    """What cannot be used as it is written, though the configuration may still be valid.

    Unknown keys that are nearly a known one, and values that are none of the allowed ones.
    """
    names = {odd.at: odd.names for odd in unknown(found.resolved)}
    return tuple(
        Trouble(one.at, one.message, one.line, one.allowed, names=names.get(one.at, ()))
        for one in found.warnings
        if one.wrong or (one.at in names and repair.near(str(one.at[-1]), names[one.at]))
    )


def marks(found: Snapshot) -> frozenset[tuple[Path, str]]:
    """All that is wrong, to be compared with what is wrong after a change."""
    return frozenset((one.at, one.message) for one in (*faults(found), *slips(found)))


def _beside(tree: Any, at: Path) -> tuple[str, ...]:
    """The keys beside a missing one: it may stand there misspelt."""
    for part in at[:-1]:
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tuple(tree) if isinstance(tree, dict) and at and at[-1] not in tree else ()
