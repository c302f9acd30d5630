"""Containers of Docker and Podman: a setup that runs once, what they are found by, and how they are ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.sandbox.engines import standing
from garra.builtin.sandbox.engines.engine import Docker, Podman
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.execrules import Policy
from garra.core.ids import SessionKey
from garra.domains.exec.boxes import chore_by, probe_by
from garra.domains.exec.supervisor import Supervisor
from garra.io.clock import SystemClock
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.runs import fences, fencing
from garra.runs.fences import Whom
from garra.sdk.ports import Launch, Ran
from garra.sdk.sandbox import Plan, Probed
from tests.runs.engines import FakeEngine

UNASKED = Settings(policy=Policy("full", "off"))
GROUP = "agent:main:telegram:group:-100"


class House:
    """Commands in containers of one engine."""

    def __init__(self, folder: Path, programs: Programs, tasks: Tasks, name: str) -> None:
        self.engine = FakeEngine(folder, name)
        state = folder / "state"
        (state / "workspace").mkdir(parents=True)
        self.paths, self.workspace = Paths(folder, state, state / "garra.json"), state / "workspace"
        self.programs, self.tasks, self.name = programs, tasks, name
        self.box = self.made()

    def made(self) -> Docker:
        """A new gateway's engine."""
        kind = Podman if self.name == "podman" else Docker
        programs = [str(self.engine.program)]
        return kind(
            probe=probe_by(self.programs), engine={"HOME": "/h", "SECRET": "sk-1"}, chore=chore_by(self.programs),
            programs=programs,
        )  # fmt: skip

    def config(self, scope: str = "agent", **docker: Any) -> Config:
        sandbox = {"backend": self.name, "scope": scope, "docker": docker}
        return Config.model_validate({"agents": {"defaults": {"sandbox": sandbox}}})

    async def run(self, command: str, config: Config, key: str = GROUP) -> Ran:
        names = iter(range(1, 99))
        supervisor = Supervisor(
            self.programs, [self.box], SystemClock(), self.tasks, new_id=lambda: f"job-{os.getpid()}-{next(names)}"
        )
        fence = fences.of(config, self.paths, Whom("main", key, "channel", guest=True))
        commands = supervisor.exec_for(SessionKey(key), str(self.workspace), "operator", UNASKED, fence=fence)
        return await commands.run(Launch(command), lambda _: None)

    def runs(self) -> list[list[str]]:
        return self.engine.calls("run")


@pytest.fixture(params=["docker", "podman"])
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    programs = Programs()
    async with Tasks() as tasks:
        yield House(tmp_path, programs, tasks, request.param)
        await programs.close()


@pytest.mark.req("SEC-11")
async def test_a_setup_runs_once_and_each_command_starts_from_what_it_made(house: House) -> None:
    made = house.config(setupCommand='echo set up >> "$SETUP/setup"', image="debian:12", network="bridge")
    for _ in range(2):
        ran = await house.run("echo hello", made)
        assert ran.output == "hello\n"
    assert (house.engine.folder / "setup").read_text() == "set up\n"
    first, *commands = house.runs()
    assert (len(commands), "debian:12" in first, "--read-only" in first) == (2, True, False)
    for words in commands:
        image = words[words.index("--workdir") + 3]
        assert image.startswith("garra-sbx:")
        assert {"--rm", "--read-only", "--cap-drop", "--no-healthcheck"} <= set(words)
        assert words[words.index("--entrypoint") + 1] == ""
    assert not house.engine.made("container")
    assert all("sk-1" not in str(each) for each in house.engine.environments())
    house.box = house.made()
    await house.run("true", made)
    assert len(house.runs()) == 4, "another gateway finds the image"


async def test_another_setting_is_another_image_and_scopes_have_their_own(house: House) -> None:
    for setting in ({}, {"network": "bridge"}, {"env": {"A": "b"}}):
        await house.run("true", house.config(setupCommand="true", **setting))
    await house.run("true", house.config(setupCommand="true"), "agent:main:other")
    assert len(house.engine.made("image")) == 3
    for key in (GROUP, "agent:main:other"):
        await house.run("true", house.config("session", setupCommand=["true", "true"]), key)
    assert len(house.engine.made("image")) == 5
    assert house.engine.calls("commit")[-1][-1].startswith("garra-sbx:")


