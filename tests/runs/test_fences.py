"""The fence of a session, from the configuration to the argv that is started."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.sandbox.bwrap.sandbox import Bubblewrap
from garra.builtin.sandbox.engines.engine import Docker, Podman
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.containers import Container
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.execrules import Policy
from garra.core.fence import Fence
from garra.core.ids import SessionKey
from garra.domains.exec import fenced
from garra.domains.exec.boxes import probe_by
from garra.domains.exec.supervisor import Supervisor
from garra.io.clock import SystemClock
from garra.io.files.root import Root
from garra.io.files.sealed import Sealed
from garra.io.process.door import Programs
from garra.io.tasks import Tasks
from garra.runs import fences
from garra.runs.fences import Whom
from garra.sdk.ports import Launch, Ran
from garra.sdk.sandbox import Plan, Probed
from garra.sdk.tool import Origin

UNASKED = Settings(policy=Policy("full", "off"))
MAIN, GROUP = "agent:main:main", "agent:main:telegram:group:-100"
FAKE = """#!{python} -IS
import json, os, sys
with open({record!r}, 'a') as file:
    file.write(json.dumps([sys.argv[1:], dict(os.environ)]) + chr(10))
if sys.argv[1] == 'run':
    os.chdir(sys.argv[sys.argv.index('--workdir') + 1])
    argv = sys.argv[sys.argv.index('--') + 2:]
    os.execv(argv[0], argv)
