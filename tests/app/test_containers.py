"""`sandbox list` and `recreate`: what an engine has of this installation, told and ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.app.containers import Asking, Wanted, listed, removed
from garra.config.sections import Config
from garra.core.errors import Unavailable
from garra.io.env import Environment
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from tests.runs.test_engine_images import GROUP, House


@pytest.fixture(params=["docker", "podman"])
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    programs = Programs()
    async with Tasks() as tasks:
        yield House(tmp_path, programs, tasks, request.param)
        await programs.close()


def asking(house: House, scope: str = "agent", image: str = "debian:12") -> Asking:
    config = house.config(scope, image=image, setupCommand="true")
    return Asking(config, house.paths, Environment({}), {house.name: [str(house.engine.program)]})


async def test_a_command_that_runs_is_listed_and_ended(house: House) -> None:
    now = asking(house)
    running = asyncio.create_task(house.run("sleep 60 & echo $! > pid; wait", now.config))
    while not (house.workspace / "pid").exists():  # noqa: ASYNC110 - a program says that it runs
        await asyncio.sleep(0.02)
    (row,) = await listed(now)
    told = [row[name] for name in ("backendId", "sessionKey", "image", "running", "imageMatch", "configMatch")]
    assert told == [house.name, "agent:main", "debian:12", True, True, True]
    (row,) = await listed(asking(house, image="debian:13"))
    assert (row["imageMatch"], row["configMatch"]) == (False, False)
    assert (await removed(now, Wanted("agent", "other")))[0] == []
    assert (await removed(now, Wanted("session", GROUP)))[0] == []
    gone, failed = await removed(now, Wanted("agent", "main"))
    assert (len(gone), failed) == (2, [])
    assert any(name.startswith("image sha256:") for name in gone)
    assert await listed(now) == []
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_a_setup_made_is_forgotten_and_made_anew(house: House) -> None:
    now = asking(house, "session")
    await house.run("true", now.config)
    assert (await removed(now, Wanted("session", "agent:main:main")))[0] == []
    assert len((await removed(now, Wanted("session", GROUP)))[0]) == 1
    assert (await removed(now, Wanted()))[0] == []
    house.box = house.made()
    await house.run("true", now.config)
    assert len(house.engine.calls("commit")) == 2


async def test_a_gateway_that_knows_the_image_makes_it_anew_too(house: House) -> None:
    now = asking(house)
    await house.run("true", now.config)
    await removed(now, Wanted())
    await house.run("true", now.config)
    assert len(house.engine.calls("commit")) == 2


async def test_an_engine_that_is_not_there_is_said(house: House) -> None:
    now = asking(house)
    house.engine.program.unlink()
    with pytest.raises(Unavailable, match="is not installed"):
        await listed(now)
    assert await listed(Asking(Config.model_validate({}), house.paths, Environment({}))) == []
