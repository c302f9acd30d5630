"""A real terminal (tmux) in which a test types and reads."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from tests.e2e.program import Program, awaited


class Terminal:
    """One terminal of 80 columns and 24 lines."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._socket = f"/tmp/garra-tmux-{os.getpid()}-{id(self)}"

    def tmux(self, *words: str) -> str:
        ran = subprocess.run(
            ["tmux", "-S", self._socket, *words], capture_output=True, text=True, check=False, timeout=10
        )
        return ran.stdout

    def line(self, *words: str) -> str:
        """The shell line that runs the program and then says how it ended."""
        variables = {**self._program.variables, "TERM": "xterm-256color", "NO_COLOR": "1"}
        line = " ".join(["env", "-i", *(f"{name}={shlex.quote(value)}" for name, value in variables.items())])
        return f"{line} {shlex.join(self._program.argv(*words))}; echo left-with-$?; sleep 60"

    def start(self, *words: str) -> None:
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", self.line(*words))

    def type(self, text: str, *keys: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", *(keys or ("Enter",)))

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, text: str, seconds: float = 20.0) -> str:
        awaited(lambda: text in self.screen, seconds, lambda: f"{text!r} in\n{self.screen}")
        return self.screen

    def close(self) -> None:
        self.tmux("kill-server")
        Path(self._socket).unlink(missing_ok=True)
