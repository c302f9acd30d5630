"""How messages wait in this house."""

from __future__ import annotations

from garra.config.live import Live
from garra.core import lanes


def settings(live: Live) -> lanes.Settings:
    """How messages that come while an agent is busy are treated (`messages.queue`)."""
    queue = live.config.messages.queue
    plain: dict[str, lanes.Mode] = {"followup": "followup", "collect": "collect", "interrupt": "interrupt"}
    return lanes.Settings(
        mode=plain.get(queue.mode or "", "steer"), debounce_ms=queue.debounce_ms, cap=queue.cap, overflow=queue.drop
    )
