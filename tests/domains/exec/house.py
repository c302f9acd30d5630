"""A supervisor with real children, for the tests of commands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from garra.builtin.sandbox.bwrap.sandbox import PERLS, Bubblewrap
from garra.core.execplan import Settings
from garra.core.execrules import Policy
from garra.core.ids import SessionKey
from garra.domains.exec.boxes import probe_by
from garra.domains.exec.planning import Host
from garra.domains.exec.supervisor import Commands, Consent, Supervisor
from garra.io.clock import SystemClock
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.sdk.ports import Ran
from garra.sdk.sandbox import Availability, Plan, Sandbox, Wrapped
from garra.sdk.tool import Origin

MAIN, OTHER = SessionKey("agent:main:main"), SessionKey("agent:main:other")
FREE = Policy("full", "off")
ON_HOST, SHUT_IN = Settings(host="gateway", policy=FREE), Settings()


class NoBox:
    """A sandbox that this machine lacks."""

    name = "none"
    hides = False

    async def available(self) -> Availability:
        return Availability(False, "no box here", "buy one")

    def wrap(self, plan: Plan) -> Wrapped:
        raise AssertionError(plan)


@dataclass
class House:
    """One machine's commands."""

    workspace: Path
    tasks: Tasks
    programs: Programs
    told: list[tuple[SessionKey, Ran]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def supervisor(self, sandboxes: Sequence[Sandbox], consent: Consent | None = None) -> Supervisor:
        numbers = itertools.count(1)
        return Supervisor(
            self.programs,
            sandboxes,
            SystemClock(),
            self.tasks,
            new_id=lambda: f"job-{next(numbers)}",
            consent=consent,
            notice=lambda key, ran: self.told.append((key, ran)),
            host=Host(str(self.workspace)),
        )

    def boxed(self, perls: Sequence[str] = PERLS) -> Supervisor:
        return self.supervisor([Bubblewrap(probe=probe_by(self.programs), perls=perls)])

    def commands(
        self,
        supervisor: Supervisor,
        settings: Settings = SHUT_IN,
        key: SessionKey = MAIN,
        origin: Origin = "operator",
    ) -> Commands:
        return supervisor.exec_for(key, str(self.workspace), origin, settings)


def silent(_: str) -> None:
    """An update nobody looks at."""
