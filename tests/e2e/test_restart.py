"""A gateway that begins anew in place: the same process and port, nobody refused, no turn lost, and its papers."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from garra.testing.model_server import Say
from tests.e2e.resident import Resident, resident, strict_model, words

pytestmark = pytest.mark.e2e


async def until(true: Any, what: str, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(true):  # noqa: ASYNC110 - another process tells by files
            await asyncio.sleep(0.02)
    assert true(), what


def papers(gateway: Resident) -> dict[str, Any]:
    file = gateway.state / "restart-handoff.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


class Knocking:
    """Somebody who knocks all the time; `refused` are the knocks that nobody answered."""

    def __init__(self, gateway: Resident) -> None:
        self.gateway, self.over, self.knocks, self.refused = gateway, asyncio.Event(), 0, 0

    async def run(self) -> None:
        while not self.over.is_set():
            status, _ = await self.gateway.get("/healthz")
            self.knocks += 1
            self.refused += status == 0
            await asyncio.sleep(0.01)


@pytest.mark.req("BOOT-18")
async def test_a_signal_begins_it_anew_on_the_same_port_and_drains_what_runs(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as gateway:
        async with gateway.client() as client:
            run_id = await client.send("sleep:1")
            await until(lambda: model.asked("sleep:1"), "the turn runs")
            assert gateway.process is not None
            knocking = Knocking(gateway)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(knocking.run())
                gateway.process.send_signal(signal.SIGUSR1)
                assert words(await client.until(run_id)) == "slept"
                await until(lambda: "after" in papers(gateway), "both timings")
                knocking.over.set()
        assert knocking.knocks > 10
        assert knocking.refused == 0
        assert gateway.process.returncode is None, "the same process"
        told = papers(gateway)
        assert told["pid"] == gateway.process.pid
        assert told["reason"] == "SIGUSR1"
        before, after = told["before"], told["after"]
        assert (before["runs"], before["unfinishedRuns"]) == (1, 0)
        assert before["drainMs"] > 0
        assert before["startedAt"] < told["requestedAt"] <= before["endedAt"] <= after["startedAt"] <= after["readyAt"]
        assert after["steps"]["bind"] >= 0
        assert told["awayMs"] == after["readyAt"] - before["endedAt"]
        model.then(Say("back"))
        async with gateway.client() as client:
            assert words(await client.say("are you there?")) == "back"


async def test_the_method_begins_it_anew_once_nothing_runs(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as gateway:
        async with gateway.client() as client:
            assert (await client.call("gateway.restart.preflight"))["safe"] is True
            run_id = await client.send("sleep:1")
            await until(lambda: model.asked("sleep:1"), "the turn runs")
            asked = await client.call("gateway.restart.request", {"safe": True, "reason": "a test"})
            assert (asked["status"], asked["preflight"]["safe"]) == ("deferred", False)
            again = await client.call("gateway.restart.request", {"safe": True})
            assert again["status"] == "coalesced"
            assert words(await client.until(run_id)) == "slept"
            await until(lambda: "after" in papers(gateway), "begun anew")
        assert papers(gateway)["reason"] == "a test"
        assert papers(gateway)["before"]["unfinishedRuns"] == 0