"""


def config(**sandbox: Any) -> Config:
    return Config.model_validate({"agents": {"defaults": {"sandbox": sandbox}}})


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    state = tmp_path / "state"
    (state / "workspace").mkdir(parents=True)
    return Paths(tmp_path, state, state / "garra.json")


def fence(made: Config, paths: Paths, key: str = MAIN, origin: Origin = "operator", *, guest: bool = False) -> Fence:
    return fences.of(made, paths, Whom("main", key, origin, guest))


def fault(made: Fence) -> str:
    """Why nothing runs within this fence; empty where something does."""
    return made.fault or next(fenced.faults(made), "")


class Engine:
    """A program that says it is `docker`: it notes how it was called, and runs what it is asked to run."""

    def __init__(self, folder: Path, programs: Programs, tasks: Tasks, name: str = "docker") -> None:
        self.record = folder / "calls"
        self.program = folder / name
        self.program.write_text(FAKE.format(python=sys.executable, record=str(self.record)))
        self.program.chmod(0o755)
        kind = Podman if name == "podman" else Docker
        probe = probe_by(programs)
        env = {"HOME": "/home/owner", "DOCKER_HOST": "unix:///x.sock", "SECRET": "sk-1", "LD_PRELOAD": "x"}
        self.box = kind(probe=probe, engine=env, programs=[str(self.program)])
        self.supervisor = Supervisor(
            programs, [Bubblewrap(probe=probe), self.box], SystemClock(), tasks, new_id=lambda: "job-1"
        )

    async def run(self, command: str, key: str, workspace: Path, shut: Fence) -> Ran:
        commands = self.supervisor.exec_for(SessionKey(key), str(workspace), "operator", UNASKED, fence=shut)
        return await commands.run(Launch(command), lambda _: None)

    def calls(self) -> list[tuple[list[str], dict[str, str]]]:
        return [tuple(json.loads(line)) for line in self.record.read_text().splitlines()]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    programs = Programs()
    async with Tasks() as tasks:
        yield Engine(tmp_path, programs, tasks)
        await programs.close()


@pytest.mark.req("SEC-11")
async def test_a_group_runs_in_a_container_and_the_owners_own_session_on_the_machine(
    engine: Engine, paths: Paths
) -> None:
    made = config(mode="non-main", backend="docker", docker={"image": "debian:12"})
    workspace = paths.state / "workspace"
    ran = await engine.run("echo shut in; pwd", GROUP, workspace, fence(made, paths, GROUP, "channel", guest=True))
    assert ran.output == f"shut in\n{workspace}\n"
    calls = engine.calls()
    argv = next(argv for argv, _ in calls if argv[0] == "run")
    assert argv[-4:] == ["debian:12", "/bin/bash", "-c", "echo shut in; pwd"]
    assert argv[argv.index("debian:12") - 1] == "--"
    line = " ".join(argv)
    for flag in (
        "--cap-drop ALL", "--security-opt no-new-privileges", "--read-only", "--network none", "--pids-limit 256",
        "--rm", "--init", "--pull never", "--tmpfs /tmp", f"--user {os.getuid()}:{os.getgid()}",
        f"--mount type=bind,source={workspace},target={workspace}",
    ):  # fmt: skip
        assert f"{flag} " in line, flag
    assert "-v" not in argv
    assert "--privileged" not in argv
    assert calls[-1][0] == ["rm", "--force", "--", "garra-sbx-job-1"]
    for _, env in calls:
        assert env.get("HOME") == "/home/owner"
        assert not {"SECRET", "LD_PRELOAD"} & set(env)
    engine.record.unlink()
    own = fence(made, paths, MAIN)
    assert not own.shut_in
    assert (await engine.run("cat /proc/self/status | grep -c Seccomp:", MAIN, workspace, own)).output == "1\n"
    assert not engine.record.exists()


@pytest.mark.req("SEC-11")
def test_modes_by_kind_of_session(paths: Paths) -> None:
    usual = fence(config(), paths)
    assert (usual.shut_in, usual.access) == (True, "rw")
    partly = config(mode="non-main")
    kinds: list[tuple[str, Origin, bool, bool]] = [
        (MAIN, "operator", False, False),
        (MAIN, "local", False, False),
        (MAIN, "channel", False, False),
        (MAIN, "channel", True, True),
        (MAIN, "job", False, True),
        (MAIN, "subagent", False, True),
        (GROUP, "channel", True, True),
        ("agent:main:subagent:1", "subagent", False, True),
        ("agent:main:telegram:direct:7", "channel", False, True),
        ("agent:main:dashboard:1", "operator", False, True),
        ("cron:1", "job", False, True),
    ]
    for key, origin, guest, shut in kinds:
        assert fence(partly, paths, key, origin, guest=guest).shut_in is shut, (key, origin)
    assert not fence(config(mode="off"), paths, GROUP, "channel", guest=True).shut_in


def test_an_agents_own_settings_win(paths: Paths) -> None:
    made = Config.model_validate(
        {
            "agents": {
                "defaults": {
                    "sandbox": {"mode": "off", "backend": "docker", "egress": {"allow": ["a.org", "no host"]}}
                },
                "list": [
                    {"id": "main", "sandbox": {"mode": "all", "egress": {"allow": ["b.org"], "ask": "off"}}},
                    {"id": "other"},
                ],
            }
        }
    )
    main, other = fence(made, paths), fences.of(made, paths, Whom("other", "agent:other:main", "operator"))
    assert (main.shut_in, other.shut_in) == (True, False)
    assert ([way.host for way in main.ways.listed], main.ways.asks) == (["b.org"], False)
    assert ([way.host for way in other.ways.listed], other.ways.asks) == (["a.org"], True)
    assert fences.mode(made, "main") == "all"


def test_container_settings_are_read_and_judged(paths: Paths) -> None:
    docker = {
        "image": "x:1", "memory": "1g", "memorySwap": 2, "cpus": 1.5,
        "ulimits": {"nofile": {"soft": 1, "hard": 2}, "nproc": 9},
        "binds": [f"{paths.state}/workspace/data:/data:rw"], "env": {"A": "b"},
    }  # fmt: skip
    made = fence(config(backend="podman", docker=docker), paths)
    assert fault(made) == ""
    container = made.container
    assert container is not None
    assert (container.memory, container.memory_swap, container.cpus) == ("1g", "2", "1.5")
    assert container.ulimits == ("nofile=1:2", "nproc=9")
    assert [(bind.target, bind.writable) for bind in made.binds] == [("/data", True)]
    for bad in (
        {"binds": ["/etc:/x"]}, {"binds": ["nonsense"]}, {"binds": ["/var/run/docker.sock:/s"]}, {"network": "host"},
        {"network": "container:a"}, {"binds": [f"{paths.state}:/x"], "dangerouslyAllowExternalBindSources": True},
        {"binds": ["/mnt:/x"]},
    ):  # fmt: skip
        assert fault(fence(config(backend="docker", docker=bad), paths)), bad


def test_a_link_to_a_closed_place_is_seen_through(paths: Paths) -> None:
    link = paths.state / "workspace" / "link"
    link.symlink_to("/etc")
    assert "/etc" in fault(fence(config(docker={"binds": [f"{link}:/x"]}), paths))


def test_reading_without_writing(paths: Paths) -> None:
    whom = Whom("main", GROUP, "channel", guest=True)
    assert fences.read_only(config(workspaceAccess="ro"), whom)
    assert not fences.read_only(config(), whom)
    assert not fences.read_only(config(workspaceAccess="ro", mode="off"), whom)
    root = paths.state / "workspace"
    (root / "file").write_text("text")
    files = Sealed(Root(str(root)), "it is not to be changed")
    assert files.read("file", 10) == b"text"
    assert files.read_range("file", 1, 2) == (b"ex", 4)
    assert [found.path for found in files.entries("")] == [found.path for found in files.walk("", 9)] == ["file"]
    assert files.stat("file") is not None
    for change in (partial(files.write, "x", b""), partial(files.remove, "file"), partial(files.rename, "file", "x")):
        with pytest.raises(ToolFailed, match="not to be changed"):
            change()


def test_a_folder_apart(paths: Paths) -> None:
    def folder(made: Config, key: str = GROUP, agent: str = "main") -> Path | None:
        return fences.folder(made, paths, Whom(agent, key, "channel", guest=True))

    assert folder(config()) is None
    assert folder(config(workspaceAccess="ro")) is None
    assert folder(config(workspaceAccess="none", mode="off")) is None
    by_agent, by_session = config(workspaceAccess="none"), config(workspaceAccess="none", scope="session")
    assert folder(by_agent) == folder(by_agent, "agent:main:other")
    assert folder(by_session) != folder(by_session, "agent:main:other")
    found = folder(config(workspaceAccess="none", scope="shared", workspaceRoot="~/boxes"))
    assert found == paths.home / "boxes" / "shared"


async def test_what_is_asked_for_by_name_is_used_or_nothing(engine: Engine, paths: Paths) -> None:
    workspace = paths.state / "workspace"
    for backend in ("ssh", "podman", "--privileged"):
        with pytest.raises(ToolFailed, match="No command was run"):
            await engine.run("true", GROUP, workspace, fence(config(backend=backend), paths))
    engine.program.unlink()
    engine.supervisor.boxes.forget()
    with pytest.raises(ToolFailed, match="docker is not installed"):
        await engine.run("true", GROUP, workspace, fence(config(backend="docker"), paths))


async def test_an_engine_that_does_not_answer_is_told() -> None:
    async def probe(_: object) -> Probed:
        return Probed(1, "Cannot connect to the Docker daemon\n")

    found = await Docker(probe=probe, engine={}, programs=["/bin/sh"]).available()
    assert (found.ok, found.reason) == (False, "docker: Cannot connect to the Docker daemon")
    assert not (await Podman(probe=probe, engine={}, programs=["/nowhere/podman"]).available()).ok


async def test_names_that_look_like_options_stay_names(engine: Engine) -> None:
    odd = '/srv/a,b"c;$(x) --privileged'
    container = Container(image="img", env={"X": "--privileged"})
    plan = Plan(("/bin/sh", "-c", "true"), odd, odd, {"HOME": odd}, container=container, terminal=True, read_only=True)
    argv = engine.box.wrap(plan).argv
    assert '"source=/srv/a,b""c;$(x) --privileged"' in argv[argv.index("--mount") + 1]
    assert argv[argv.index("--mount") + 1].endswith(",readonly")
    assert "--tty" in argv
    assert "--privileged" not in argv
    assert argv[argv.index("--") + 1] == "img"
