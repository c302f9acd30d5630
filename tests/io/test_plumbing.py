"""Several programs as one child, joined as a shell joins them; each the very file it was."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from garra.io.process.door import Programs, Start
from garra.io.process.plumbing import Program, identity, line

ENV = {"PATH": "/nowhere", "LANG": "C.UTF-8"}


@pytest.fixture
async def programs() -> AsyncIterator[Programs]:
    door = Programs()
    yield door
    await door.close()


def program(text: str, joint: str = ";", env: Sequence[str] = (), sent: Sequence[str] = ()) -> Program:
    name, *arguments = text.split(" ")
    path = name if "/" in name else f"/usr/bin/{name}"
    return joint, identity(path), path, list(env), list(sent), [path, *arguments]


async def run(door: Programs, *parts: Program) -> tuple[int | None, str]:
    argv = await asyncio.to_thread(line, parts)
    done = await door.run(Start(argv, "/", ENV))
    return done.code, done.output.decode()


@pytest.mark.parametrize(
    ("parts", "code", "output"),
    [
        ([program("echo a")], 0, "a\n"),
        ([program("echo a", "|"), program("cat", "|"), program("wc -l")], 0, "1\n"),
        ([program("false", "&&"), program("echo no", "||"), program("echo yes")], 0, "yes\n"),
        ([program("true", "||"), program("echo no", "&&"), program("echo yes")], 0, "yes\n"),
        ([program("false", "&&"), program("echo no")], 1, ""),
        ([program("false"), program("echo on")], 0, "on\n"),
        ([program("echo a", "|"), program("false", "||"), program("echo b", "|"), program("cat")], 0, "b\n"),
        ([program("false", "|"), program("true")], 0, ""),
        ([program("yes", "|"), program("head -1")], 0, "y\n"),
        ([program("ls /nosuch", sent=["2>/dev/null"])], 2, ""),
        ([program("ls /nosuch", "|", sent=["2>&1"]), program("wc -l")], 0, "1\n"),
        ([program("ls /nosuch", sent=["1>/dev/null", "2>&1"])], 2, ""),
        ([program("cat", sent=["0>/dev/null"])], 0, ""),
        ([program("env", env=["A=1 2", "B=x=y"])], 0, "PATH=/nowhere\nLANG=C.UTF-8\nA=1 2\nB=x=y\n"),
    ],
)
async def test_they_are_joined_as_a_shell_joins_them(
    programs: Programs, parts: list[Program], code: int, output: str
) -> None:
    assert await run(programs, *parts) == (code, output)


async def test_one_that_was_killed_is_told_as_a_shell_tells_it(programs: Programs, tmp_path: Path) -> None:
    script = tmp_path / "end"
    await asyncio.to_thread(script.write_text, "#!/bin/sh\nkill -9 $$\n")
    await asyncio.to_thread(script.chmod, 0o755)
    end = await asyncio.to_thread(program, str(script))
    assert await run(programs, end) == (137, "")


async def test_another_file_at_its_place_is_not_run(programs: Programs, tmp_path: Path) -> None:
    script = tmp_path / "tool"
    await asyncio.to_thread(script.write_text, "#!/bin/sh\necho good\n")
    await asyncio.to_thread(script.chmod, 0o755)
    judged, then = await asyncio.to_thread(lambda: (program(str(script), "&&"), program("echo on")))
    assert await run(programs, judged, then) == (0, "good\non\n")
    await asyncio.to_thread(script.write_text, "#!/bin/sh\necho evil\n")
    code, output = await run(programs, judged, then)
    assert (code, output) == (126, f"{script}: it is not the file it was when it was judged\n")
    done = await programs.run(Start((str(script),), "/", ENV, same=judged[1]))
    assert (done.code, done.output.decode()) == (126, output)
    done = await programs.run(Start((str(script),), "/", ENV, same=await asyncio.to_thread(identity, str(script))))
    assert (done.code, done.output) == (0, b"evil\n")


async def test_what_cannot_be_run_says_so(programs: Programs, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    await asyncio.to_thread(plain.write_text, "x")
    file = await asyncio.to_thread(program, str(plain))
    assert await run(programs, file) == (126, f"{plain}: Permission denied\n")
    gone: Program = (";", "", str(tmp_path / "gone"), [], [], ["gone"])
    assert await run(programs, gone) == (127, f"{tmp_path / 'gone'}: No such file or directory\n")


async def test_a_command_gets_the_signals_as_they_usually_are(programs: Programs) -> None:
    done = await programs.run(Start(("/bin/grep", "SigIgn", "/proc/self/status"), "/", ENV))
    ignored = int(done.output.split()[1], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1), "which Python itself ignores"
