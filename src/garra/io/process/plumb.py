"""Runs the programs of one line, joined as a shell would join them, without a shell: nothing here is read as code.

It is started as a script, in isolation (`python -I -S plumb.py WORD…`), like the stub, and imports nothing of ours. For
each program, in their order:

    JOINT IDENTITY PATH COUNT NAME=VALUE… COUNT FD>TARGET… COUNT ARGUMENT…

JOINT is | && || or ; and stands between it and the next one. IDENTITY is `device:inode:changed:size` of the file at
PATH: another file there is not run. TARGET is `&1`, `&2` or /dev/null.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, NoReturn

SIGPIPE, SIGXFSZ = 13, 25
CANNOT_RUN, NOT_FOUND = 126, 127

Program = tuple[str, str, str, "list[str]", "list[str]", "list[str]"]
"""Joint, identity, path, variables, redirections, arguments."""


def programs(words: Sequence[str]) -> Iterator[Program]:
    at = 0

    def listed() -> list[str]:
        nonlocal at
        count = int(words[at])
        found = list(words[at + 1 : at + 1 + count])
        at += 1 + count
        return found

    while at < len(words):
        joint, identity, path = words[at : at + 3]
        at += 3
        yield joint, identity, path, listed(), listed(), listed()


def identity(path: str) -> str:
    """The file that is at a path now; empty where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - no pathlib here
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}:{found.st_ctime_ns}:{found.st_size}"


def complain(path: str, why: str, code: int) -> NoReturn:
    os.write(2, f"{path}: {why}\n".encode(errors="replace"))
    os._exit(code)


def redirect(fd: int, target: str) -> None:
    if target.startswith("&"):
        os.dup2(int(target[1:]), fd)
    else:
        opened = os.open(target, os.O_RDONLY if fd == 0 else os.O_WRONLY)
        os.dup2(opened, fd)
        if opened != fd:
            os.close(opened)


def become(program: Program, read: int | None, write: int | None) -> NoReturn:
    """In a child: take the pipes, then be the program."""
    _, seen, path, env, redirections, argv = program
    signals: Any = __import__("_signal")  # built in; `signal` would cost more than the rest
    for number in (SIGPIPE, SIGXFSZ):  # Python has them ignored, and what is ignored stays so
        signals.signal(number, signals.SIG_DFL)
    for fd, end in ((0, read), (1, write)):
        if end is not None:
            os.dup2(end, fd)
            os.close(end)
    try:
        for each in redirections:
            fd_text, _, target = each.partition(">")
            redirect(int(fd_text), target)
    except OSError as error:
        complain(path, str(error.strerror), 1)
    if identity(path) != seen:
        complain(path, "it is not the file it was when it was judged", CANNOT_RUN)
    variables = {**os.environ, **dict(each.split("=", 1) for each in env)}
    try:
        os.execve(path, argv, variables)
    except OSError as error:
        complain(path, str(error.strerror), NOT_FOUND if error.errno == 2 else CANNOT_RUN)


def run(pipeline: Sequence[Program]) -> int:
    """Start them all, wait for all; how the last one ended, as a shell says it."""
    started: list[int] = []
    read: int | None = None
    for at, program in enumerate(pipeline):
        ends = os.pipe() if at + 1 < len(pipeline) else None
        pid = os.fork()
        if pid == 0:
            if ends is not None:
                os.close(ends[0])
            become(program, read, ends[1] if ends else None)
        started.append(pid)
        if read is not None:
            os.close(read)
        if ends is not None:
            os.close(ends[1])
        read = ends[0] if ends else None
    codes: dict[int, int] = {}
    while len(codes) < len(started):
        pid, status = os.wait()
        if pid in started:
            codes[pid] = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return codes[started[-1]]


def main(words: Sequence[str]) -> int:
    """Run all of it; the code of what ran last."""
    code, before = 0, ";"
    pipeline: list[Program] = []
    for program in programs(words):
        pipeline.append(program)
        joint = program[0]
        if joint == "|":
            continue
        if before == ";" or (before == "&&") == (code == 0):
            code = run(pipeline)
        before, pipeline = joint, []
    return code


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
