"""The log: one JSON object a line, a file a day, bounded in size and days, without secrets.

A line is `{time, level, subsystem, message}`, with `agent_id`, `session_id`, `run_id` and `channel` where it is about
one (`about`), and, for faults, `error`. Lines are written by a thread of their own, so that logging never waits for the
disk; `Log.close` writes what is left.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from garra.core.characters import escaped
from garra.core.patterns import later
from garra.core.redact import cleaner
from garra.core.value import frozen
from garra.io.files import atomic

LEVELS = {"silent": 100, "fatal": 50, "error": 40, "warn": 30, "warning": 30, "info": 20, "debug": 10, "trace": 5}
NAMES = {50: "fatal", 40: "error", 30: "warn", 20: "info", 10: "debug", 5: "trace"}
LARGEST_LINE = 16_384
LARGEST_TAIL = 1 << 20
ARCHIVES: Final = 5
"""How many older pieces stand beside a file that has a name of its own."""
_ABOUT: Final[ContextVar[Mapping[str, str]]] = ContextVar("about", default=MappingProxyType({}))
_FILE = later(r"garra-(\d{4}-\d{2}-\d{2})(?:\.\d+)?\.log")


class Places(Protocol):
    """Where the log goes."""

    @property
    def logs(self) -> Path: ...


@frozen
class Bounds:
    """When a file is set aside (bytes) and when it is removed (days, and the sum of all files in bytes)."""

    file_bytes: int = 10 << 20
    days: int = 7
    total_bytes: int = 100 << 20


@frozen
class Sinks:
    """What goes where: `level` is the file's, `console_level` that of standard error (empty: the same). `file` takes
    the place of a file a day. `patterns` are blotted out too, wherever they match.
    """

    level: str = "info"
    console_level: str = ""
    style: Literal["pretty", "json"] = "pretty"
    file: Path | None = None
    bounds: Bounds = field(default_factory=Bounds)
    patterns: tuple[str, ...] = ()


def about(**names: str) -> None:
    """From here on, in this task and those it starts, each line says so: `run_id`, `session_id`, `agent_id`,
    `channel`.
    """
    _ABOUT.set({**_ABOUT.get(), **names})


def current() -> Log | None:
    """The log of this process, where there is one."""
    return next((each for each in logging.getLogger().handlers if isinstance(each, Log)), None)


class Log(logging.Handler):
    """The log of this process. `hide` and `also` tell it which texts must never be written, `configure` where what
    goes; `tellers` are given each entry for the file, in any thread; `close` ends it.
    """

    def __init__(self, folder: Path, sinks: Sinks, *, stderr: bool) -> None:
        super().__init__()
        self._folder = folder
        self._stderr = stderr
        self._known: tuple[str, ...] = ()
        self._more: tuple[str, ...] = ()
        self._clean: Callable[[str], str] = cleaner(())
        self.tellers: list[Callable[[dict[str, Any]], None]] = []
        self._lines: queue.SimpleQueue[tuple[bool, bool, str] | None] = queue.SimpleQueue()
        self.configure(sinks)
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def configure(self, sinks: Sinks) -> None:
        """From the next line on. The root logger lets through what either sink wants."""
        self._sinks, self._bounds = sinks, sinks.bounds
        self._file_level = LEVELS.get(sinks.level, logging.INFO)
        console = LEVELS.get(sinks.console_level or sinks.level, logging.INFO)
        self._console_level = console if self._stderr else LEVELS["silent"]
        self._learn()
        logging.getLogger().setLevel(min(self._file_level, self._console_level))

    def _learn(self) -> None:
        self._clean = cleaner((*self._known, *self._more), self._sinks.patterns)

    def hide(self, secrets: Iterable[str]) -> None:
        """From now on these texts are blotted out, wherever they occur."""
        self._known = tuple(secrets)
        self._learn()

    def also(self, secrets: Iterable[str]) -> None:
        """Likewise, beside those, for texts that stand elsewhere (in files of tokens)."""
        self._more = tuple(secrets)
        self._learn()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            entry: dict[str, Any] = {
                "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
                "level": NAMES.get(record.levelno, record.levelname.lower()),
                "subsystem": record.name.removeprefix("garra."),
                "message": self._clean(record.getMessage())[:LARGEST_LINE],
                **_ABOUT.get(),
            }
            if record.exc_info:
                fault = logging.Formatter().formatException(record.exc_info)
                entry["error"] = self._clean(fault)[-LARGEST_LINE:]
            kept, shown = record.levelno >= self._file_level, record.levelno >= self._console_level
            self._lines.put((kept, shown, json.dumps(entry, ensure_ascii=False)))
            if self.tellers and kept:
                entry["at_ns"] = int(record.created * 1_000_000_000)
                for tell in self.tellers:
                    tell(entry)
        except (ValueError, TypeError):
            self.handleError(record)

    def close(self) -> None:
        """Write what is left and stop."""
        if self._thread.is_alive():
            self._lines.put(None)
            self._thread.join(5.0)
        super().close()

    def _run(self) -> None:
        done = False
        while not done:
            batch = [self._lines.get()]
            while not self._lines.empty():
                batch.append(self._lines.get())
            done = None in batch
            lines = [line for line in batch if line is not None]
            self._show([line for _, shown, line in lines if shown])
            self._write([line for kept, _, line in lines if kept])

    def _show(self, lines: list[str]) -> None:
        if self._stderr and lines:
            shown = lines if self._sinks.style == "json" else map(_readable, lines)
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write("".join(f"{line}\n" for line in shown))

    def _write(self, lines: list[str]) -> None:
        """To the file with a name of its own; where that cannot be, and without one, to the day's."""
        if not lines:
            return
        data = ("\n".join(lines) + "\n").encode("utf-8", "replace")
        if (own := self._sinks.file) is not None:
            with contextlib.suppress(OSError):
                _shift(own, len(data), self._bounds.file_bytes)
                _append(own, data)
                return
        with contextlib.suppress(OSError):  # a full disk must not stop the program
            atomic.folder(self._folder)
            path = self._folder / f"garra-{lines[-1][10:20]}.log"
            self._rotate(path, len(data))
            _append(path, data)

    def _rotate(self, path: Path, more: int) -> None:
        """Set a full file aside and remove what is too old or too much."""
        size = path.stat().st_size if path.exists() else None
        if size is not None and size + more <= self._bounds.file_bytes:
            return
        if size:
            taken = [int(found.suffixes[-2][1:]) for found in self._folder.glob(f"{path.stem}.*.log")]
            path.rename(path.with_name(f"{path.stem}.{max(taken, default=0) + 1}.log"))
        total = 0
        days = sorted({day for found in files(self._folder) if (day := _day(found))} | {path.stem[6:16]}, reverse=True)
        for old in files(self._folder):
            total += old.stat().st_size
            if total > self._bounds.total_bytes or _day(old) not in days[: self._bounds.days]:
                old.unlink(missing_ok=True)


