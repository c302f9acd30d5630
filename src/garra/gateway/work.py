"""What was spent, who logs in at providers, and what stops everything, for the gateway's methods and commands."""

from __future__ import annotations

from typing import Final

from garra.core.errors import Unavailable
from garra.domains.spending.ledger import Ledger
from garra.gateway.host import Host
from garra.runs.switch import Switch

LEDGER: Final = "ledger"
LOGINS: Final = "logins"
SWITCH: Final = "switch"
TRACES: Final = "traces"
METRICS: Final = "metrics"
"""Where they stand in `Host.more`."""


def switch(host: Host) -> Switch:
    """Raises Unavailable where there is none yet."""
    found = host.more.get(SWITCH)
    if not isinstance(found, Switch):
        raise Unavailable("the gateway is only starting; try again in a moment", retryable=True)
    return found


def ledger_or_none(host: Host) -> Ledger | None:
    found = host.more.get(LEDGER)
    return found if isinstance(found, Ledger) else None


def ledger(host: Host) -> Ledger:
    """Raises Unavailable where there is none yet."""
    found = ledger_or_none(host)
    if found is None:
        raise Unavailable("what was spent cannot be told yet; try again in a moment", retryable=True)
    return found
