"""Real children: what they say, how they end, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from garra.core.errors import Unavailable
from garra.io.process.child import Child, started_at
from garra.io.process.door import Limits, Programs, Start
from garra.io.process.output import Output

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
KEYS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


@pytest.fixture
async def programs() -> AsyncIterator[Programs]:
    door = Programs()
    yield door
    await door.close()


def bash(command: str, **more: object) -> Start:
    return Start(("/bin/bash", "-c", command), "/", ENV, **more)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pids: list[int]) -> bool:
    """Whether all have ended; they get a moment."""
    for _ in range(200):
        if not any([await asyncio.to_thread(alive, pid) for pid in pids]):
            return True
        await asyncio.sleep(0.01)
    return False


async def pids_of(child: Child, count: int) -> list[int]:
    assert child.stdout
    return [int(await child.stdout.line()) for _ in range(count)]


async def test_a_short_program(programs: Programs) -> None:
    finished = await programs.run(bash("echo out; echo err >&2; exit 3"))
    assert (finished.code, finished.output, finished.truncated) == (3, b"out\nerr\n", False)
    assert len(programs) == 0


async def test_input_larger_than_any_pipe(programs: Programs) -> None:
    given = os.urandom(500_000)
    finished = await programs.run(Start(("/bin/cat",), "/", ENV, stdin=True), given=given)
    assert finished.output == given


async def test_a_program_that_reads_nothing_is_no_fault(programs: Programs) -> None:
    finished = await programs.run(bash("exit 0", stdin=True), given=b"x" * 500_000)
    assert finished.code == 0


async def test_too_much_and_too_long(programs: Programs) -> None:
    finished = await programs.run(bash("head -c 3000000 /dev/zero"), limit=1_000)
    assert (len(finished.output), finished.truncated) == (1_000, True)
    assert (await programs.run(bash("sleep 60"), timeout_s=0.1)).code is None


async def test_what_cannot_be_started(programs: Programs) -> None:
    with pytest.raises(Unavailable, match="No such file"):
        await programs.start(Start(("/bin/true",), "/nowhere/at/all", ENV))
    with pytest.raises(Unavailable, match="cannot start"):
        await programs.start(Start(("/bin/echo", "a\0b"), "/", ENV))
    finished = await programs.run(Start(("/nowhere",), "/", ENV))
    assert finished.code == 126
    assert b"/nowhere: No such file" in finished.output


async def test_the_environment_is_what_is_given(programs: Programs) -> None:
    finished = await programs.run(Start(("/usr/bin/env",), "/", {"ONLY": "this"}))
    assert finished.output == b"ONLY=this\n"


async def test_limits_and_the_place_in_the_queue_when_memory_runs_out(programs: Programs) -> None:
    limits = Limits(files=77, file_bytes=1_024_000, memory=1 << 32, cpu_s=9)
    finished = await programs.run(bash("ulimit -n -f -v -t -c; cat /proc/self/oom_score_adj", limits=limits))
    words = finished.output.decode().split()
    assert words[-1] == "500"
    for wanted in ("77", "1000", "4194304", "9", "0"):
        assert wanted in words


async def test_streams_apart(programs: Programs) -> None:
    child = await programs.start(bash("echo out; echo err >&2", stderr="apart"))
    assert child.stdout
    assert child.stderr
    assert (await child.stdout.line(), await child.stderr.line()) == (b"out\n", b"err\n")
    assert await child.wait() == 0
    child.close()


async def test_a_conversation_in_lines(programs: Programs) -> None:
    child = await programs.start(bash('while read -r l; do echo "got $l"; done', stdin=True, bare=True))
    assert child.stdout
    await child.stdin.write(b"one\ntwo\n")
    assert [await child.stdout.line(), await child.stdout.line()] == [b"got one\n", b"got two\n"]
    child.stdin.close()
    assert await child.wait() == 0
    assert [line async for line in child.stdout.lines()] == []
    with pytest.raises(Unavailable, match="takes no input"):
        await child.stdin.write(b"late")
    child.close()


async def test_a_line_without_end_is_refused(programs: Programs) -> None:
    child = await programs.start(bash("head -c 400000 /dev/zero"))
    assert child.stdout
    with pytest.raises(Unavailable, match="more than 1000 bytes"):
        await child.stdout.line(1_000)
    await child.kill()
    child.close()


async def test_a_terminal_of_its_own(programs: Programs) -> None:
    finished = await programs.run(
        bash("test -t 0 && test -t 1 && stty size && echo $$ $(ps -o sid= -p $$)", terminal=(24, 80))
    )
    lines = finished.output.decode().replace("\r", "").split("\n")
    assert lines[0] == "24 80"
    assert len(set(lines[1].split())) == 1  # leader of its session


@pytest.mark.parametrize("keep", [False, True])
async def test_killing_takes_the_whole_tree(programs: Programs, keep: bool) -> None:
    command = "trap '' TERM; sleep 300 & echo $!; setsid sleep 300 & echo $!; (trap '' TERM; sleep 300) & echo $!; wait"
    child = await programs.start(bash(command, keep=keep))
    pids = await pids_of(child, 3)
    assert await child.kill(0.1) < 0
    assert await gone([child.pid, *pids])
    assert await child.kill() < 0  # once more does no harm
    child.close()


async def test_what_a_program_leaves_behind_ends_with_it(programs: Programs) -> None:
    child = await programs.start(
        bash("sleep 300 & echo $!; setsid -f sleep 300; sleep 0.1; pgrep -nx sleep", keep=True)
    )
    pids = await pids_of(child, 2)
    assert await child.wait() == 0
    assert await gone(pids)
    child.close()


async def test_the_end_is_told_as_it_was(programs: Programs) -> None:
    for keep in (False, True):
        assert (await programs.run(bash("exit 41", keep=keep))).code == 41
        assert (await programs.run(bash("kill -9 $$", keep=keep))).code == -9


async def test_a_cancelled_start_leaves_nothing(programs: Programs, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    starting = asyncio.ensure_future(programs.start(bash(f"echo $$ > {mark}; exec sleep 300")))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await asyncio.sleep(0.3)
    if mark.exists() and mark.read_text().strip():
        assert await gone([int(mark.read_text())])


async def test_closing_the_door_ends_everything() -> None:
    door = Programs()
    child = await door.start(bash("trap '' TERM; sleep 300"))
    pid = child.pid
    assert await asyncio.to_thread(started_at, pid)
    await door.close()
    assert await gone([pid])
    assert await asyncio.to_thread(started_at, pid) is None
    child.close()


@pytest.mark.parametrize("keep", ["False", "True"])
async def test_children_do_not_outlive_a_killed_gateway(programs: Programs, keep: str) -> None:
    script = f"""
