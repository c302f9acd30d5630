"""What was running in the background when the gateway ended is told after it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.errors import ToolFailed
from garra.domains.exec.records import CUT_OFF, KEPT, LAST, LIFE_MS, Records
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.sdk.ports import Clock, Launch, Ran
from garra.testing.clock import ManualClock
from tests.domains.exec.house import MAIN, ON_HOST, OTHER, House, silent


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    db = Database(tmp_path / "state.db")
    yield Shelf(db, "background")
    await db.close()


async def loaded(shelf: Shelf, at: Clock | None = None) -> Records:
    records = Records(shelf, at or ManualClock())
    await records.load()
    return records


async def until(shelf: Shelf, status: str) -> None:
    for _ in range(500):
        if any(each["status"] == status for each in (await shelf.items()).values()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(status)


@pytest.mark.req("TOOL-10")
async def test_a_restart_tells_what_ran_and_how_it_ended(house: House, shelf: Shelf) -> None:
    first = house.supervisor([])
    first.records = await loaded(shelf, SystemClock())
    commands = house.commands(first, ON_HOST)
    await commands.run(Launch("echo done; exit 3", background=True), silent)
    await until(shelf, "completed")
    running = await commands.run(Launch("sleep 600", background=True), silent)
    await until(shelf, "running")
    await first.close()

    second = house.supervisor([])
    second.records = await loaded(shelf, SystemClock())
    after = house.commands(second, ON_HOST)
    cut, ended = after.running()
    assert (ended.session, ended.command, ended.status, ended.exit_code) == (
        "job-1", "echo done; exit 3", "completed", 3,
    )  # fmt: skip
    assert (cut.session, cut.command, cut.status, cut.notes) == (running.session, "sleep 600", "killed", (CUT_OFF,))
    assert after.log("job-1", 0, 9).startswith("done")
    assert (await after.poll("job-2")).status == "killed"
    for action in (after.kill("job-2"), after.send("job-2", b"x")):
        with pytest.raises(ToolFailed, match="ended when the gateway did"):
            await action
    assert not house.commands(second, ON_HOST, OTHER).running()
    with pytest.raises(ToolFailed, match="no command job-2"):
        house.commands(second, ON_HOST, OTHER).log("job-2", 0, 1)
    again = await loaded(shelf, SystemClock())
    assert [each.notes for each in again.of(MAIN)] == [(CUT_OFF,), ()]


async def test_what_is_old_or_too_much_is_forgotten(shelf: Shelf) -> None:
    ran = Ran("completed", "x" * (LAST + 5), command="true", session="a", started_at=ManualClock().now_ms())
    records = await loaded(shelf)
    for number in range(KEPT + 5):
        await records.keep(MAIN, replace(ran, session=f"n{number}", started_at=ran.started_at + number))
    await records.keep(MAIN, replace(ran, session="old", started_at=ran.started_at - LIFE_MS - 1))
    await shelf.set(f"{MAIN}/odd", {"status": "who knows"})
    records = await loaded(shelf)
    names = [each.session for each in records.of(MAIN)]
    assert names == [f"n{number}" for number in range(KEPT + 4, 4, -1)]
    assert len(records.of(MAIN)[0].output) == LAST
    assert len(await shelf.items()) == KEPT
