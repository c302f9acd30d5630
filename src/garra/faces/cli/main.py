"""The command line's front: picks the command and imports only that."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from garra.core.errors import GarraError
from garra.faces.cli import fast, table
from garra.faces.cli.options import Misused, globals_of
from garra.io.env import read

INTERRUPTED = 130


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code. A fault that a person can mend is one line, never a traceback."""
    sys.excepthook = fault_of_ours
    try:
        return _dispatch(globals_of(list(arguments)))
    except Misused as fault:
        return complain(str(fault), 2)
    except GarraError as fault:
        return complain(fault.message, 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away: nobody is left to tell
        with suppress(OSError):
            sys.stdout.close()
        return 1
    except OSError as fault:
        where = fault.filename or "standard output" * (fault.errno == errno.ENOSPC)
        return complain(f"{fault.strerror or fault}{f': {where}' if where else ''}", 1)


def fault_of_ours(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The last resort, as `sys.excepthook`: one line instead of a traceback, which may hold what nobody should read.

    With GARRA_DEBUG set the traceback is shown, for whoever mends it.
    """
    if read().get("GARRA_DEBUG"):
        sys.__excepthook__(kind, error, trace)
        return
    where = trace
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    at = f" at {Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno}" if where is not None else ""
    complain(f"a fault of Garra's own: {kind.__name__}{at}; set GARRA_DEBUG=1 to see all of it", 1)


def complain(message: str, code: int) -> int:
    """Say on standard error what is wrong, and give the exit code back."""
    sys.stderr.write(f"garra: {message}\n")
    return code


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        return _start("garra.faces.cli.bare", arguments)
    first = arguments[0]
    if first in {"--help", "-h", "help"}:
        return _help(arguments[1:])
    if first in {"--version", "-V", "version"}:
        return _start("garra.faces.cli.version", arguments[1:])
    found = table.find(arguments)
    if found is not None:
        command, rest = found
        _inside(command, rest)
        return _start(command.module, rest)
    brought = _brought()
    code: int | None = brought.run(arguments) if brought is not None and not first.startswith("-") else None
    if code is None:
        raise Misused(_unknown(first))
    return code


def _inside(command: table.Command, rest: Sequence[str]) -> None:
    """Raises Misused for a word behind a name that stands alone or before another: `garra gateway lst`."""
    rows = table.below(command.name)
    if rows and rest and not rest[0].startswith("-"):
        parsing = importlib.import_module("garra.faces.cli.parsing")  # only where something is to be said
        raise Misused(parsing.unknown(rest[0], command.name, [row.name.partition(" ")[2] for row in rows]))


def _brought() -> Any:
    """The commands of plugins, None where the configuration names no plugin: then nothing is loaded."""
    named = fast.extended(read())
    return importlib.import_module("garra.faces.cli.brought") if named else None


def _start(module: str, arguments: Sequence[str]) -> int:
    """Run `module`, which may name another of its functions: `package.module:function`."""
    name, _, function = module.partition(":")
    code: int = getattr(importlib.import_module(name), function or "run")(arguments)
    return code


def _help(arguments: list[str]) -> int:
    if arguments:
        return _dispatch([*arguments, "--help"])
    brought = _brought()
    sys.stdout.write(table.overview() if brought is None else brought.overview())
    return 0


def _unknown(name: str) -> str:
    if name.startswith("-"):
        return f"no such option: {name}; see garra --help"
    line: str = importlib.import_module("garra.faces.cli.brought").off(
        name
    )  # also what the configuration does not name
    if line:
        return line
    import difflib  # noqa: PLC0415 - seldom needed, and large

    known = [word for row in table.COMMANDS if " " not in row.name for word in (row.name, *row.aliases)]
    brought = _brought()
    known += brought.names() if brought is not None else []
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"no such command: {name}{f'; did you mean {near[0]}?' if near else ''} See garra --help"
