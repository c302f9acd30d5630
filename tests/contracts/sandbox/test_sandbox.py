"""What every sandbox must give, tried from inside with real programs."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from garra.builtin.sandbox.bwrap.sandbox import PERLS, QUICK, Bubblewrap
from garra.builtin.sandbox.landlock.sandbox import Landlock
from garra.core import syscalls
from garra.core.execplan import environment
from garra.domains.exec.boxes import probe_by
from garra.io.process.door import Finished, Limits, Programs, Start
from garra.sdk.sandbox import Exit, Plan, Probe, Probed, Sandbox

NO_PERL: tuple[str, ...] = ()
IMPLEMENTATIONS = [
    pytest.param(Bubblewrap, marks=[pytest.mark.needs("bwrap"), pytest.mark.needs("perl")], id="bwrap-perl"),
    pytest.param(partial(Bubblewrap, perls=NO_PERL), marks=pytest.mark.needs("bwrap"), id="bwrap-python"),
    pytest.param(
        Landlock, marks=pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's"), id="landlock"
    ),
]


class Inside:
    """Runs shell commands in a sandbox, in a workspace of its own."""

    def __init__(self, programs: Programs, sandbox: Sandbox, workspace: Path) -> None:
        self.programs, self.sandbox, self.workspace = programs, sandbox, workspace

    async def run(
        self, command: str, *, network: bool = False, closed: tuple[str, ...] = (), timeout_s: float = 10
    ) -> Finished:
        where = str(self.workspace)
        env = environment(where, {}, terminal=False)
        plan = Plan(("/bin/bash", "-c", command), where, where, env, network, closed=closed, limits=Limits().named())
        wrapped = self.sandbox.wrap(plan)
        start = Start(
            wrapped.argv,
            wrapped.cwd,
            wrapped.env,
            keep=not wrapped.closed,
            wrapper=wrapped.closed,
            limited=wrapped.limited,
            apart=wrapped.apart,
        )
        return await self.programs.run(start, timeout_s=timeout_s)

    async def says(self, command: str) -> str:
        return (await self.run(command)).output.decode()

    async def fails(self, command: str) -> bool:
        return (await self.run(command)).code != 0


@pytest.fixture
async def programs() -> AsyncIterator[Programs]:
    door = Programs()
    yield door
    await door.close()


@pytest.fixture(params=IMPLEMENTATIONS)
async def inside(request: pytest.FixtureRequest, programs: Programs, tmp_path: Path) -> Inside:
    sandbox = request.param(probe=probe_by(programs))
    found = await sandbox.available()
    if not found.ok and not os.environ.get("CI"):
        pytest.skip(found.reason)
    assert found.ok
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Inside(programs, sandbox, workspace)


async def test_the_workspace_is_at_its_own_path_and_is_ours_after(inside: Inside) -> None:
    assert await inside.says(
        "pwd; echo hi > made; cat made; mkdir d; mv made d/; chmod +x d/made; rm -r d; echo x > kept"
    ) == (f"{inside.workspace}\nhi\n")
    kept = inside.workspace / "kept"
    assert kept.read_text() == "x\n"
    assert kept.stat().st_uid == os.getuid()


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("perls", [PERLS, NO_PERL])
async def test_closed_places_are_not_there_and_stay_where_they_are(
    programs: Programs, tmp_path: Path, perls: tuple[str, ...]
) -> None:
    inside = Inside(programs, Bubblewrap(probe=probe_by(programs), perls=perls), tmp_path)
    assert (await inside.sandbox.available()).ok
    own = inside.workspace / "a" / "b" / "own"
    own.mkdir(parents=True)
    (own / "key").write_text("SECRET")
    (inside.workspace / "a" / "file").write_text("SECRET")
    closed = (f"{own}/", str(inside.workspace / "a" / "file"))
    attack = (
        "cat a/b/own/key a/file; ls -A a/b/own; echo x > a/b/own/key; echo x > a/file; rm -rf a/b/own a/file; "
        "mv a moved; mv a/b moved; mv a/b/own moved; cat moved/*/* moved/* ; echo fine > a/b/other; cat a/b/other"
    )
    ran = await inside.run(attack, closed=closed)
    assert b"SECRET" not in ran.output
    assert b"fine" in ran.output
    assert ((own / "key").read_text(), (inside.workspace / "a" / "file").read_text()) == ("SECRET", "SECRET")


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("perls", [PERLS, NO_PERL])
async def test_how_it_was_shut_in_is_not_seen_inside(
    programs: Programs, tmp_path: Path, perls: tuple[str, ...]
) -> None:
    inside = Inside(programs, Bubblewrap(probe=probe_by(programs), perls=perls), tmp_path)
    assert (await inside.sandbox.available()).ok
    said = await inside.says("tr '\\0' ' ' < /proc/1/cmdline; ls /proc/self/fd; ls -l /proc/1/fd; echo fine")
    assert "fine" in said
    assert "bind" not in said
    assert "src/garra" not in said
    assert "memfd" not in said


async def test_programs_work(inside: Inside) -> None:
    said = await inside.says(
        "python3 -c 'import json, tempfile; print(len(tempfile.mkdtemp()) > 0)'; echo a | sed s/a/b/;"
        "git init -q . && git status -s | head -1; echo done"
    )
    assert said.startswith("True\nb\n")
    assert said.endswith("done\n")


async def test_nothing_outside_is_written(inside: Inside, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for place in ("/", "/etc", "/usr", "/usr/bin", "/root", "/var/tmp", str(tmp_path), str(other), "/dev/shm/.."):
        await inside.run(f"echo x > {place}/garra-was-here")
        assert not await asyncio.to_thread(Path(f"{place}/garra-was-here").exists)
    await inside.run("cd ..; cd ..; echo x > garra-was-here; ln -s / up; echo x > up/etc/garra-was-here")
    assert not await asyncio.to_thread(Path("/etc/garra-was-here").exists)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "workspace"]


async def test_the_owners_files_are_not_read(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "garra.json").write_text("sk-known-secret")
    paths = (
        str(tmp_path / "garra.json"),
        "../garra.json",
        "/etc/shadow",
        "/etc/hostname",
        "/root/.bashrc",
        "/var/log/dpkg.log",
    )
    for path in paths:
        assert await inside.fails(f"cat {path}")
    await inside.run(f"ln -s {tmp_path}/garra.json link; ln {tmp_path}/garra.json hard")
    assert "sk-known-secret" not in await inside.says("cat link hard ../*; ls ..")


async def test_the_gateways_memory_and_environment_are_not_read(inside: Inside) -> None:
    pid = os.getpid()
    said = await inside.says(f"cat /proc/{pid}/environ /proc/{pid}/cmdline /proc/1/environ | tr '\\0' '\\n'; env")
    built = set((await inside.says("env")).splitlines())
    kept = {f"{name}={value}" for name, value in os.environ.items()} - built
    for known in (*sys.orig_argv[1:], *kept):
        assert f"{known}\n" not in said
    assert "GARRA_SHELL=exec" in said
    assert await inside.fails(f"kill -0 {pid}")
    assert await inside.fails(
        f"python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) != 0)'"
    )


async def test_no_capability_is_held_or_gained(inside: Inside) -> None:
    for command in (
        "mount -t tmpfs x .", "unshare -rn true", "chroot . /bin/true", "mknod dev c 1 5", "chown 12345 .",
        "python3 -c 'import os; os.setuid(12345)'", "nsenter -t 1 -m true", "date -s 2000-01-01",
    ):  # fmt: skip
        assert await inside.fails(command), command
    assert "nnp=1" in await inside.says(
        "python3 -c 'import ctypes; print(\"nnp=%d\" % ctypes.CDLL(None).prctl(39,0,0,0,0))'"
    )


async def test_there_is_no_network(inside: Inside) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        connect = f"echo x > /dev/tcp/127.0.0.1/{port}"
        assert await inside.fails(connect)
        assert (await inside.run(connect, network=True)).code == 0
    assert await inside.fails("python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'")


FAMILIES = """
import ctypes, socket
reached = []
for family in range(46):
    for kind in (1, 2, 3, 5):
        try:
            made = socket.socket(family, kind)
        except OSError:
            continue
        try:
            made.connect(("127.0.0.1", {port}) if family == 2 else ("::1", {port}) if family == 10 else b"")
            reached.append((family, kind))
        except (OSError, TypeError):
            pass
