"""A running child: what it says, what it is told, how it ended, and how to end it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from garra.core.value import frozen
from garra.io.process import stub
from garra.io.process.streams import Sink, Source


@frozen
class Born:
    """A process that has just been started, and our ends of its pipes; `out` and `inp` may be one terminal."""

    process: subprocess.Popen[bytes]
    out: int | None
    err: int | None
    inp: int | None
    keeper: bool
    wrapper: bool
    hold: socket.socket | None = None


def started_at(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine did; with the number it names a process for good."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def kill_group(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Child:
    """One child, leader of its own group and session. `code` is None while it runs, minus the signal that ended it."""

    def __init__(self, born: Born) -> None:
        self.pid = born.process.pid
        self.code: int | None = None
        self.stdin = Sink(born.inp)
        self.stdout = Source(born.out) if born.out is not None else None
        self.stderr = Source(born.err) if born.err is not None else None
        self._process = born.process
        self._keeper, self._wrapper = born.keeper, born.wrapper
        self._hold = born.hold
        self._loop = asyncio.get_running_loop()
        self._gone: asyncio.Future[int] = self._loop.create_future()
        self._watch()

    def _watch(self) -> None:
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # no such call here: a thread waits in the kernel instead
            waiting = self._loop.run_in_executor(None, self._process.wait)
            waiting.add_done_callback(lambda _: self._ended())
            return

        def ended() -> None:
            self._loop.remove_reader(handle)
            os.close(handle)
            self._ended()

        self._loop.add_reader(handle, ended)

    def _ended(self) -> None:
        self._let_go()
        if self._process.returncode is None:
            kill_group(self.pid)  # while the leader is not yet collected, its number can be nobody else's
        self.code = self._process.wait()
        if not self._gone.done():
            self._gone.set_result(self.code)

    def admitted(self, thread: Executor, admit: Callable[[socket.socket], None]) -> None:
        """Let the program inside go on, by `admit` in `thread`, once it has said that it is there."""
        hold = self._hold
        if hold is None:
            return

        def heard() -> None:
            self._loop.remove_reader(hold.fileno())
            self._hold = None
            try:
                self._loop.run_in_executor(thread, admit, hold)
            except RuntimeError:  # everything is being closed
                hold.close()

        self._loop.add_reader(hold.fileno(), heard)

    def _let_go(self) -> None:
        if self._hold is not None:
            self._loop.remove_reader(self._hold.fileno())
            self._hold.close()
            self._hold = None

    def ended(self, then: Callable[[], None]) -> None:
        """Call `then` at its end."""
        self._gone.add_done_callback(lambda _: then())

    async def wait(self) -> int:
        """How it ended. Cancelling the wait does not touch the child."""
        return await asyncio.shield(self._gone)

    def signal(self, number: int) -> None:
        """Signal the whole group; nothing happens once it has ended."""
        if self.code is None:
            kill_group(self.pid, number)

    async def kill(self, grace_s: float = 0.4) -> int:
        """End it and everything it started: asked first, made to after `grace_s`. Gives back how it ended."""
        if self.code is None:
            await asyncio.to_thread(self._ask)
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self.wait(), grace_s + (0.3 if self._keeper else 0.0))
            await asyncio.to_thread(self._make)
        return await self.wait()

    def _ask(self) -> None:
        inner = stub.below(self.pid)[1:] if self._wrapper else []
        if inner:  # the wrapper would end by the signal, and take those below it along before they could tidy up
            stub.signal_all(inner, signal.SIGTERM)
        else:
            kill_group(self.pid, signal.SIGTERM)

    def _make(self) -> None:
        left = stub.below(self.pid)
        kill_group(self.pid)
        stub.signal_all(left, signal.SIGKILL)

    def close(self) -> None:
        """Let go of its pipes; it may well run on."""
        self.stdin.close()
        for source in (self.stdout, self.stderr):
            if source is not None:
                source.close()
