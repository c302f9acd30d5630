from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from garra.config.live import Live
from garra.config.sections import Config
from garra.core.errors import ConfigInvalid
from garra.io.tasks import Tasks
from tests.config.place import Installation


def started(here: Installation, text: str) -> Live:
    here.write(text)
    return Live(here.paths, here.environment)


async def turned(live: Live, *, valid: bool) -> None:
    while live.snapshot.valid != valid:  # noqa: ASYNC110 - nothing announces a broken file
        await asyncio.sleep(0.01)


@asynccontextmanager
async def watched(live: Live) -> AsyncIterator[asyncio.Queue[tuple[int, int]]]:
    """Ports before and after, as subscribers hear of them while the file is watched."""
    heard: asyncio.Queue[tuple[int, int]] = asyncio.Queue()

    def changed(old: Config, new: Config) -> None:
        heard.put_nowait((old.gateway.port, new.gateway.port))

    live.subscribe(changed)
    async with Tasks() as tasks:
        tasks(live.watch(0.01), "watch")
        yield heard


@pytest.mark.req("BOOT-15", "COF-23")
async def test_edits_in_place_and_by_replacement_are_heard(here: Installation) -> None:
    live = await asyncio.to_thread(started, here, "{ gateway: { port: 1 } }")
    async with watched(live) as heard:
        await asyncio.to_thread(here.write, "{ gateway: { port: 22 } }")
        assert await heard.get() == (1, 22)
        draft = await asyncio.to_thread(here.write, "{ gateway: { port: 33 } }", "draft")
        await asyncio.to_thread(os.replace, draft, here.file)
        assert await heard.get() == (22, 33)
        await asyncio.to_thread(here.file.unlink)
        assert await heard.get() == (33, 18789)
        await asyncio.to_thread(here.write, "{ gateway: { port: 44 } }")
        assert await heard.get() == (18789, 44)
        assert live.config.gateway.port == 44


@pytest.mark.req("BOOT-15")
async def test_a_file_that_is_emptied_changes_nothing(here: Installation) -> None:
    await asyncio.to_thread(here.write, "KEY=kept", ".env")
    live = await asyncio.to_thread(started, here, "{ gateway: { port: 1 } }")
    async with watched(live) as heard:
        await asyncio.to_thread(here.write, "\n")
        await turned(live, valid=False)
        assert (live.config.gateway.port, live.snapshot.env["KEY"]) == (1, "kept")
        assert await asyncio.to_thread(live.paths.last_good.read_text) == "{ gateway: { port: 1 } }"
        assert heard.empty()


@pytest.mark.req("BOOT-15")
async def test_a_file_that_breaks_leaves_the_old_configuration_serving(here: Installation) -> None:
    live = await asyncio.to_thread(started, here, "{ gateway: { port: 1 } }")
    async with watched(live) as heard:
        await asyncio.to_thread(here.write, "{ gateway: { port: ")
        await turned(live, valid=False)
        assert (live.config.gateway.port, live.snapshot.issues[0].line) == (1, 1)
        assert live.snapshot.source == "file"
        await asyncio.to_thread(live.writer.restore)
        await turned(live, valid=True)
        assert heard.empty()
        await asyncio.to_thread(here.write, "{ gateway: { port: 2 } }")
        assert await heard.get() == (1, 2)


@pytest.mark.req("BOOT-15")
async def test_a_start_with_a_broken_file_serves_the_last_good_one(here: Installation) -> None:
    await asyncio.to_thread(started, here, "{ gateway: { port: 1 } }")
    live = await asyncio.to_thread(started, here, "{ broken")
    assert (live.snapshot.valid, live.snapshot.source, live.config.gateway.port) == (False, "last-good", 1)
    assert await asyncio.to_thread(lambda: here.text) == "{ broken"


async def test_an_included_file_is_watched_too(here: Installation) -> None:
    await asyncio.to_thread(here.write, "{ port: 1 }", "more.json5")
    live = await asyncio.to_thread(started, here, '{ gateway: { $include: "more.json5" } }')
    async with watched(live) as heard:
        await asyncio.to_thread(here.write, "{ port: 22 }", "more.json5")
        assert await heard.get() == (1, 22)


async def test_a_change_of_our_own_is_adopted_at_once(here: Installation) -> None:
    live = await asyncio.to_thread(started, here, "{ gateway: { port: 1 } }")
    heard: list[int] = []
    stop = live.subscribe(lambda _old, new: heard.append(new.gateway.port))
    found = await live.change(lambda writer: writer.set("gateway.port", 2))
    assert (found.config.gateway.port, live.config.gateway.port, heard) == (2, 2, [2])
    with pytest.raises(ConfigInvalid):
        await live.change(lambda writer: writer.set("gateway.port", "x"))
    await live.reload()
    stop()
    await live.change(lambda writer: writer.set("gateway.port", 3))
    assert heard == [2]


async def test_reloading_can_be_switched_off(here: Installation) -> None:
    live = await asyncio.to_thread(started, here, '{ gateway: { port: 1, reload: { mode: "off" } } }')
    async with watched(live) as heard:
        await asyncio.to_thread(here.write, "{ gateway: { port: 2 } }")
        await asyncio.sleep(0.1)
        assert heard.empty()
    assert (await live.reload()).config.gateway.port == 2
