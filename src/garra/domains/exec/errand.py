"""A command on its way from the call to its start."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable

from garra.core import execplan
from garra.core.execrules import Policy, Rules, stricter
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.value import frozen
from garra.domains.exec.planning import Ground, planned
from garra.sdk.ports import Asker, Launch
from garra.sdk.sandbox import Plan


@frozen
class Errand:
    """A command that is about to start. `rules` gives what the document of approvals says now, `asker` asks people.
    `consented`: the person at the terminal has just said that commands may run on the machine itself. `why` makes a
    person decide, whatever the rules say: its turn has read text from outside.
    """

    launch: Launch
    ground: Ground
    rules: Callable[[], Rules]
    asker: Asker | None
    now_ms: Callable[[], int]
    session_key: SessionKey
    agent_id: AgentId
    run_id: RunId
    requester: str
    shut_in: bool = False
    consented: bool = False
    why: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """What holds now. What the document says of security and asking is about the machine itself; what it allows
        holds everywhere.
        """
        written = self.rules().of(self.agent_id)
        if self.shut_in:
            written = Policy(allowlist=written.allowlist)
        said = stricter(self.ground.settings.policy, written)
        return execplan.filled(said, shut_in=self.shut_in or self.consented)

    @property
    def judged(self) -> bool:
        """Whether it is looked at: then a person is asked, or it does not run, unless the owner has allowed that."""
        policy = self.policy
        return bool(self.why) or policy.security != "full" or policy.ask == "always"

    def plan(self) -> Plan:
        """Blocks. Raises ToolFailed where there is no such folder."""
        return planned(self.launch, self.ground, shut_in=self.shut_in)


@frozen
class Settled:
    """What starts: `argv`, and the identity of the file that `argv[0]` must be; empty where that is no matter."""

    plan: Plan
    argv: tuple[str, ...]
    same: str = ""


async def settled(errand: Errand) -> Settled:
    """The command as it was judged, with what its program is lent. Raises ToolFailed when it may not run."""
    found = await _judged(errand)
    if not errand.ground.settings.lent:
        return found
    lending = importlib.import_module("garra.domains.exec.lending")
    whole: Settled = await asyncio.to_thread(lending.lend, errand, found)
    return whole


async def _judged(errand: Errand) -> Settled:
    if not errand.judged:
        plan = await asyncio.to_thread(errand.plan)
        return Settled(plan, plan.argv)
    judging = importlib.import_module("garra.domains.exec.judging")  # it loads what most installations never need
    found: Settled = await judging.settle(errand)
    return found