def _append(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, atomic.FILE_MODE), "ab") as stream:
        stream.write(data)


def _shift(path: Path, more: int, most: int) -> None:
    """Set a full file with a name of its own aside: the newest piece is `.1`, the oldest goes."""
    if not path.exists() or path.stat().st_size + more <= most:
        return
    pieces = [path, *(path.with_name(f"{path.stem}.{number}{path.suffix}") for number in range(1, ARCHIVES + 1))]
    for newer, older in reversed(list(pairwise(pieces))):
        if newer.exists():
            newer.replace(older)


def _day(path: Path) -> str:
    found = _FILE.fullmatch(path.name)
    return found.group(1) if found else ""


def files(folder: Path) -> list[Path]:
    """The log files, newest first."""
    found = [path for path in folder.glob("garra-*.log") if _FILE.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def _readable(line: str) -> str:
    """An entry for a person. Whatever somebody put into a message, no other entry seems to begin in it."""
    entry = json.loads(line)
    error = "".join(f"\n  {escaped(part)}" for part in entry.get("error", "").splitlines())
    return f"{entry['time'][11:19]} {entry['level']:<5} {entry['subsystem']}: {escaped(entry['message'])}{error}"


def setup(
    paths: Places,
    level: str = "info",
    *,
    stderr: bool = False,
    bounds: Bounds | None = None,
    sinks: Sinks | None = None,
) -> Log:
    """Send what `logging` gets to the log file (and, readable, to standard error). Close what this gives at the end."""
    log = Log(paths.logs, sinks or Sinks(level, bounds=bounds or Bounds()), stderr=stderr)
    logging.getLogger().addHandler(log)
    return log


@frozen
class Tail:
    """A piece of the newest log file: its lines, and the `cursor` to ask for what comes after them.

    `reset` when the cursor asked for did not fit this file any more; `cut` when lines before these were left out.
    """

    file: str
    lines: tuple[str, ...]
    cursor: int
    size: int
    reset: bool = False
    cut: bool = False


def tail(paths: Places, cursor: int | None = None, limit: int = 500, file: Path | None = None) -> Tail:
    """The newest lines, at most `limit`; with a cursor only those after it. `file` is a log with a name of its own.

    Blocks: on a loop, use a thread.
    """
    found = files(paths.logs) if paths.logs.is_dir() else []
    if file is not None and file.is_file():
        found = [file]
    if not found:
        return Tail("", (), 0, 0, reset=bool(cursor))
    with found[0].open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        reset = cursor is not None and cursor > size
        start = cursor if cursor is not None and not reset else 0
        begin = max(start, size - LARGEST_TAIL)
        stream.seek(begin)
        data = stream.read(size - begin)
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.decode("utf-8", "replace").splitlines()
    skipped = lines[1:] if begin > start else lines
    kept = skipped[-limit:] if limit > 0 else []
    return Tail(str(found[0]), tuple(kept), begin + len(whole), size, reset, len(kept) < len(lines))
