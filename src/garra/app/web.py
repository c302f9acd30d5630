"""The web as the house's tools reach it, and what else tools of outside things are granted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from garra.app import shelf
from garra.config.live import Live
from garra.config.paths import Paths
from garra.core.value import frozen
from garra.domains.delivery.handles import SPACE, Handles
from garra.domains.delivery.media import MediaRoot
from garra.domains.models.registry import Models
from garra.domains.web import settings
from garra.domains.web.browser import Host
from garra.domains.web.door import Web
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.io.process.bounded import Bounded
from garra.io.process.door import Programs
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.io.tasks import Tasks
from garra.runs.pictures import Pictures
from garra.runs.sight import Sight
from garra.sdk.ports import Via


@frozen
class Reach:
    """`ports` are for plugins, by name."""

    door: Web
    ports: dict[str, Any]
    browser: Host
    sight: Sight
    pictures: Pictures


@frozen
class Ground:
    """What the house has for it; `models` are there before the first call."""

    live: Live
    paths: Paths
    env: Environment
    programs: Programs
    models: Callable[[], Models]
    spawn: Tasks
    db: Database


async def opened(ground: Ground, stack: AsyncExitStack) -> Reach:
    """What the tools of one house have, until `stack` is closed."""
    live, clock = ground.live, SystemClock()

    def way() -> Via:
        return Via(live.config.proxy_url or None, live.config.ca_file or None)

    known = await asyncio.to_thread(settings.shipped)
    door = Web(
        lambda: live.config,
        lambda: live.snapshot.env,
        known,
        way,
        bound=lambda: live.snapshot.bound,
    )
    stack.push_async_callback(door.close)
    browser = Host(
        ground.paths.state / "browser", lambda: live.config.browser, way,
        programs=ground.programs, env=ground.env, spawn=ground.spawn, clock=clock,
        bound=lambda: live.snapshot.bound,
    )  # fmt: skip
    stack.push_async_callback(browser.close)
    media = MediaRoot(ground.paths.media, clock)
    sight = Sight(ground.models, lambda: live.config, clock)
    ports: dict[str, Any] = {
        "web": door,
        "bounded": Bounded(ground.programs, ground.env, str(ground.paths.state)),
        "sight": sight,
        "shelf": shelf.Shelf(media, Handles(Shelf(ground.db, SPACE), media)),
        "browsing": browser,
    }
    pictures = Pictures(ports["bounded"], lambda: live.config.agents.defaults.image_max_dimension_px)
    return Reach(door, ports, browser, sight, pictures)