import asyncio
from garra.io.process.door import Programs, Start
async def main():
    command = "sleep 300 & echo $!; echo $$; wait"
    child = await Programs().start(Start(("/bin/bash", "-c", command), "/", {{}}, keep={keep}))
    for _ in range(2):
        print((await child.stdout.line()).decode().strip(), flush=True)
    await asyncio.sleep(300)
asyncio.run(main())
"""
    gateway = await programs.start(Start((sys.executable, "-c", script), "/", ENV, bare=True))
    pids = await pids_of(gateway, 2)
    os.kill(gateway.pid, signal.SIGKILL)
    assert await gateway.wait() == -9
    assert await gone(pids[1:] if keep == "False" else pids)
    os.kill(pids[0], signal.SIGKILL) if alive(pids[0]) else None
    gateway.close()


def test_output_keeps_beginning_and_end() -> None:
    output = Output(head=4, tail=4)
    for piece in (b"ab", b"cdef", b"ghij"):
        output.append(piece)
    assert (output.total, output.missing) == (10, 2)
    assert output.text() == "abcd\n… 2 bytes left out …\nghij"
    assert output.last(2) == "ij"
    assert output.since(8) == "ij"
    assert output.since(5) == "… 1 bytes left out …\nghij"
    assert output.since(2) == "cd\n… 2 bytes left out …\nghij"


def test_output_that_all_fits() -> None:
    output = Output(head=4, tail=4)
    output.append(b"abcdef")
    assert (output.text(), output.since(0), output.since(4), output.last(3), output.last(99)) == (
        "abcdef", "abcdef", "ef", "def", "abcdef",
    )  # fmt: skip


def test_output_never_shows_half_a_character() -> None:
    output = Output(head=5, tail=5)
    output.append("é漢é漢é漢é".encode())
    assert "\ufffd" not in output.text()
    assert "\ufffd" not in output.last(2)


@pytest.fixture
def deaf() -> Iterator[None]:
    """We ignore the keys of the terminal and its end, as what is started behind a shell or by nohup does."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in KEYS}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.mark.usefixtures("deaf")
@pytest.mark.parametrize("keep", [True, False])
async def test_who_ignores_ctrl_c_does_not_hand_that_down(programs: Programs, *, keep: bool) -> None:
    child = await programs.start(bash("echo there; sleep 60", terminal=(40, 120), stdin=True, keep=keep))
    assert child.stdout
    assert b"there" in await child.stdout.line()
    await child.stdin.write(b"\x03")
    assert await asyncio.wait_for(child.wait(), 15) == -signal.SIGINT
    child.close()
    done = await programs.run(Start(("/bin/grep", "SigIgn", "/proc/self/status"), "/", ENV, keep=keep))
    assert not int(done.output.split()[1], 16) & sum(1 << number - 1 for number in KEYS)
