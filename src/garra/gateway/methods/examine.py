"""`doctor.*` and `security.*`: what is wrong with this installation and where it stands open, with what mends it.

The same checks as `garra doctor` and `garra security audit` make, on the configuration as the file has it now.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from garra.core.errors import GarraError, NotFound
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Name, Nothing, Params


class Mend(Params, frozen=True):
    """Which findings are mended: those of this check whose words these are; without words, all that can be."""

    check: Name | None = None
    what: str | None = None


def _ground(host: Host) -> Any:
    finding = importlib.import_module("garra.checks.finding")
    load = importlib.import_module("garra.config.load")
    live = host.live
    return finding.Ground(live.paths, live.env, load.load(live.paths, live.env))


def _found(host: Host) -> list[Any]:
    found: list[Any] = importlib.import_module("garra.checks.all").examine(_ground(host))
    return found


async def examine(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """Every finding, well or not."""
    found = await asyncio.to_thread(_found, host)
    told = importlib.import_module("garra.checks.finding").told
    return {
        "ts": host.clock.now_ms(),
        "ok": not any(each.level == "bad" for each in found),
        "findings": [told(each) for each in found],
    }


async def mend(host: Host, caller: Caller, params: Mend) -> dict[str, Any]:
    """Mend what can be mended without a person. Raises NotFound where nothing of it is to be mended (any more)."""
    found = await asyncio.to_thread(_found, host)
    wanted = [
        each
        for each in found
        if each.mend is not None and params.check in (None, each.check) and params.what in (None, each.what)
    ]
    if not wanted:
        raise NotFound("there is nothing of it to mend (any more): look again")
    done = await asyncio.to_thread(lambda: [_mended(each) for each in wanted])
    return {"mended": done, **await examine(host, caller, Nothing())}


def _mended(finding: Any) -> dict[str, Any]:
    try:
        return {"what": finding.what, "said": str(finding.mend()), "ok": True}
    except (GarraError, OSError) as fault:
        return {"what": finding.what, "said": f"could not mend it: {fault}", "ok": False}


def _report(host: Host) -> Any:
    gather = importlib.import_module("garra.checks.security.gather")
    audit = importlib.import_module("garra.checks.security.audit")
    return audit.audit(gather.gather(_ground(host), None, None))


def _shown(host: Host, report: Any) -> dict[str, Any]:
    audit = importlib.import_module("garra.checks.security.audit")
    told: dict[str, Any] = audit.told(report, host.clock.now_ms())
    for row, one in zip(told["findings"], report.findings, strict=True):
        row["fixable"] = bool(one.fixes)
    return told


async def audit(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """The report of the audit, without what `--deep` looks at."""
    return _shown(host, await asyncio.to_thread(_report, host))


async def secure(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    """Do what `garra security audit --fix` does, and judge again. What was done, with the way back, is written down."""
    mend = importlib.import_module("garra.checks.security.mend")
    live = host.live
    report = await asyncio.to_thread(_report, host)
    wanted = mend.fixes(report.findings)
    done = await asyncio.to_thread(mend.mend, live.paths, live.env, wanted, host.clock.now_ms())
    return {"fix": mend.told(done), "report": _shown(host, await asyncio.to_thread(_report, host))}


METHODS: tuple[Method, ...] = (
    Method("doctor.examine", READ, Nothing, examine),
    Method("doctor.mend", ADMIN, Mend, mend),
    Method("security.audit", ADMIN, Nothing, audit),
    Method("security.mend", ADMIN, Nothing, secure),
)
