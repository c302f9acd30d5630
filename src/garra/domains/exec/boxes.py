"""Which sandbox shuts commands in here: the first that works, tried once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.io.process.door import Programs, Start
from garra.sdk.ports import Clock
from garra.sdk.sandbox import Chore, Named, Probe, Probed, Sandbox

PROBE_S, DOUBT_S = 5.0, 30.0


@frozen
class Chosen:
    """The sandbox to use, or why there is none: one line, with the remedy."""

    sandbox: Sandbox | None
    missing: str = ""


class Boxes:
    """The sandboxes of this machine, best first. That none works is believed for half a minute only."""

    def __init__(self, sandboxes: Sequence[Sandbox], clock: Clock) -> None:
        self._sandboxes, self._clock = sandboxes, clock
        self._chosen: dict[str, tuple[Chosen, float]] = {}
        self._turn = asyncio.Lock()

    async def choose(self, backend: str = "") -> Chosen:
        """The sandbox called `backend`, or, where that is empty, the best that works."""
        async with self._turn:
            now = self._clock.monotonic()
            known, tried = self._chosen.get(backend, (None, 0.0))
            if known is None or (not known.sandbox and now - tried > DOUBT_S):
                known = await self._try(backend)
                self._chosen[backend] = known, now
            return known

    def forget(self) -> None:
        """What was found no longer holds."""
        self._chosen.clear()

    async def _try(self, backend: str) -> Chosen:
        reasons: list[str] = []
        remedies: list[str] = []
        for sandbox in self._sandboxes:
            if sandbox.name != backend and (backend or _named(sandbox)):
                continue
            found = await sandbox.available()
            if found.ok:
                return Chosen(sandbox)
            reasons.append(found.reason)
            remedies += [found.remedy] if found.remedy else []
        remedy = f" To mend it: {remedies[0]}." if remedies else ""
        if backend:
            known = ", ".join(sandbox.name for sandbox in self._sandboxes)
            why = "; ".join(reasons) or f"there is none of that name; there is {known}"
            return Chosen(None, f"the sandbox {backend[:40]} (sandbox.backend) cannot start ({why}).{remedy}")
        owner = " Or the owner sets tools.exec.host to gateway, which runs commands on the machine itself."
        return Chosen(None, f"no sandbox can start ({'; '.join(reasons) or 'none is installed'}).{remedy}{owner}")


def _named(sandbox: Sandbox) -> bool:
    """Whether it is used only where the configuration names it."""
    return isinstance(sandbox, Named) and sandbox.named


def probe_by(programs: Programs) -> Probe:
    """The trial run a sandbox is given."""

    async def probe(argv: Sequence[str]) -> Probed:
        try:
            finished = await programs.run(Start(tuple(argv), "/"), timeout_s=PROBE_S, limit=4_096)
        except Unavailable as error:
            return Probed(None, error.message)
        return Probed(finished.code, finished.output.decode(errors="replace"))

    return probe


def chore_by(programs: Programs) -> Chore:
    """The same for what may take longer."""

    async def chore(argv: Sequence[str], timeout_s: float) -> Probed:
        try:
            finished = await programs.run(Start(tuple(argv), "/"), timeout_s=timeout_s, limit=1 << 20)
        except Unavailable as error:
            return Probed(None, error.message)
        return Probed(finished.code, finished.output.decode(errors="replace"))

    return chore
