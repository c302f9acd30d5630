"""What keeps histories small, put together; and what makes a conversation smaller when a person asks for it."""

from __future__ import annotations

from collections.abc import Callable

from garra.config.live import Live
from garra.core.blots import Blots
from garra.domains.models.registry import Models
from garra.domains.sessions.store import Sessions
from garra.runs.compaction import Compactor, Ports
from garra.runs.fitting import Fitting
from garra.runs.purse import Purse
from garra.sdk.ports import Clock


def made(
    sessions: Sessions, models: Models, live: Live, clock: Clock, *, blots: Callable[[], Blots], purse: Purse
) -> Fitting:
    """One for all runs of a house."""
    return Fitting(Compactor(Ports(models, sessions, lambda: live.config, clock, blots, purse)))
