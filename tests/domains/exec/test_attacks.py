"""What an attacker inside the model's head would try, against the whole way from a tool call to the kernel."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from garra.builtin.sandbox.bwrap.sandbox import Bubblewrap
from garra.builtin.sandbox.landlock.sandbox import Landlock
from garra.core.errors import ToolFailed
from garra.domains.exec.boxes import probe_by
from garra.domains.exec.supervisor import Commands
from garra.sdk.ports import Launch
from tests.domains.exec.house import House, silent

KEY = "sk-known-secret-0123456789"


@pytest.fixture(params=[Bubblewrap, partial(Bubblewrap, perls=()), Landlock], ids=["perl", "python", "landlock"])
async def commands(request: pytest.FixtureRequest, house: House) -> AsyncIterator[Commands]:
    supervisor = house.supervisor([request.param(probe=probe_by(house.programs))])
    if not (await supervisor.boxes.choose()).sandbox and not os.environ.get("CI"):
        pytest.skip("this sandbox cannot start here")
    (house.workspace.parent / "garra.json").write_text(f'{{"apiKey": "{KEY}"}}')
    os.environ["GARRA_TEST_KEY"] = KEY
    yield house.commands(supervisor, origin="channel")
    del os.environ["GARRA_TEST_KEY"]
    await supervisor.close()


async def said(commands: Commands, command: str, **more: object) -> str:
    return (await commands.run(Launch(command, **more), silent)).output  # type: ignore[arg-type]


async def test_no_key_is_found_by_looking_everywhere(commands: Commands) -> None:
    look = "env; export -p; cat ../garra.json ../../*/*/garra.json /proc/*/environ"
    assert KEY not in await said(commands, f"{look}; grep -rs sk-known / --include=garra.json")


async def test_a_workspace_cannot_set_the_environment(commands: Commands) -> None:
    root = Path(commands.workspace)
    poison = "PATH=/evil\nLD_PRELOAD=/evil.so\nPYTHONPATH=.\nNODE_OPTIONS=--require=./x\nhttps_proxy=http://evil\nBASH_ENV=./x\n"
    for name in (".env", ".garra.env", ".bashrc", ".profile", ".bash_login", ".inputrc", "x"):
        await asyncio.to_thread((root / name).write_text, poison)
    for module in ("json.py", "sitecustomize.py", "usercustomize.py", "encodings.py", "ctypes.py", "os.py"):
        await asyncio.to_thread((root / module).write_text, "open('pwned', 'w')")
    await asyncio.to_thread((root / "bash").write_text, "#!/bin/sh\ntouch pwned")
    await asyncio.to_thread((root / "bash").chmod, 0o755)
    env = await said(commands, "env")
    for word in ("evil", "PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "proxy", "BASH_ENV"):
        assert word not in env
    assert not await asyncio.to_thread((root / "pwned").exists)


async def test_the_environment_of_a_call_cannot_hijack_it(commands: Commands) -> None:
    for name in (
        "PATH",
        "LD_PRELOAD",
        "BASH_ENV",
        "BASH_FUNC_echo%%",
        "PYTHONSTARTUP",
        "GIT_SSH_COMMAND",
        "A=B",
        "SHELLOPTS",
        "PS4",
    ):
        with pytest.raises(ToolFailed):
            await commands.run(Launch("touch pwned", env={name: "() { touch pwned; }"}), silent)
    value = "$(touch pwned); `touch pwned`\n'\"; touch pwned"
    assert await said(commands, 'printf %s "$GIVEN"', env={"GIVEN": value}) == value
    assert not await asyncio.to_thread((Path(commands.workspace) / "pwned").exists)


async def test_the_machine_is_not_reached_by_its_doors(commands: Commands) -> None:
    settings = (
        "sysrq-trigger", "sys/kernel/core_pattern", "sys/kernel/hostname", "sys/vm/swappiness",
        "sys/user/max_user_namespaces", "1/oom_score_adj", "self/uid_map", "irq/default_smp_affinity",
    )  # fmt: skip
    doors = (
        "ls /var/run/docker.sock /run/docker.sock", "cat /proc/kcore", "cat /dev/sda", "cat /dev/mem",
        "ls /sys/kernel/security", "mount --bind / .", "pivot_root . .", "crontab -l",
    )  # fmt: skip
    for door in (*doors, *(f": >> /proc/{name}" for name in settings)):
        ran = await commands.run(Launch(door), silent)
        assert ran.exit_code != 0, door


async def test_links_out_of_the_workspace_lead_nowhere(commands: Commands) -> None:
    outside = Path(commands.workspace).parent
    assert KEY not in await said(
        commands, f"ln -s {outside} out; ln -s {outside}/garra.json leaf; cat out/* leaf; cd out; cat garra.json"
    )
    with pytest.raises(ToolFailed, match="workdir"):
        await commands.run(Launch("cat garra.json", workdir="out"), silent)
    await said(
        commands, f"echo x > {outside}/new; echo x > out/new; mv leaf {outside}/moved; rm -rf {outside}/garra.json"
    )
    names = {path.name for path in outside.iterdir()}
    assert names == {"workspace", "garra.json"}


async def test_what_a_command_starts_does_not_stay(commands: Commands) -> None:
    escape = (
        "for i in 1 2 3; do (setsid nohup bash -c 'sleep 1; echo alive >> late' >/dev/null 2>&1 &); done; echo gone"
    )
    assert await said(commands, escape) == "gone\n"
    await asyncio.sleep(1.3)
    assert not await asyncio.to_thread((Path(commands.workspace) / "late").exists)


async def test_words_into_the_terminal_are_not_typed_for_us(commands: Commands) -> None:
    push = "python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'"
    assert "Error" in await said(commands, push)


async def test_files_made_inside_are_the_gateways_to_read_and_remove(commands: Commands) -> None:
    await said(commands, "umask 077; mkdir d; echo x > d/f; chmod 000 d/f; ln -s d l; chmod u+s d")
    made = Path(commands.workspace) / "d"
    facts = await asyncio.to_thread(made.stat)
    assert facts.st_uid == os.getuid()
    assert await asyncio.to_thread(lambda: sorted(path.name for path in made.iterdir())) == ["f"]
