"""What `--fix` does: open group policies become lists, folders and files are closed to others. Never anything else.

What was done is written down beside the state, with the way back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, assert_never

from garra.checks.security.finding import Chmod, Finding, Fix, Narrow
from garra.config.paths import Paths
from garra.config.write import Writer
from garra.core.dotted import show
from garra.core.errors import GarraError
from garra.core.merge import Change
from garra.core.value import frozen
from garra.io.env import Environment
from garra.io.files import atomic

NAME = "security-fixes.jsonl"


@frozen
class Done:
    """One thing that was done, or could not be (`fault`); `undo` is the command that takes it back."""

    what: str
    undo: str
    fault: str = ""


def fixes(findings: Iterable[Finding]) -> tuple[Fix, ...]:
    """What would be done, each thing once."""
    return tuple(dict.fromkeys(fix for one in findings for fix in one.fixes))


def mend(paths: Paths, env: Environment, wanted: Iterable[Fix], at_ms: int) -> tuple[Done, ...]:
    """Do it. Blocks."""
    done = tuple(_one(paths, env, fix) for fix in wanted)
    if kept := [one for one in done if not one.fault]:
        _note(paths, kept, at_ms)
    return done


def _one(paths: Paths, env: Environment, fix: Fix) -> Done:
    match fix:
        case Chmod(path, mode, before):
            done = Done(f"chmod {mode:o} {path} (was {before:03o})", f"chmod {before:03o} {path}")
        case Narrow(at):
            undo = f"garra config set {show(at)} open"
            done = Done(f"{show(at)}: open is now allowlist", undo)
        case _:
            assert_never(fix)
    try:
        _do(paths, env, fix)
    except (GarraError, OSError) as fault:
        return Done(done.what, "", str(fault))
    return done


def _do(paths: Paths, env: Environment, fix: Fix) -> None:
    match fix:
        case Chmod(path, mode, _):
            Path(path).chmod(mode)
        case Narrow(at):
            Writer(paths, env).apply([Change(at, "allowlist")])


def _note(paths: Paths, done: list[Done], at_ms: int) -> None:
    """Add to the record. It is small: a line for each time that something was mended."""
    file = paths.logs / NAME
    before = file.read_bytes() if file.is_file() else b""
    row: dict[str, Any] = {"ts": at_ms, "done": [{"what": one.what, "undo": one.undo} for one in done]}
    atomic.write(file, before + json.dumps(row).encode() + b"\n")


def lines(done: Iterable[Done]) -> Iterator[str]:
    """What was done, for a person."""
    for one in done:
        yield f"could not: {one.what}: {one.fault}" if one.fault else f"done: {one.what}\n      undo: {one.undo}"


def told(done: Iterable[Done]) -> dict[str, Any]:
    """The same as JSON."""
    every = tuple(done)
    return {
        "ok": not any(one.fault for one in every),
        "changes": [{"what": one.what, "undo": one.undo} for one in every if not one.fault],
        "errors": [f"{one.what}: {one.fault}" for one in every if one.fault],
    }
