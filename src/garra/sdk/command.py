"""A command that a plugin adds to the command line: `garra NAME ...`.

The manifest declares it (`[[command]]`: name, summary, module, help), so that `garra --help` lists it without running
any plugin code; the module is imported when the command is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class Context(Protocol):
    """What a command is given of the installation it runs on."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The plugin's own settings, `plugins.entries.<id>.config`; empty when there are none."""

    @property
    def state(self) -> Path:
        """The state folder. A command keeps its own files in a folder of its plugin's name below it."""

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call a method of the gateway and give its payload.

        Raises Unavailable when none answers, and GarraError with the gateway's words when it refuses.
        """


Run = Callable[[Sequence[str], Context], int | None]
"""Runs the command with the arguments that follow its name; gives the exit code, None for 0.

What it prints goes to standard output. It raises UserError for what a person can mend: its message becomes one line.
"""