libc = ctypes.CDLL(None, use_errno=True)
ring = libc.syscall(425, 8, ctypes.create_string_buffer(120))
a, b = socket.socketpair()
a.send(b"own")
print("reached", reached, "ring", ring, "pair", b.recv(3).decode())
"""


@pytest.mark.req("SEC-11")
async def test_no_kind_of_socket_leads_out(inside: Inside) -> None:
    """Under Landlock alone no namespace stands in the way: the filter lets nothing be made but pairs of its own."""
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", tcp.getsockname()[1]))
        udp.setblocking(False)
        program = inside.workspace / "families.py"
        program.write_text(FAMILIES.format(port=tcp.getsockname()[1]))
        said = await inside.says("python3 families.py")
        assert "ring -1 pair own" in said
        if isinstance(inside.sandbox, Landlock):
            assert "reached []" in said
            made = "import socket; socket.socket({}, socket.SOCK_DGRAM)"
            for family in (
                "socket.AF_INET",
                "socket.AF_INET6",
                "socket.AF_UNIX",
                "socket.AF_NETLINK",
                "40",
                "38",
                "17",
            ):
                assert "Permission denied" in await inside.says(f"python3 -c '{made.format(family)}'")
        await inside.run(f"echo x > /dev/udp/127.0.0.1/{tcp.getsockname()[1]}")
        with pytest.raises(BlockingIOError):
            udp.recv(10)


async def test_sockets_of_the_machine_are_not_reached(inside: Inside, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as engine, socket.socket(socket.AF_UNIX) as abstract:
        path = tmp_path / "docker.sock"
        await asyncio.to_thread(engine.bind, str(path))
        engine.listen()
        abstract.bind("\0garra-test-socket")
        abstract.listen()
        for address in (f"{path!s}", "\\0garra-test-socket"):
            assert await inside.fails(
                f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{address}\")'"
            )


async def test_nothing_inside_outlives_the_command(inside: Inside) -> None:
    command = "setsid -f bash -c 'sleep 0.7; echo still > late'; (sleep 0.7; echo still > later) & echo started"
    assert await inside.says(command) == "started\n"
    assert (await inside.run("setsid -f bash -c 'sleep 1; echo still > late'; sleep 60", timeout_s=0.3)).code is None
    await asyncio.sleep(1.1)
    assert sorted(path.name for path in inside.workspace.iterdir() if path.name.startswith("late")) == []


async def test_files_of_the_workspace_do_not_steer_what_runs(inside: Inside) -> None:
    exits = dict.fromkeys((".bashrc", ".bash_profile", ".profile"), "exit 9")
    shadows = dict.fromkeys(("json.py", "sitecustomize.py"), "raise SystemExit(9)")
    hijack = {**exits, **shadows, ".env": "PATH=/evil\n", "ls": "#!/bin/sh\nexit 9"}
    for name, text in hijack.items():
        (inside.workspace / name).write_text(text)
        (inside.workspace / name).chmod(0o755)
    assert await inside.says(
        "ls -d / && python3 -I -c 'import json; print(json.__name__)'; echo $PATH | cut -c1-11"
    ) in ("/\njson\n/usr/local/\n")


STATE = (
    "env | sort; ulimit -a; grep -E '^(Cap|Sig[BI]|NoNew|Seccomp)' /proc/self/status; for f in /proc/self/fd/*; "
    "do [ -e $f ] && echo $f; done; echo x > /tmp/x && cat /tmp/x; echo x > /usr/x; echo $0; umask"
)


async def state(programs: Programs, box: Bubblewrap, plan: Plan) -> str:
    made = box.wrap(plan)
    start = Start(made.argv, made.cwd, made.env, wrapper=True, limited=made.limited, apart=made.apart)
    return (await programs.run(start, timeout_s=10)).output.decode()


@pytest.mark.needs("bwrap")
@pytest.mark.needs("perl")
async def test_a_command_cannot_tell_which_launcher_started_it(programs: Programs, tmp_path: Path) -> None:
    quick = Bubblewrap(probe=probe_by(programs))
    usual = Bubblewrap(probe=probe_by(programs), perls=NO_PERL)
    assert (await quick.available()).ok
    assert (await usual.available()).ok
    where, env = str(tmp_path), environment(str(tmp_path), {}, terminal=False)
    envs = (env, {**env, "LC_ALL": "C.UTF-8", "LC_CTYPE": "C"}, {**env, "LC_ALL": "", "LANG": "xx_YY", "ODD": "a\nb=ü"})
    for each in envs:
        plan = Plan(("/bin/bash", "-c", STATE), where, where, each, limits=Limits().named())
        assert "/usr/bin/perl" in quick.wrap(plan).argv
        assert "/usr/bin/perl" not in usual.wrap(plan).argv
        said = await state(programs, quick, plan)
        assert said == await state(programs, usual, plan)
        assert "NoNewPrivs:\t1\nSeccomp:\t2\n" in said
        assert "CapBnd:\t0000000000000000\n" in said
    absent = Plan(("/usr/bin/absent", "x"), where, where, env, limits=Limits().named())
    for box in (quick, usual):
        assert await state(programs, box, absent) == "launch: /usr/bin/absent: No such file or directory\n"


@pytest.mark.needs("bwrap")
@pytest.mark.needs("perl")
async def test_nothing_that_steers_perl_reaches_the_launcher(programs: Programs, tmp_path: Path) -> None:
    box = Bubblewrap(probe=probe_by(programs))
    assert (await box.available()).ok
    where = str(tmp_path)
    (tmp_path / "Evil.pm").write_text("print 'EVIL'; 1")
    env = {"PERL5OPT": "-MEvil", "PERL5LIB": where, "PATH": "/usr/bin"}
    plan = Plan(("/bin/bash", "-c", "echo $PERL5OPT; perl -e 'print 1'"), where, where, env, limits=Limits().named())
    assert "/usr/bin/perl" not in box.wrap(plan).argv
    assert await state(programs, box, plan) == "-MEvil\nEVIL1"
    assert "/usr/bin/perl" not in box.wrap(replace(plan, env={}, way_out=Exit(8080, 3))).argv


@pytest.mark.needs("bwrap")
async def test_a_perl_that_does_not_do_it_is_not_used(programs: Programs, tmp_path: Path) -> None:
    for perl in ("/usr/bin/false", str(tmp_path / "absent")):
        box = Bubblewrap(probe=probe_by(programs), perls=(perl,))
        assert (await box.available()).ok
        assert perl not in box.wrap(Plan(("/bin/true",), "/tmp", "/tmp")).argv


@pytest.mark.needs("perl")
async def test_the_quick_launcher_ends_where_it_cannot_do_what_is_asked(programs: Programs) -> None:
    calls = [f"call={name}:{number}" for name, number in syscalls.numbers(os.uname().machine).items()]
    wrong = {
        "launch: the option tmp is not known": ["tmp=/tmp/x", "--", "/bin/true"],
        "launch: the option listen is not known": [*calls, "listen=1:2", "--", "/bin/true"],
        "launch: there is no command": [*calls, "further", "--"],
        "launch: the number of prctl was not told": ["further", "--", "/bin/true"],
        "launch: NOFILE:many is no limit": [*calls, "limit=NOFILE:many", "--", "/bin/true"],
        "launch: there is no limit HOPE": [*calls, "limit=HOPE:1", "--", "/bin/true"],
        "launch: there is no seccomp filter": [*calls, "further", "read=/", "--", "/bin/true"],
        "launch: the kernel takes no seccomp filter": [*calls, "further", f"filter={'0' * 16}", "--", "/bin/true"],
    }
    for said, args in wrong.items():
        ran = await programs.run(Start(("/usr/bin/perl", "-f", QUICK, *args), "/"))
        assert (ran.code, ran.output.decode()) == (125, f"{said}\n")


@pytest.mark.needs("perl")
async def test_the_quick_launcher_alone_drops_what_it_must_and_holds_tcp_back(programs: Programs) -> None:
    machine = os.uname().machine
    calls = [f"call={name}:{number}" for name, number in syscalls.numbers(machine).items()]
    rules = ["offline", "read=/", "device=/dev/null", f"filter={syscalls.program(machine, syscalls.ORDINARY).hex()}"]
    attack = (
        "grep ^Cap /proc/self/status; echo x > /dev/null && echo null; echo x > /tmp/garra-x; "
        "(echo > /dev/tcp/127.0.0.1/9) 2>&1 | grep -o 'Permission denied' | head -1"
    )
    argv = ("/usr/bin/perl", "-f", QUICK, *calls, *rules, "--", "/bin/bash", "-c", attack)
    lines = (await programs.run(Start(argv, "/"))).output.decode().splitlines()
    assert [line.split()[1] for line in lines[:5]] == ["0" * 16] * 5
    assert lines[5:] == ["null", "/bin/bash: line 1: /tmp/garra-x: Permission denied", "Permission denied"]


class Absent:
    """A probe that never works."""

    def __init__(self, output: str = "", code: int | None = 1) -> None:
        self.tried = 0
        self.probed = Probed(code, output)

    @property
    def probe(self) -> Probe:
        async def probe(_: object) -> Probed:
            self.tried += 1
            return self.probed

        return probe


async def test_absence_is_told_with_its_remedy(tmp_path: Path) -> None:
    nowhere = await Bubblewrap(probe=Absent().probe, programs=(str(tmp_path / "bwrap"),)).available()
    assert (nowhere.ok, nowhere.reason) == (False, "bubblewrap is not installed")
    assert "apt install bubblewrap" in nowhere.remedy
    refused = await Bubblewrap(
        probe=Absent("bwrap: No permissions to create new namespace").probe, programs=("/bin/sh",)
    ).available()
    assert "user namespaces" in refused.remedy
    odd = await Bubblewrap(probe=Absent("", None).probe, programs=("/bin/sh",)).available()
    assert odd.reason == "bubblewrap cannot start here: it did not start"
    old = await Landlock(probe=Absent("landlock: this kernel has no Landlock", 125).probe).available()
    assert (old.ok, old.reason) == (False, "landlock: this kernel has no Landlock")
