"""`garra doctor` at a terminal asks of each thing that can be mended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.needs("tmux"), pytest.mark.timeout(90)]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def terminal(program: Program) -> Iterator[Terminal]:
    made = Terminal(program)
    yield made
    made.close()


def test_each_is_asked_and_only_what_was_agreed_is_mended(program: Program, terminal: Terminal) -> None:
    program.configure(gateway={"mode": "local"})
    program.config.chmod(0o644)
    program.state.chmod(0o755)
    terminal.start("doctor")
    terminal.shows("config: others can read it (mode 644)", 40)
    terminal.type("n")
    terminal.shows("state: others can look into")
    terminal.type("y")
    terminal.shows("left-with-", 30)
    assert program.state.stat().st_mode & 0o777 == 0o700
    assert program.config.stat().st_mode & 0o777 == 0o644


def test_in_a_pipe_nothing_is_asked_and_repair_mends_all(program: Program) -> None:
    program.configure(gateway={"mode": "local"})
    program.config.chmod(0o644)
    assert "Mend it now" not in program.run("doctor").out
    assert program.config.stat().st_mode & 0o777 == 0o644
    program.run("doctor", "--repair", "--non-interactive")
    assert program.config.stat().st_mode & 0o777 == 0o600
