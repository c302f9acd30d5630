from __future__ import annotations

import asyncio

import pytest

from garra.config import trial
from garra.config.live import Live
from garra.config.load import Snapshot
from garra.core.errors import ConfigInvalid, Conflict
from garra.io.tasks import Tasks
from tests.config.place import Installation

TEXT = "{ // mine\n  gateway: { port: 1 },\n}\n"


def begin(here: Installation, port: object = 2, until: int = 100) -> Snapshot:
    return trial.begin(here.paths, here.writer, lambda writer: writer.set("gateway.port", port), until)


def test_a_change_that_nobody_confirms_is_taken_back(here: Installation) -> None:
    here.write(TEXT)
    assert begin(here).config.gateway.port == 2
    with pytest.raises(Conflict, match="on trial"):
        begin(here, 3)
    assert trial.settle(here.paths, here.writer, 99) is None
    back = trial.settle(here.paths, here.writer, 100)
    assert back is not None
    assert (back.config.gateway.port, here.text) == (1, TEXT)
    assert trial.settle(here.paths, here.writer, 101) is None


def test_a_confirmed_one_stays(here: Installation) -> None:
    here.write(TEXT)
    begin(here)
    assert trial.confirm(here.paths)
    assert not trial.confirm(here.paths)
    assert trial.settle(here.paths, here.writer, 101) is None
    assert here.load().config.gateway.port == 2


def test_what_somebody_changed_since_is_left_alone(here: Installation) -> None:
    here.write(TEXT)
    begin(here)
    here.writer.set("gateway.port", 3)
    assert trial.settle(here.paths, here.writer, 101) is None
    assert here.load().config.gateway.port == 3
    assert not trial.record(here.paths).exists()


def test_a_refused_change_is_not_on_trial(here: Installation) -> None:
    with pytest.raises(ConfigInvalid):
        begin(here, "x")
    assert not trial.record(here.paths).exists()


def test_a_restart_takes_an_overdue_change_back(here: Installation) -> None:
    here.write(TEXT)
    begin(here, until=0)
    assert Live(here.paths, here.environment).config.gateway.port == 1
    trial.record(here.paths).write_text("[broken")
    assert Live(here.paths, here.environment).config.gateway.port == 1


async def test_the_owner_is_told_while_it_runs(here: Installation) -> None:
    await asyncio.to_thread(here.write, TEXT)
    live = await asyncio.to_thread(Live, here.paths, here.environment)
    told: asyncio.Queue[int] = asyncio.Queue()
    live.on_reverted(lambda found: told.put_nowait(found.config.gateway.port))
    async with Tasks() as tasks:
        tasks(live.watch(0.01), "watch")
        found = await live.try_out(lambda writer: writer.set("gateway.port", 2), 0.1)
        assert found.config.gateway.port == 2
        assert await told.get() == 1
        await live.try_out(lambda writer: writer.set("gateway.port", 3), 600)
        assert await live.confirm()
    assert live.config.gateway.port == 3


def test_a_preview_shows_the_difference_without_secrets_and_writes_nothing(here: Installation) -> None:
    text = '{\n  gateway: { auth: { token: "sesame-1" } },\n  models: {},\n}\n'
    here.write(text)
    found = here.writer.preview({"gateway": {"port": 2}, "hooks": {"token": "sesame-2"}})
    assert found.snapshot.config.gateway.port == 2
    assert any(line.startswith("+") and "port: 2" in line for line in found.diff)
    assert "sesame" not in "\n".join(found.diff)
    assert here.text == text
    with pytest.raises(ConfigInvalid):
        here.writer.preview({"gateway": {"port": "x"}})
