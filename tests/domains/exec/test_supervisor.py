"""Commands in front and behind, until they end or are ended."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from garra.builtin.sandbox.bwrap.sandbox import Bubblewrap
from garra.core.errors import ToolFailed
from garra.core.execplan import Settings
from garra.core.ids import SessionKey
from garra.domains.exec.boxes import probe_by
from garra.domains.exec.planning import Host
from garra.domains.exec.supervisor import KEPT
from garra.sdk.ports import Launch
from garra.sdk.sandbox import Availability
from tests.domains.exec.house import MAIN, ON_HOST, OTHER, House, NoBox, silent

MARK = "sleep 4321"


async def marked(number: int, wanted: int = 0) -> bool:
    """Whether just `wanted` processes `sleep 4321.NUMBER` run; they get a moment."""

    def count() -> int:
        found = 0
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    found += f"sleep\x004321.{number}\x00".encode() in (folder / "cmdline").read_bytes()
                except OSError:
                    continue
        return found

    for _ in range(100):
        if await asyncio.to_thread(count) == wanted:
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.needs("bwrap")
async def test_a_command_in_its_sandbox(house: House) -> None:
    seen: list[str] = []
    ran = await house.commands(house.boxed()).run(Launch("pwd; echo $HOME; exit 3"), seen.append)
    assert (ran.status, ran.exit_code, ran.session) == ("completed", 3, None)
    assert ran.output == f"{house.workspace}\n{house.workspace}\n"
    assert ran.workdir == str(house.workspace)
    assert "".join(seen) in ran.output


@pytest.mark.req("COF-07")
@pytest.mark.needs("bwrap")
async def test_commands_run_in_the_workspace_wherever_the_gateway_was_started(house: House, tmp_path: Path) -> None:
    before = await asyncio.to_thread(Path.cwd)
    os.chdir("/")
    try:
        for settings in (Settings(), ON_HOST):
            ran = await house.commands(house.boxed(), settings).run(Launch("pwd"), silent)
            assert ran.output.strip() == str(house.workspace)
    finally:
        os.chdir(before)


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("settings", [Settings(), ON_HOST])
async def test_a_pipe_that_nobody_reads_ends_its_writer(house: House, settings: Settings) -> None:
    ran = await house.commands(house.boxed(), settings).run(
        Launch("yes | head -1; grep SigIgn /proc/self/status"), silent
    )
    first, _, ignored = ran.output.split()
    assert first == "y"
    assert not int(ignored, 16) & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


@pytest.mark.needs("bwrap")
async def test_a_folder_that_was_read_up_on_is_seen_and_not_changed(house: House, tmp_path: Path) -> None:
    kit, linked = tmp_path / "kit", tmp_path / "linked"
    (house.workspace / "own").mkdir()
    kit.mkdir()
    (kit / "go.sh").write_text("#!/bin/sh\necho went\n")
    (kit / "go.sh").chmod(0o700)
    linked.symlink_to(kit)
    seen = (str(kit), str(linked), str(house.workspace / "own"), str(tmp_path / "none"))
    line = f"{kit}/go.sh; {linked}/go.sh; touch {kit}/x || ls {tmp_path}; touch own/x && echo mine"
    ran = await house.commands(house.boxed(), Settings(seen=lambda: seen)).run(Launch(line), silent)
    assert ran.output.count("went") == 2
    assert "Read-only file system" in ran.output
    assert ran.output.splitlines()[-1] == "mine"
    assert not (kit / "x").exists()
    before = await house.commands(house.boxed()).run(Launch(f"ls {kit}"), silent)
    assert "No such file" in before.output


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("settings", [Settings(), ON_HOST])
@pytest.mark.parametrize("pty", [False, True])
async def test_a_command_ends_by_ctrl_c_wherever_the_gateway_was_begun(
    house: House, settings: Settings, *, pty: bool
) -> None:
    keys = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in keys}
    try:
        commands = house.commands(house.boxed(), settings)
        ran = await commands.run(
            Launch("grep SigIgn /proc/self/status; bash -c 'kill -INT $$; echo on'", pty=pty), silent
        )
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    words = ran.output.split()
    assert not int(words[1], 16) & sum(1 << number - 1 for number in keys)
    assert "on" not in words


async def test_on_the_host_where_the_owner_said_so(house: House) -> None:
    ran = await house.commands(house.supervisor([]), ON_HOST).run(Launch("echo $HOME $PATH; ulimit -c"), silent)
    home, path, core = ran.output.split()
    assert (home, core) == (str(house.workspace), "0")
    assert path.startswith("/usr/local/sbin")


@pytest.mark.req("TOOL-10")
async def test_a_slow_command_goes_behind_and_can_be_followed(house: House) -> None:
    commands = house.commands(house.supervisor([]), ON_HOST)
    ran = await commands.run(
        Launch(f"echo begun; while ! test -e go; do sleep 0.02; done; echo ended; {MARK}.1", yield_ms=300), silent
    )
    assert (ran.status, ran.output, ran.session) == ("running", "begun\n", "job-1")
    assert [one.session for one in commands.running()] == ["job-1"]
    assert (await commands.poll("job-1")).output == ""
    await asyncio.to_thread((house.workspace / "go").touch)
    assert (await commands.poll("job-1", 5_000)).output == "ended\n"
    assert commands.log("job-1", 0, 1) == "begun"
    assert commands.log("job-1", -2, 9) == "ended\n"
    killed = await commands.kill("job-1")
    assert killed.status == "killed"
    assert await marked(1)
    assert not house.told  # who ends it himself need not be told


@pytest.mark.req("TOOL-10")
async def test_the_hard_limit_ends_it_in_front_and_behind(house: House) -> None:
    commands = house.commands(house.supervisor([]), ON_HOST)
    ran = await commands.run(Launch(f"echo so far; {MARK}.2", timeout_s=0.5), silent)
    assert (ran.status, ran.output) == ("timeout", "so far\n")
    behind = await commands.run(Launch(f"{MARK}.2 & {MARK}.2", timeout_s=0.5, background=True), silent)
    assert behind.session
    assert (await commands.poll(behind.session, 5_000)).status == "timeout"
    assert await marked(2)
    assert [ran.status for _, ran in house.told] == ["timeout"]


@pytest.mark.req("TOOL-10")
@pytest.mark.parametrize("host", ["sandbox", "gateway"])
@pytest.mark.needs("bwrap")
async def test_stop_ends_what_is_in_front_and_leaves_what_is_behind(house: House, host: str) -> None:
    supervisor = house.boxed()
    settings = ON_HOST if host == "gateway" else Settings()
    commands = house.commands(supervisor, settings)
    behind = await commands.run(Launch(f"{MARK}.3", background=True), silent)
    front = house.tasks(commands.run(Launch(f"{MARK}.4 & setsid {MARK}.4 & {MARK}.4"), silent), "front")
    assert await marked(4, 3)
    assert await asyncio.wait_for(supervisor.stop(MAIN), 1.0) == 1
    assert (await front).status == "killed"
    assert await marked(4)
    assert await marked(3, 1)
    assert [ran.session for ran in commands.running()] == [behind.session]
    assert await asyncio.wait_for(supervisor.stop(MAIN, background=True), 1.0) == 1
    assert await marked(3)
    assert commands.running()[0].status == "killed"


@pytest.mark.needs("bwrap")
async def test_cancelling_the_call_ends_its_command(house: House) -> None:
    supervisor = house.boxed()
    commands = house.commands(supervisor)
    front = house.tasks(commands.run(Launch(f"trap '' TERM; {MARK}.5 & wait; {MARK}.5"), silent), "front")
    assert await marked(5, 1)
    front.cancel()
    with pytest.raises(asyncio.CancelledError):
        await front
    assert await marked(5)
    assert not supervisor.jobs(MAIN)


async def test_closing_ends_everything(house: House) -> None:
    supervisor = house.supervisor([])
    for key in (MAIN, OTHER):
        await house.commands(supervisor, ON_HOST, key).run(Launch(f"{MARK}.6", background=True), silent)
    assert {key: len(rans) for key, rans in supervisor.every().items()} == {MAIN: 1, OTHER: 1}
    await supervisor.close()
    assert await marked(6)


async def test_a_session_sees_its_own_commands_only(house: House) -> None:
    supervisor = house.supervisor([])
    ran = await house.commands(supervisor, ON_HOST).run(Launch("sleep 60", background=True), silent)
    assert ran.session
    other = house.commands(supervisor, ON_HOST, OTHER)
    assert not other.running()
    for reach in (other.poll(ran.session), other.kill(ran.session), other.send(ran.session, b"x")):
        with pytest.raises(ToolFailed, match="there is no command"):
            await reach
    with pytest.raises(ToolFailed, match="there is no command"):
        other.log(ran.session, 0, 1)
    assert await supervisor.stop(OTHER, background=True) == 0


async def test_talking_to_a_program(house: House) -> None:
    commands = house.commands(house.supervisor([]), ON_HOST)
    ran = await commands.run(Launch('while read -r l; do echo "got $l"; done', background=True), silent)
    assert ran.session
    said = (await commands.send(ran.session, b"one\n")).output
    while not said:
        said = (await commands.poll(ran.session, 1_000)).output
    assert said == "got one\n"
    silent_one = await commands.run(Launch("sleep 60", yield_ms=10), silent)
    assert silent_one.session
    with pytest.raises(ToolFailed, match="takes no input"):
        await commands.send(silent_one.session, b"x")
    terminal = await commands.run(
        Launch("read -r l; echo $((l * 2)); test -t 0 && stty size", pty=True, yield_ms=50), silent
    )
    assert terminal.session
    await commands.send(terminal.session, b"21\r")
    while commands.running()[0].status == "running":
        await commands.poll(terminal.session, 1_000)
    assert commands.log(terminal.session, 0, 9).split("\n")[-3:] == ["42", "40 120", ""]


async def test_who_hears_of_the_end(house: House) -> None:
    supervisor = house.supervisor([])
    told = house.commands(supervisor, ON_HOST)
    quiet = house.commands(supervisor, replace(ON_HOST, notify=False))
    for commands in (told, quiet):
        ran = await commands.run(Launch("echo bye", background=True), silent)
        assert ran.session
        while (await commands.poll(ran.session, 1_000)).status == "running":
            pass
    await asyncio.sleep(0)
    assert [(key, ran.output) for key, ran in house.told] == [(MAIN, "bye\n")]


async def test_what_ended_is_remembered_for_a_while(house: House) -> None:
    supervisor = house.supervisor([])
    commands = house.commands(supervisor, ON_HOST)
    for _ in range(4):
        ran = await commands.run(Launch("exit 0", background=True), silent)
        assert ran.session
        while (await commands.poll(ran.session, 1_000)).status == "running":
            pass
    assert len(commands.running()) == 4
    for job in list(supervisor.jobs(MAIN).values())[:3]:
        job.ended_at = -1e9
    assert [ran.session for ran in commands.running()] == ["job-4"]
    assert KEPT == 50


@pytest.mark.req("TOOL-11")
async def test_without_a_sandbox_nothing_runs(house: House) -> None:
    supervisor = house.supervisor([NoBox()])
    for settings, launch in (
        (Settings(), Launch("touch ran")),
        (Settings(host="sandbox"), Launch("touch ran")),
        (ON_HOST, Launch("touch ran", host="sandbox")),
        (Settings(), Launch("touch ran", host="gateway")),
        (Settings(), Launch("touch ran", host="node")),
        (ON_HOST, Launch("touch ran", elevated=True)),
    ):
        for origin in ("channel", "operator", "job", "subagent"):
            with pytest.raises(ToolFailed) as caught:
                await house.commands(supervisor, settings, origin=origin).run(launch, silent)
            assert caught.value.message
    with pytest.raises(ToolFailed, match=r"no box here.*To mend it: buy one.*tools\.exec\.host"):
        await house.commands(supervisor).run(Launch("touch ran"), silent)
    assert not await asyncio.to_thread((house.workspace / "ran").exists)


@pytest.mark.parametrize("answer", [True, False])
async def test_the_owner_at_the_terminal_is_asked_once(house: House, answer: bool) -> None:
    async def consent(_: SessionKey, reason: str) -> bool:
        house.asked.append(reason)
        return answer

    commands = house.commands(house.supervisor([NoBox()], consent), origin="local")
    for _ in range(2):
        if answer:
            assert (await commands.run(Launch("echo ran"), silent)).output == "ran\n"
        else:
            with pytest.raises(ToolFailed, match="buy one"):
                await commands.run(Launch("echo ran"), silent)
    assert len(house.asked) == 1
    with pytest.raises(ToolFailed):
        await house.commands(house.supervisor([NoBox()]), origin="local").run(Launch("echo"), silent)


@pytest.mark.needs("bwrap")
async def test_a_sandbox_whose_program_vanishes_refuses(house: House, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    await asyncio.to_thread(program.symlink_to, "/usr/bin/bwrap")
    supervisor = house.supervisor([Bubblewrap(probe=probe_by(house.programs), programs=(str(program),))])
    commands = house.commands(supervisor)
    assert (await commands.run(Launch("echo in"), silent)).output == "in\n"
    await asyncio.to_thread(program.unlink)
    for words in ("is gone", "bubblewrap is not installed"):
        with pytest.raises(ToolFailed, match=words):
            await commands.run(Launch("touch ran"), silent)
    assert not await asyncio.to_thread((house.workspace / "ran").exists)


async def test_folders_to_start_in(house: House, tmp_path: Path) -> None:
    await asyncio.to_thread((house.workspace / "sub").mkdir)
    await asyncio.to_thread((house.workspace / "out").symlink_to, tmp_path)
    boxed = house.commands(house.boxed())
    assert (await boxed.run(Launch("pwd", workdir="sub"), silent)).output == f"{house.workspace}/sub\n"
    for workdir in ("..", "out", "/", "~", "a\0b", "absent", str(tmp_path)):
        with pytest.raises(ToolFailed, match="workdir"):
            await boxed.run(Launch("pwd", workdir=workdir), silent)
    gone = house.supervisor([]).exec_for(MAIN, str(tmp_path / "never"), "operator", ON_HOST)
    with pytest.raises(ToolFailed, match=r"workspace .* is gone"):
        await gone.run(Launch("pwd"), silent)


@pytest.mark.req("TOOL-09")
async def test_what_steers_programs_is_refused_before_anything_runs(house: House) -> None:
    commands = house.commands(house.supervisor([]), ON_HOST)
    for name in ("PATH", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV"):
        with pytest.raises(ToolFailed, match="may not be set"):
            await commands.run(Launch("touch ran", env={name: "/evil"}), silent)
    assert (await commands.run(Launch("echo $MINE", env={"MINE": "ok"}), silent)).output == "ok\n"
    assert not await asyncio.to_thread((house.workspace / "ran").exists)


async def test_a_flood_of_output_stays_small_and_the_loop_free(house: House) -> None:
    commands = house.commands(house.supervisor([]), ON_HOST)
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    beating = house.tasks(beat(), "beat")
    ran = await commands.run(Launch("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last"), silent)
    beating.cancel()
    assert ran.truncated
    assert len(ran.output) < 250_000
    assert ran.output.startswith("first\n")
    assert ran.output.endswith("\nlast\n")
    assert beats > 1_000


async def test_a_pattern_that_never_ends_costs_a_child(house: House) -> None:
    commands = house.commands(house.supervisor([]), ON_HOST)
    hits = await commands.match("(?i)b+", [("x", b"abb\nno\r\nB\r\n"), ("y", "é b".encode())], 2)
    assert [(hit.path, hit.line, hit.text) for hit in hits] == [("x", 1, "abb"), ("x", 3, "B")]
    with pytest.raises(ToolFailed, match="no regular expression"):
        await commands.match("(", [("x", b"")], 1)
    with pytest.raises(ToolFailed, match="took more than"):
        await commands.match("(a+)+$", [("x", b"a" * 64 + b"!")], 1)


@pytest.mark.needs("bwrap")
async def test_the_gateways_own_files_are_not_there_for_commands(house: House) -> None:
    own = house.workspace / "own"
    own.mkdir()
    (own / "key").write_text("SECRET")
    supervisor = house.boxed()
    supervisor.host = Host(private=(str(own), str(own / "key"), str(house.workspace / "absent"), "/etc/passwd"))
    ran = await house.commands(supervisor).run(Launch("cat own/key; ls -A; rm -rf own; echo x > own/key"), silent)
    assert "SECRET" not in ran.output
    assert (own / "key").read_text() == "SECRET"
    assert not (house.workspace / "absent").exists()


async def test_a_sandbox_that_cannot_hide_them_is_given_no_command(house: House) -> None:
    class Poor(NoBox):
        async def available(self) -> Availability:
            return Availability(True)

    supervisor = house.supervisor([Poor()])
    own = house.workspace / "own"
    own.mkdir()
    supervisor.host = Host(private=(str(own),))
    with pytest.raises(ToolFailed, match="cannot hide it; install bubblewrap"):
        await house.commands(supervisor).run(Launch("cat own/key"), silent)
