"""Starts children. Nothing else in Garra may."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from pathlib import Path
from typing import IO, Literal

from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.io.process import cgroup
from garra.io.process.child import Born, Child, kill_group

STUB = str(Path(__file__).with_name("stub.py"))
HOLD = "GARRA_HOLD"
"""The variable that names the descriptor over which a program inside is let go."""
_CREDENTIALS = struct.Struct("3i")
PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: the stub needs nothing of a virtual environment, whose link each child had to follow."""
LINUX = sys.platform == "linux"


@frozen
class Limits:
    """What one child may use. `memory` bounds address space, which many runtimes reserve without using: off."""

    files: int = 4_096
    processes: int = 4_096
    file_bytes: int = 8 << 30
    memory: int | None = None
    cpu_s: int | None = None

    def named(self) -> dict[str, int]:
        """By the names of `resource`, without RLIMIT_."""
        named = {
            "CORE": 0,
            "NOFILE": self.files,
            "NPROC": self.processes,
            "FSIZE": self.file_bytes,
            "AS": self.memory,
            "CPU": self.cpu_s,
        }
        return {name: value for name, value in named.items() if value is not None}

    def options(self) -> list[str]:
        return [f"limit={name}:{value}" for name, value in self.named().items()]


@frozen
class Start:
    """A program to start. `argv[0]` is an absolute path; `env` is all it gets.

    `stderr` merges into the output, is dropped, or comes apart. `terminal` (rows, columns) gives it a terminal of its
    own instead of pipes. `keep` has everything it started ended with it, even what left its group. `wrapper` says that
    the program proper stands below one that sees to that itself, and that dies with us. `bare` starts a program of our
    own without limits. `limited` starts a wrapper that has the limits put on further inside, and asks there to be let
    go (see `HOLD`): without our stub, which costs as much as the wrapper. It inherits the descriptors `fds`, by their
    numbers. So many arguments as `apart` says are handed to it over a descriptor (`--args FD`), where nobody sees them.
    `same` is the identity of the file at `argv[0]` (`identity`): no other is run.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bool = False
    stderr: Literal["merge", "drop", "apart"] = "merge"
    terminal: tuple[int, int] | None = None
    limits: Limits = Limits()
    keep: bool = False
    wrapper: bool = False
    bare: bool = False
    limited: bool = False
    fds: tuple[int, ...] = ()
    same: str = ""
    apart: int = 0


@frozen
class Finished:
    """How a short program ended. `code` None: it was out of time."""

    code: int | None
    output: bytes
    truncated: bool = False


def command(start: Start) -> list[str]:
    """The argv, with our stub before it where that has something to do. Blocks."""
    if start.limited and not start.terminal:
        return list(start.argv)
    options = [f"born={os.getpid()}" if start.wrapper else f"parent={os.getpid()}", "oom=500"]
    if not (start.bare or start.limited):
        options += start.limits.options()
    if start.terminal:
        options.append("tty")
    if "LC_CTYPE" not in start.env:
        options.append("nolocale")
    if start.same:
        options.append(f"same={start.same}")
    if start.keep:
        options.append("keep")
    return [PYTHON, "-I", "-S", compiled(STUB), *options, "--", *start.argv]


def compiled(script: str) -> str:
    """A script of ours as Python keeps it compiled, where that is of this very source; else the script itself, which
    costs its compilation each time. Blocks.
    """
    kept = importlib.util.cache_from_source(script)
    try:
        facts = os.stat(script)  # noqa: PTH116 - no Path for every command
        with open(kept, "rb") as file:  # noqa: PTH123
            head = file.read(16)
    except OSError:
        return script
    of = importlib.util.MAGIC_NUMBER + struct.pack("<3I", 0, int(facts.st_mtime) & 0xFFFFFFFF, facts.st_size)
    return kept if head == of else script


def compile_once(script: str) -> str:
    """As `compiled`, and compiles it first where that has not been done. Blocks."""
    if compiled(script) == script:
        import py_compile  # noqa: PLC0415 - once an installation at most, and it costs milliseconds

        with contextlib.suppress(OSError, py_compile.PyCompileError):
            py_compile.compile(script, doraise=True)
    return compiled(script)


def _admit(hold: socket.socket) -> None:
    """The program inside has said that it is there: when memory runs out, the kernel takes it, and what it starts, and
    not the gateway. Then it may go on. Blocks briefly.
    """
    with hold:
        _, given, _, _ = hold.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
        pid = _CREDENTIALS.unpack(given[0][2])[0] if given else 0
        with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("500")
        with contextlib.suppress(OSError):
            hold.send(b".")


def _taken(stream: IO[bytes] | None) -> int | None:
    """The descriptor of a stream, which is then ours alone to close."""
    if stream is None:
        return None
    fd = os.dup(stream.fileno())
    stream.close()
    return fd


def _held() -> tuple[socket.socket, socket.socket]:
    """Our end, which tells who writes at the other, and that one."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    ours.setblocking(False)
    return ours, theirs


