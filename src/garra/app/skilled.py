"""The skills as the gateway's methods reach them; what does it is loaded when the first of them is called."""

from __future__ import annotations

import importlib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from garra.app.house import House
from garra.gateway.host import Host

WHERE = "skills"
"""As `gateway.methods.skills.WHERE`, which is loaded with the first of its methods."""


def serve(house: House, host: Host) -> None:
    """Paths that a client names start in the state folder."""

    def opened() -> AbstractAsyncContextManager[Any]:
        app = importlib.import_module("garra.app.skills")
        live, here = house.live, Path(house.paths.state)
        found: AbstractAsyncContextManager[Any] = app.lent(
            house.paths, house.env, lambda: live.snapshot, house.programs, here=here
        )
        return found

    host.more[WHERE] = opened
