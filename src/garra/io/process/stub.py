"""The first thing a child runs: it puts the limits on itself, then becomes the program.

It is started as a script, in isolation (`python -I -S stub.py OPTION… -- ARGV…`), and so imports nothing of ours.
Doing this here, and not between fork and exec in the gateway, keeps the start of a child free of our threads' locks.
Every command pays for what stands here: `sys`, `os` and what is built into Python cost nothing, `signal`, `contextlib`
and `collections.abc` cost as much as the rest together.

Options: `parent=PID` die with it · `born=PID` start only while it lives · `limit=NAME:VALUE` · `oom=SCORE` · `tty` take
standard input as the terminal · `nolocale` pass on no LC_CTYPE · `same=DEVICE:INODE:CHANGED:SIZE` be no program but
that file · `keep` stay above the program, and at its end or ours
end all it left behind, whatever group it moved to.
"""

# ruff: noqa: SIM105 - contextlib costs too much

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SIGKILL, SIGTERM = 9, 15
USUAL = (1, 2, 3, 13, 25)
"""What a program finds as it usually is: HUP, INT and QUIT, which a gateway begun behind a shell or by nohup ignores,
and PIPE and XFSZ, which Python does. What is ignored stays so in the program.
"""
GRACE_S = 0.4
CANNOT_RUN = 126


def prctl(option: int, value: int) -> None:
    import _ctypes  # noqa: PLC0415 - what most children need not pay; `ctypes` on top of it costs milliseconds

    c: Any = _ctypes
    try:
        c.call_function(c.dlsym(c.dlopen(None, 0), "prctl"), (option, value, 0, 0, 0))
    except (OSError, AttributeError):
        pass


def limit(value: str) -> None:
    import resource  # noqa: PLC0415 - absent where there are no limits

    name, _, number = value.partition(":")
    kind, wanted = getattr(resource, f"RLIMIT_{name}"), int(number)
    _, most = resource.getrlimit(kind)
    wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(kind, (wanted, wanted))


def die_with(parent: str) -> None:
    if sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, SIGKILL)
        be_born_of(parent)  # it may have ended before we could ask


def be_born_of(parent: str) -> None:
    """Go no further without the parent; the program is one that asks to die with it."""
    if os.getppid() != int(parent):
        sys.exit(CANNOT_RUN)


def take_terminal(_: str) -> None:
    import fcntl  # noqa: PLC0415 - only with a terminal
    import termios  # noqa: PLC0415

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def be_killed_first(score: str) -> None:
    """When memory runs out, the kernel takes this child and not the gateway."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 - no pathlib here
            file.write(score)
    except OSError:
        pass


def forget_locale(_: str) -> None:
    """Python has put this there for itself; the program was not given it."""
    os.environ.pop("LC_CTYPE", None)


STEPS = {
    "nolocale": forget_locale,
    "limit": limit,
    "parent": die_with,
    "born": be_born_of,
    "tty": take_terminal,
    "oom": be_killed_first,
}


def identity(path: str) -> str:
    """The file that is at a path now; empty where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - no pathlib here
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}:{found.st_ctime_ns}:{found.st_size}"


def become(argv: Sequence[str], same: str = "") -> NoReturn:
    signals: Any = __import__("_signal")  # built in
    for number in USUAL:
        signals.signal(number, signals.SIG_DFL)
    if same and identity(argv[0]) != same:
        os.write(2, f"{argv[0]}: it is not the file it was when it was judged\n".encode(errors="replace"))
        os._exit(CANNOT_RUN)
    try:
        os.execv(argv[0], list(argv))
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(CANNOT_RUN)


def parents() -> dict[int, int]:
    """The parent of every process, by number; empty where the kernel does not tell."""
    found = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - no pathlib here
    except OSError:
        return {}
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                pass
    return found


def below(root: int) -> list[int]:
    """Every process below `root`, nearest first."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        found += (nearest := [pid for parent in waiting for pid in children.get(parent, ())])
        waiting = nearest
    return found


def signal_all(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def reap() -> bool:
    """Collect what ended; false when nothing is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def end_all(first: int) -> None:
    """End everything below us: `first` as the signal, then, after a moment, the one that cannot be refused."""
    import time  # noqa: PLC0415 - a script of its own

    signal_all(below(os.getpid()), first)
    deadline = time.monotonic() + GRACE_S
    while reap():
        if first == SIGKILL or time.monotonic() > deadline:
            signal_all(below(os.getpid()), SIGKILL)
        time.sleep(0.01)


class _Ended(BaseException):
    """Somebody asks the keeper to end it all."""


def _asked(_: int, __: FrameType | None) -> NoReturn:
    raise _Ended


def keep(argv: Sequence[str], same: str = "") -> NoReturn:
    """Run `argv` as a child and stay until all it started is gone; then end as it ended."""
    import signal  # noqa: PLC0415 - only here, and it costs

    asked = (signal.SIGTERM, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, SIGTERM)
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, asked)
        become(argv, same)
    for number in (signal.SIGINT, signal.SIGQUIT):  # keys of the terminal are for the program
        signal.signal(number, signal.SIG_IGN)
    for number in asked:
        signal.signal(number, _asked)
    status = 0
    first = SIGTERM
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, asked)
        while (ended := os.wait())[0] != child:
            pass
        status, first = ended[1], SIGKILL
    except _Ended:
        status = SIGTERM
    signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    end_all(first)
    leave(status)


def leave(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        import signal  # noqa: PLC0415 - loaded already

        number = os.WTERMSIG(status)
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # a signal whose meaning cannot be changed
            pass
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else CANNOT_RUN)


def main(args: Sequence[str]) -> NoReturn:
    split = args.index("--")
    options, argv = args[:split], args[split + 1 :]
    same = ""
    for option in options:
        name, _, value = option.partition("=")
        if name in STEPS:
            STEPS[name](value)
        elif name == "same":
            same = value
    if "keep" in options:
        keep(argv, same)
    become(argv, same)


if __name__ == "__main__":
    main(sys.argv[1:])