def _plain(start: Start) -> Born:
    if not start.limited:
        return _piped(start, start.env, start.fds)
    ours, theirs = _held()
    with theirs:
        try:
            number = theirs.fileno()
            born = _piped(start, {**start.env, HOLD: str(number)}, (*start.fds, number))
        except BaseException:
            ours.close()
            raise
    return replace(born, hold=ours)


def _piped(start: Start, env: Mapping[str, str], fds: tuple[int, ...]) -> Born:
    errors = {"merge": subprocess.STDOUT, "drop": subprocess.DEVNULL, "apart": subprocess.PIPE}
    process = subprocess.Popen(
        command(start),
        cwd=start.cwd,
        env=dict(env),
        stdin=subprocess.PIPE if start.stdin else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors[start.stderr],
        bufsize=0,
        start_new_session=True,
        pass_fds=fds,
    )
    out, err, inp = (_taken(stream) for stream in (process.stdout, process.stderr, process.stdin))
    return Born(process, out, err, inp, start.keep, start.wrapper)


def _terminal(start: Start, size: tuple[int, int]) -> Born:
    import pty  # noqa: PLC0415 - absent where there are no terminals of this kind
    import termios  # noqa: PLC0415

    ours, theirs = pty.openpty()
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, ours)
        try:
            termios.tcsetwinsize(ours, size)
            process = subprocess.Popen(
                command(start),
                cwd=start.cwd,
                env=dict(start.env),
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                pass_fds=start.fds,
            )
        finally:
            os.close(theirs)
        undo.pop_all()
    return Born(process, ours, None, os.dup(ours), start.keep, start.wrapper)


def _apart(start: Start, undo: contextlib.ExitStack) -> Start:
    """With the arguments that nobody is to see in a descriptor of their own, which `undo` closes here."""
    if not start.apart:
        return start
    rest = 1 + start.apart
    number = os.memfd_create("arguments")
    undo.callback(os.close, number)
    with open(number, "wb", closefd=False) as file:
        file.writelines(os.fsencode(each) + b"\0" for each in start.argv[1:rest])
    os.lseek(number, 0, os.SEEK_SET)
    argv = (start.argv[0], "--args", str(number), *start.argv[rest:])
    return replace(start, argv=argv, fds=(*start.fds, number), apart=0)


def _born(start: Start) -> Born:
    with contextlib.ExitStack() as undo:
        return _begun(_apart(start, undo))


def _begun(start: Start) -> Born:
    try:
        return _terminal(start, start.terminal) if start.terminal else _plain(start)
    except OSError as error:
        missing = error.filename if error.filename != PYTHON else start.argv[0]
        raise Unavailable(f"cannot start {start.argv[0]}: {error.strerror}: {missing}") from None
    except ValueError as error:
        raise Unavailable(f"cannot start {start.argv[0]}: {error}") from None


def _unwanted(born: asyncio.Future[Born]) -> None:
    if not born.cancelled() and born.exception() is None:
        kill_group(born.result().process.pid)
        Child(born.result()).close()


class Programs:
    """The door. Children are started by one thread that lives as long as this does; `close` ends them all.

    The thread matters: the kernel ends a child with the thread that started it.
    """

    def __init__(self) -> None:
        self._group = ""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="programs", initializer=self._enter)
        self._children: set[Child] = set()

    async def start(self, start: Start) -> Child:
        """Raises Unavailable when it cannot be started."""
        born = asyncio.get_running_loop().run_in_executor(self._thread, _born, start)
        try:
            child = Child(await asyncio.shield(born))
        except asyncio.CancelledError:
            born.add_done_callback(_unwanted)
            raise
        self._children.add(child)
        child.ended(lambda: self._children.discard(child))
        child.admitted(self._thread, _admit)
        return child

    async def run(self, start: Start, *, given: bytes = b"", timeout_s: float = 30.0, limit: int = 1 << 20) -> Finished:
        """Run a short program to its end, with `given` as its input; at most `limit` bytes of output are kept.

        Raises Unavailable when it cannot be started.
        """
        child = await self.start(start)
        kept = bytearray()
        size = 0

        async def feed() -> None:
            with contextlib.suppress(Unavailable):  # a program need not read what it is given
                await child.stdin.write(given)
            child.stdin.close()

        async def hear() -> int:
            nonlocal size
            while child.stdout is not None and (data := await child.stdout.read()):
                size += len(data)
                kept.extend(data[: max(0, limit - len(kept))])
            return await child.wait()

        try:
            async with asyncio.timeout(timeout_s):
                _, code = await asyncio.gather(feed() if start.stdin else asyncio.sleep(0), hear())
        except TimeoutError:
            return Finished(None, bytes(kept), size > limit)
        finally:
            await asyncio.shield(child.kill())
            child.close()
        return Finished(code, bytes(kept), size > limit)

    def _enter(self) -> None:
        self._group = cgroup.enter()

    def __len__(self) -> int:
        return len(self._children)

    async def close(self) -> None:
        """End every child, and start no more."""
        await asyncio.gather(*(child.kill() for child in list(self._children)))
        await asyncio.to_thread(self._thread.shutdown)
        if self._group:
            await asyncio.to_thread(cgroup.release, self._group)
