"""This program once more, as a child that is watched over: started again when it dies, ended when we are told to end.

The parent only waits, so it loads nothing: no event loop, no configuration.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import NoReturn

from garra.core.value import frozen
from garra.io.clock import SystemClock

MARK, NEVER = "GARRA_RESPAWNED", "GARRA_NO_RESPAWN"
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
SETTLED_S = 60.0
"""A child that lived so long died of something new: the waits begin anew."""

MISTAKES = frozenset({1, 2})
HARD = 137


@frozen
class Care:
    """How a child is looked after. It has `patience_s` to end by itself after the first signal, then three steps of
    `grace_s`: the signal again, SIGKILL, and the parent ends hard. A second signal skips the patience.
    """

    patience_s: float = 0.0
    grace_s: float = 1.0
    again: bool = False
    tell: Callable[[str], None] = lambda line: None


def wanted(env: Mapping[str, str]) -> bool:
    """Whether this process may start itself anew: it is no child of that kind, and nobody has forbidden it."""
    return not env.get(MARK) and env.get(NEVER, "") in {"", "0"}


def watch(argv: Sequence[str], env: Mapping[str, str], care: Care | None = None) -> int:
    """Run `argv` until it has ended for good, and give its exit code; SIGTERM and SIGINT are passed on to it.

    With `care.again`, a child that dies is started again, after 1 s, then twice that, to 30 s; one that ends well, or
    refuses to start (code 1 or 2 at once), is not. Only in the main thread.
    """
    return _Watch(argv, {**env, MARK: "1"}, care or Care()).run()


def again(env: Mapping[str, str]) -> NoReturn:
    """Become this very program from its beginning: same process, arguments and environment. Nothing of ours is left
    open by then. Raises OSError when its interpreter is gone.
    """
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], dict(env))


class _Watch:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str], care: Care) -> None:
        self._argv, self._env, self._care = list(argv), dict(env), care
        self._clock = SystemClock()
        self._child: subprocess.Popen[bytes] | None = None
        self._told: list[int] = []
        self._news = threading.Event()

    def run(self) -> int:
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            return self._lives()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._told.append(number)
        self._pass_on(number)
        self._news.set()

    def _pass_on(self, number: int) -> None:
        if self._child is not None and self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)

    def _lives(self) -> int:
        wait_s = FIRST_WAIT_S
        while True:
            began = self._clock.monotonic()
            code = self._life()
            lived = self._clock.monotonic() - began
            started = lived > FIRST_WAIT_S or code not in MISTAKES
            if self._told or code == 0 or not (self._care.again and started):
                return code if code >= 0 else 128 - code
            wait_s = FIRST_WAIT_S if lived > SETTLED_S else wait_s
            self._care.tell(f"the process ended with {code}; starting it again in {wait_s:.0f} s")
            if self._news.wait(wait_s):
                return code if code >= 0 else 128 - code
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _life(self) -> int:
        with subprocess.Popen(self._argv, env=self._env, stdin=subprocess.DEVNULL) as child:
            self._child = child
            if self._told:
                self._pass_on(self._told[-1])
            while not self._told:
                if (code := self._within(0.5)) is not None:
                    return code
            return self._end()

    def _within(self, seconds: float) -> int | None:
        assert self._child is not None
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _end(self) -> int:
        end = self._clock.monotonic() + self._care.patience_s
        while len(self._told) < 2 and self._clock.monotonic() < end:
            if (code := self._within(0.25)) is not None:
                return code
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._pass_on(number)
            if (code := self._within(self._care.grace_s)) is not None:
                return code
        os._exit(HARD)  # not even SIGKILL ended it: what the kernel holds, we need not wait for
