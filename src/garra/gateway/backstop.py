"""A bound on what changes the installation: not against attackers (they hold the right already), against programs and
agents that go round in circles.
"""

from __future__ import annotations

from typing import Final

from garra.core import limits
from garra.core.errors import Unavailable
from garra.core.limits import Rule
from garra.gateway.method import Who
from garra.sdk.ports import Clock

BOUNDED: Final = frozenset(
    {"config.apply", "config.patch", "plugins.install", "plugins.setEnabled", "plugins.uninstall", "update.run",
     "gateway.restart.request"}
)  # fmt: skip
RULE: Final = Rule(30, 60.0, 0.0)


class Backstop:
    """Thirty calls a minute of one method by one device at one address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent = limits.Limits()

    def check(self, method: str, who: Who) -> None:
        """Raises Unavailable, with when to come again."""
        if method not in BOUNDED:
            return
        key = f"{method} {who.device_id or who.client.id} {who.address}"
        self._spent, wait_ms = limits.spent(self._spent, key, self._clock.monotonic(), RULE)
        if wait_ms:
            line = f"rate limit exceeded for {method}; retry after {-(-wait_ms // 1000)}s"
            details = {"method": method, "limit": f"{RULE.attempts} per {RULE.window_s:g}s", "retryAfterMs": wait_ms}
            raise Unavailable(line, details=details, retryable=True)
