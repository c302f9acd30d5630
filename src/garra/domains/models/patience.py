"""How long a call may take to connect, to give its first sign, and between two signs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from garra.domains.models.catalog import Entry
from garra.sdk.model import ModelRequest

SLOW_S: Final = 300.0
"""How long the first sign may take of a model that thinks first, or of one that runs on this machine."""
PAUSE_S: Final = 120.0
"""How long such a one may pause between two signs."""
SPARED_S: Final = 60.0
"""How long the first sign of any other may take where another model could answer instead."""


def patient(request: ModelRequest, entry: Entry, behind: int) -> ModelRequest:
    """The request with its timers; the owner's own word counts first. `behind` models could answer instead."""
    model, own = request.model, entry.timeouts
    slow = model.api == "local" or entry.provider.auth != "key" or (model.reasoning and request.thinking != "off")
    first, between = request.timeout_first_s, request.timeout_between_s
    if slow:
        first, between = max(first, SLOW_S), max(between, PAUSE_S)
    elif behind:
        first = min(first, SPARED_S)
    return replace(
        request,
        timeout_connect_s=own.connect_s or request.timeout_connect_s,
        timeout_first_s=own.first_s or entry.timeout_s or first,
        timeout_between_s=own.between_s or entry.timeout_s or between,
    )
