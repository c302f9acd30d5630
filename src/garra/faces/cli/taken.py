"""Whether the gateway that runs here has taken a change of the configuration up."""

from __future__ import annotations

import threading
from contextlib import suppress

from garra.client import quick
from garra.core.errors import GarraError
from garra.faces.cli.place import Place
from garra.io.clock import SystemClock

PATIENCE_S = 3.0
PAUSE_S = 0.1


def up(place: Place, digest: str) -> bool:
    """Wait until it serves the configuration of this hash, some seconds at most; true at once where none runs."""
    if place.holder is None:
        return True
    clock, pause = SystemClock(), threading.Event()
    end = clock.monotonic() + PATIENCE_S
    with suppress(GarraError), quick.Gateway(place.target(), timeout_s=PATIENCE_S) as gateway:
        while clock.monotonic() < end:
            if gateway.call("config.get", timeout_s=PATIENCE_S).get("hash") == digest:
                return True
            pause.wait(PAUSE_S)
    return False
