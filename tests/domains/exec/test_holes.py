"""The sandbox attacked from inside: what security lists name as ways out, each tried with a real program."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from garra.builtin.sandbox.bwrap.sandbox import PERLS, USUAL, Bubblewrap
from garra.builtin.sandbox.landlock.sandbox import Landlock
from garra.core.containers import Bind, Ground
from garra.core.errors import ToolFailed
from garra.core.fence import Fence
from garra.domains.exec.boxes import probe_by
from garra.domains.exec.supervisor import Commands
from garra.io.process.door import Limits, Start
from garra.sdk.ports import Launch, Ran
from garra.sdk.sandbox import Plan
from tests.domains.exec.house import House, silent

CALL = "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(%s) == -1)'"
REFUSED_CALLS = {
    "ptrace": "101, 0, 0, 0, 0", "bpf": "321, 0, 0, 0", "perf_event_open": "298, 0, 0, 0, 0, 0", "keyctl": "250, 0, 0",
    "add_key": '248, b"user", b"x", b"y", 1, -2', "io_uring_setup": '425, 1, b"\\0" * 120', "mount": "165, 0, 0, 0, 0",
    "unshare": "272, 0x10000000", "setns": "308, 0, 0", "kexec_load": "246, 0, 0, 0, 0", "userfaultfd": "323, 1",
    "pivot_root": '155, b".", b"."', "init_module": '175, 0, 0, b""', "personality": "135, 0x0040000",
    "process_vm_readv": "310, 1, 0, 0, 0, 0, 0", "open_by_handle_at": "304, 0, 0, 0", "clone3": '435, b"\\0" * 88, 88',
}  # fmt: skip


LAUNCHERS = pytest.mark.parametrize("perls", [PERLS, ()], ids=["perl", "python"])


@pytest.fixture(params=[Bubblewrap, partial(Bubblewrap, perls=()), Landlock], ids=["perl", "python", "landlock"])
async def commands(request: pytest.FixtureRequest, house: House) -> AsyncIterator[Commands]:
    supervisor = house.supervisor([request.param(probe=probe_by(house.programs))])
    if not (await supervisor.boxes.choose()).sandbox and not os.environ.get("CI"):
        pytest.skip("this sandbox cannot start here")
    yield house.commands(supervisor, origin="channel")
    await supervisor.close()


async def ran(commands: Commands, command: str) -> Ran:
    return await commands.run(Launch(command), silent)


async def test_calls_that_lead_out_of_a_sandbox_are_refused(commands: Commands) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the numbers are those of x86_64")
    for name, call in REFUSED_CALLS.items():
        assert (await ran(commands, CALL % call)).exit_code == 1, name
    status = (await ran(commands, "cat /proc/self/status || true")).output
    assert "NoNewPrivs:\t1" in status or "Permission denied" in status
    assert "Seccomp:\t2" in status or "Permission denied" in status


async def test_sockets_that_no_namespace_holds_are_refused(commands: Commands) -> None:
    for family in ("AF_VSOCK", "AF_ALG", "AF_PACKET", "AF_BLUETOOTH"):
        made = await ran(commands, f"python3 -c 'import socket; socket.socket(socket.{family}, socket.SOCK_RAW)'")
        assert made.exit_code == 1, family
    pair = "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'"
    assert (await ran(commands, pair)).output == "b'x'\n"


async def test_another_sessions_folder_is_not_seen(commands: Commands) -> None:
    other = Path(commands.workspace).parent / "workspace-other"
    await asyncio.to_thread(other.mkdir)
    await asyncio.to_thread((other / "note").write_text, "THEIRS")
    for attack in ("cat ../workspace-other/note", "cp -r ../workspace-other .", f"ln {other}/note here; cat here"):
        assert "THEIRS" not in (await ran(commands, attack)).output
    await ran(commands, "echo mine > ../workspace-other/note; mv ../workspace-other x; rm -rf ../workspace-other")
    assert await asyncio.to_thread((other / "note").read_text) == "THEIRS"


async def test_other_processes_are_not_reached(commands: Commands) -> None:
    pid = os.getpid()
    attacks = (
        f"cat /proc/{pid}/root/etc/hostname", f"ls /proc/{pid}/fd/", f"cat /proc/{pid}/maps", f"kill -9 {pid}",
        f"echo x > /proc/{pid}/comm", f"cat /proc/{pid}/cwd/pyproject.toml",
    )  # fmt: skip
    for attack in attacks:
        assert (await ran(commands, attack)).exit_code != 0, attack


async def test_nobody_outside_is_signalled(commands: Commands, house: House) -> None:
    bystander = await house.programs.start(Start(("/bin/sleep", "60"), "/"))
    await ran(commands, f"kill -9 {bystander.pid}; kill -9 -{bystander.pid}; killall -9 sleep; kill -9 -1")
    assert (await ran(commands, CALL % "62, -1, 9")).exit_code == 1
    assert bystander.code is None
    await bystander.kill()


async def test_an_abstract_socket_of_the_machine_is_not_reached(commands: Commands) -> None:
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0garra-hole-{os.getpid()}")
        abstract.listen()
        talk = f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0garra-hole-{os.getpid()}\")'"
        assert (await ran(commands, talk)).exit_code == 1


async def test_no_words_are_put_into_a_terminal(commands: Commands) -> None:
    push = "python3 -c 'import fcntl; fcntl.ioctl(0, %s, b\"x\")'"
    for request in ("0x5412", "0x541C"):
        pushed = await commands.run(Launch(push % request, pty=True), silent)
        assert "PermissionError" in pushed.output
    assert "0" in (await commands.run(Launch("tty; stty size", pty=True), silent)).output


async def test_files_and_descriptors_have_limits(commands: Commands) -> None:
    limits = (await ran(commands, "ulimit -n; ulimit -u; ulimit -f; ulimit -c; ulimit -Hn")).output.split()
    assert limits == ["4096", "4096", str((8 << 30) // 1024), "0", "4096"]
    assert (await ran(commands, "ulimit -n 8192")).exit_code != 0
    count = (
        "import os\nfor n in range(3, 1024):\n    try:\n        print(os.fstat(n))\n    except OSError:\n        pass"
    )
    assert (await ran(commands, f"python3 -c '{count}'")).output == ""


@pytest.mark.needs("bwrap")
@LAUNCHERS
async def test_a_fork_bomb_is_bounded(house: House, perls: tuple[str, ...]) -> None:
    box = Bubblewrap(probe=probe_by(house.programs), perls=perls)
    assert (await box.available()).ok
    limits = Limits(processes=40)
    where = str(house.workspace)

    def made(command: str) -> Start:
        plan = Plan(("/bin/bash", "-c", command), where, where, {"PATH": "/usr/bin"}, limits=limits.named())
        wrapped = box.wrap(plan)
        return Start(wrapped.argv, "/", wrapped.env, limits=limits, limited=wrapped.limited)

    if os.geteuid() == 0:  # then a group counts, of this process's own commands alone
        said = (await house.programs.run(Start(("/bin/cat", "/proc/self/cgroup"), "/"))).output.decode().split()
        groups = [line.rpartition("/")[2] for line in said if "pids:/garra-" in line]
        if not groups:
            pytest.skip("the kernel does not count the processes of root, and no group can be made here")
        await asyncio.to_thread(Path("/sys/fs/cgroup/pids", groups[0], "pids.max").write_text, "40")
    ran = await house.programs.run(made("for i in $(seq 200); do sleep 5 & done 2>/dev/null; jobs -r | wc -l"))
    counted = [int(line) for line in ran.output.split() if line.isdigit()]
    assert not counted or counted[-1] < 45, ran


async def test_a_removed_sandbox_runs_nothing(house: House, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    real = next((path for path in USUAL if os.access(path, os.X_OK)), None)
    if real is None:
        pytest.skip("bubblewrap is not installed")
    program.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    program.chmod(0o755)
    supervisor = house.supervisor([Bubblewrap(probe=probe_by(house.programs), programs=[str(program)])])
    commands = house.commands(supervisor, origin="channel")
    assert (await ran(commands, "echo in")).output == "in\n"
    program.unlink()
    for _ in range(2):
        with pytest.raises(ToolFailed, match="No command was run"):
            await ran(commands, "touch pwned")
    assert not (house.workspace / "pwned").exists()


@pytest.mark.needs("bwrap")
@LAUNCHERS
async def test_a_workspace_to_read_only_is_not_changed_and_a_folder_beside_it_is(
    house: House, tmp_path: Path, perls: tuple[str, ...]
) -> None:
    beside, fixed = tmp_path / "beside", tmp_path / "fixed"
    for folder in (beside, fixed):
        folder.mkdir()
    places = [house.workspace / "file", fixed / "file", beside / "file"]
    for place in places:
        place.write_text("before")
    binds = (Bind(str(beside), "/beside", writable=True), Bind(str(fixed), "/fixed"))
    fence = Fence(access="ro", binds=binds, ground=Ground("/nowhere", external=True))
    commands = replace(house.commands(house.boxed(perls)), fence=fence)
    attack = "for f in file new ../x /fixed/file /beside/file; do echo after > $f; done 2>/dev/null"
    assert (await ran(commands, f"echo t > /tmp/t; {attack}; cat file /tmp/t")).output == "beforet\n"
    assert [place.read_text() for place in places] == ["before", "before", "after\n"]
    assert not (house.workspace / "new").exists()


@pytest.mark.needs("bwrap")
@LAUNCHERS
async def test_landlock_holds_where_bubblewrap_would_let_through(house: House, perls: tuple[str, ...]) -> None:
    box = Bubblewrap(probe=probe_by(house.programs), perls=perls)
    assert (await box.available()).ok
    where = str(house.workspace)
    plan = Plan(("/bin/sh", "-c", "echo x > file"), where, where, {}, limits=Limits().named())
    argv = box.wrap(plan).argv
    if not box.opens:
        pytest.skip("our Python does not run inside")

    async def code(argv: tuple[str, ...]) -> int | None:
        return (await house.programs.run(Start(argv, "/", limited=True))).code

    assert await code(argv) == 0
    assert await code(tuple(word for word in argv if not word.startswith("write="))) == 2


async def test_a_background_command_ends_with_its_session(commands: Commands, house: House) -> None:
    escape = "setsid -f bash -c 'while sleep 0.2; do echo alive >> late; done'; sleep 60"
    await commands.run(Launch(escape, background=True), silent)
    late = house.workspace / "late"
    await asyncio.sleep(1.0)
    assert await asyncio.to_thread(late.exists)
    assert await commands.supervisor.stop(commands.session_key, background=True) == 1
    size = (await asyncio.to_thread(late.stat)).st_size
    await asyncio.sleep(0.6)
    assert (await asyncio.to_thread(late.stat)).st_size == size
