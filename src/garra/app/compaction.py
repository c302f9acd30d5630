"""What keeps histories small, put together; and what makes a conversation smaller when a person asks for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from garra.config.live import Live
from garra.core.blots import Blots
from garra.core.events import Noticed, RunEvent
from garra.domains.models.registry import Models
from garra.domains.sessions.store import Sessions
from garra.runs import chore
from garra.runs.compaction import Compactor, Ports
from garra.runs.fitting import Fitting
from garra.runs.purse import Purse
from garra.runs.runner import Runs
from garra.sdk.ports import Clock

Tell = Callable[[RunEvent, str], None]


def made(
    sessions: Sessions, models: Models, live: Live, clock: Clock, *, blots: Callable[[], Blots], purse: Purse
) -> Fitting:
    """One for all runs of a house."""
    return Fitting(Compactor(Ports(models, sessions, lambda: live.config, clock, blots, purse)))


def asked(sessions: Sessions, runs: Runs, new_id: Callable[[], str]) -> Callable[[str, str], Awaitable[str]]:
    """Sums one conversation up, in its place in line; gives what a person is told. Raises UserError with why not."""

    async def compact(key: str, focus: str = "") -> str:
        session = await sessions.need(key)
        turn = chore.turn(chore.COMPACT, session.key, session.agent_id, f"compact-{new_id()}", focus=focus)
        return (await chore.done(runs, turn)).reply

    return compact


def heard(runs: Runs, tell: Tell) -> Callable[[], None]:
    """Have `tell` called with each line that a run has for its person; gives what ends it. It must not block."""

    def hear(event: RunEvent) -> None:
        if isinstance(event.body, Noticed):
            tell(event, event.body.text)

    return runs.subscribe(hear)
