"""Which Garra this is: the version, and the commit when it runs from a checkout. No git is run."""

# ruff: noqa: PTH100, PTH118, PTH120, PTH123 - pathlib would cost a third of the launcher's time

from __future__ import annotations

import sys
from collections.abc import Sequence
from os import path

import garra

SHORT = 7


def run(arguments: Sequence[str]) -> int:
    """`garra version`: the same line that `--version` prints."""
    del arguments
    sys.stdout.write(f"{line()}\n")
    return 0


def line() -> str:
    """`Garra 0.1.0 (eb377ac)`, or without the commit where there is no checkout."""
    commit = head(path.dirname(path.dirname(path.dirname(path.abspath(garra.__file__)))))
    return f"Garra {garra.__version__} ({commit})" if commit else f"Garra {garra.__version__}"


def head(root: str) -> str:
    """The short id of the commit checked out at `root`, empty when `root` is no checkout."""
    folder = path.join(root, ".git")
    link = _text(folder)
    if link.startswith("gitdir: "):  # a worktree: its own HEAD, the refs of the main folder
        folder = path.join(root, link.removeprefix("gitdir: ").strip())
    found = _text(path.join(folder, "HEAD")).strip()
    if not found.startswith("ref: "):
        return found[:SHORT]
    name = found.removeprefix("ref: ")
    common = path.join(folder, _text(path.join(folder, "commondir")).strip())
    return (_text(path.join(common, name)).strip() or _packed(common, name))[:SHORT]


def _packed(folder: str, name: str) -> str:
    for row in _text(path.join(folder, "packed-refs")).splitlines():
        if row.endswith(f" {name}"):
            return row.partition(" ")[0]
    return ""


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError):
        return ""
