"""The web as the house's tools reach it, and what else tools of outside things are granted."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from garra.config.live import Live
from garra.config.paths import Paths
from garra.core.value import frozen
from garra.domains.web import settings
from garra.domains.web.door import Web
from garra.io.env import Environment
from garra.io.process.bounded import Bounded
from garra.io.process.door import Programs
from garra.sdk.ports import Via


@frozen
class Reach:
    """`ports` are for plugins, by name."""

    door: Web
    ports: dict[str, Any]


async def opened(live: Live, paths: Paths, env: Environment, programs: Programs, stack: AsyncExitStack) -> Reach:
    """What the tools of one house have, until `stack` is closed."""
    known = await asyncio.to_thread(settings.shipped)
    door = Web(
        lambda: live.config,
        lambda: live.snapshot.env,
        known,
        lambda: Via(live.config.proxy_url or None, live.config.ca_file or None),
    )
    stack.push_async_callback(door.close)
    return Reach(door, {"web": door, "bounded": Bounded(programs, env, str(paths.state))})
