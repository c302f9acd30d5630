"""What a check is given, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from garra.config.load import Snapshot
from garra.config.paths import Paths
from garra.core.value import frozen
from garra.io.env import Environment

Level = Literal["ok", "note", "warn", "bad"]
"""`note`: nothing is wrong, but there is less than there could be."""


@frozen
class Ground:
    """One installation, as it was read once; a check judges it and may look at the machine, but changes nothing."""

    paths: Paths
    env: Environment
    snapshot: Snapshot


@frozen
class Finding:
    """One thing that is well or not: what, where, and how it is mended.

    `mend` mends it without asking anything; it gives one line on what it did and raises UserError or OSError when it
    could not. None when only a person can.
    """

    check: str
    level: Level
    what: str
    where: str = ""
    how: str = ""
    mend: Callable[[], str] | None = None


def told(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    return {
        "check": finding.check,
        "level": finding.level,
        "what": finding.what,
        "where": finding.where,
        "how": finding.how,
        "fixable": finding.mend is not None,
    }


Check = Callable[[Ground], list[Finding]]