async def test_a_setup_sees_the_workspace_and_changes_nothing_of_it(house: House) -> None:
    await house.run("true", house.config(setupCommand="true"))
    words = house.runs()[0]
    mounts = [words[at + 1] for at, word in enumerate(words) if word == "--mount"]
    assert mounts == [f"type=bind,source={house.workspace},target={house.workspace},readonly"]
    assert "--env" not in words


async def test_a_setup_that_fails_runs_nothing_and_leaves_nothing(house: House) -> None:
    for _ in range(2):
        with pytest.raises(ToolFailed, match=r"setupCommand ended with 3: no such package"):
            await house.run("touch made", house.config(setupCommand="echo no such package; exit 3"))
    assert not (house.workspace / "made").exists()
    assert not house.engine.made("image")
    assert not house.engine.made("container")


def test_a_setup_is_judged_before_anything_runs(tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path / "state", tmp_path / "state" / "garra.json")
    for docker, words in (({"setupCommand": "x" * 20_001}, "setupCommand"), ({"network": "host"}, "network")):
        sandbox = {"backend": "docker", "docker": docker}
        config = Config.model_validate({"agents": {"defaults": {"sandbox": sandbox}}})
        assert words in fencing.told(config, paths)["sandbox"]["fault"]


async def test_what_a_gateway_that_ended_hard_left_is_removed_with_the_first_command(house: House) -> None:
    made = house.config()
    fence = fences.of(made, house.paths, Whom("main", GROUP, "channel", guest=True))
    assert fence.container is not None
    for name, process in (("gone", 2_000_000_000), ("ours", os.getpid()), ("unknown", 0)):
        mark = {"garra.installation": fence.container.installation, "garra.process": str(process)}
        body = {"Id": name, "Name": name, "Created": "x", "State": {"Running": True}, "Config": {"Labels": mark}}
        _put(house, name, body)
    strange = {"garra.installation": "another", "garra.process": "2000000000"}
    _put(house, "strange", {"Id": "strange", "State": {}, "Config": {"Labels": strange}})
    await house.run("true", made)
    assert {each["Id"] for each in house.engine.made("container")} == {"ours", "strange"}


def _put(house: House, name: str, body: dict[str, Any]) -> None:
    import json  # noqa: PLC0415 - for this alone

    (house.engine.folder / f"container-{name}").write_text(json.dumps(body))


async def test_containers_are_told_as_the_engine_says() -> None:
    async def asked(*words: str) -> Probed:
        return Probed(0, "abc def\n" if words[0] == "ps" else answers.pop(0))

    good = (
        '[{"Id":"abc","Name":"/x","Created":"2026-01-02T03:04:05.123456789+01:00","State":{"Running":true},"Config":'
        '{"Labels":{"garra.scope":"agent:main","garra.process":"12"}}},{"Id":1},{"Id":"d","Config":{"Labels":null}}]'
    )
    answers = [good + "\nError: No such container: def", "nonsense", "[1, {}]"]
    (found,) = await standing.standing(asked, "i")
    assert (found.name, found.scope, found.running, found.process) == ("x", "agent:main", True, 12)
    assert found.created_at == 1_767_319_445_000
    assert await standing.standing(asked, "i") == await standing.standing(asked, "i") == []


async def test_two_first_commands_wait_for_one_setup(house: House) -> None:
    made = house.config(setupCommand='sleep 0.2; echo once >> "$SETUP/setup"')
    await asyncio.gather(*(house.run("true", made) for _ in range(3)))
    assert (house.engine.folder / "setup").read_text() == "once\n"


async def test_a_container_without_a_setup_needs_nothing(house: House) -> None:
    plan = Plan(("/bin/true",), "/w", "/w")
    assert await house.box.prepare(plan) is plan
