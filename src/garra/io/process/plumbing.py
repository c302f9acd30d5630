"""Several programs as one child: what `plumb` is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from garra.io.process.door import PYTHON, compiled
from garra.io.process.plumb import Program, identity

__all__ = ["Program", "identity", "line"]

SCRIPT = str(Path(__file__).with_name("plumb.py"))


def line(programs: Sequence[Program]) -> tuple[str, ...]:
    """The argv that runs them, joined as they say. Blocks."""
    words: list[str] = []
    for joint, seen, path, *lists in programs:
        words += (joint, seen, path)
        for each in lists:
            words += (str(len(each)), *each)
    return (PYTHON, "-I", "-S", compiled(SCRIPT), *words)
