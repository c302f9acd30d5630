"""What the HTTP side of the port is given; here, so that nobody loads that side to say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from garra.core.value import frozen
from garra.gateway.door import Door
from garra.gateway.host import Host
from garra.gateway.method import Registry

VOUCH: Final = "garra.vouch"
"""Where a request's scope has the call that lifts the limits for strangers."""


@frozen
class Site:
    """What the HTTP side is given. `ready` is whether everything runs; `registry` what the schema is made from; `page`
    the folder with the files of the web page.
    """

    host: Host
    door: Callable[[], Door]
    ready: Callable[[], bool]
    registry: Registry
    page: Path | None = None
