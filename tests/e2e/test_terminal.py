"""The chat in a real terminal: on a gateway, in its own process, and what a bare `garra` makes of what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.testing.model_server import ModelServer, Say
from tests.e2e.program import Program, gateway, model, speaking
from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.needs("tmux"), pytest.mark.timeout(60)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model(ModelServer()) as running:
        yield running


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture
def terminal(program: Program) -> Iterator[Terminal]:
    made = Terminal(program)
    yield made
    made.close()


@pytest.mark.req("UI-06", "BOOT-07")
def test_on_a_gateway_that_runs_and_back_after_its_restart(
    program: Program, terminal: Terminal, server: ModelServer
) -> None:
    program.configure(**speaking(server.url, gateway={"auth": {"mode": "token", "token": "t"}}))
    server.then(Say("It is **kelp**."), Say("Still here."))
    with gateway(program):
        terminal.start()
        terminal.shows("connected  main")
        assert "in this process" not in terminal.screen
        terminal.type("你好, what is it?")
        assert "你好, what is it?" in terminal.shows("It is kelp.")
    terminal.shows("The gateway is away")
    with gateway(program):
        terminal.shows("Connected again.", 40)
        terminal.type("and now?")
        terminal.shows("Still here.")
        terminal.press("C-d")
        terminal.shows("left-with-0")


@pytest.mark.req("UI-06", "BOOT-07")
def test_in_its_own_process_when_no_gateway_runs(program: Program, terminal: Terminal, server: ModelServer) -> None:
    program.configure(**speaking(server.url))
    terminal.start()
    terminal.shows("in this process")
    terminal.type('tool:exec {"command": "echo from-the-tool"}')
    assert "✓ exec  echo from-the-tool" in terminal.shows("tool done")
    terminal.press("C-o")
    terminal.shows("▌  from-the-tool")
    terminal.type("sleep:20")
    terminal.shows("Esc stops")
    terminal.press("Escape")
    terminal.shows("stopped")
    terminal.type("/quit")
    terminal.shows("left-with-0")


@pytest.mark.req("BOOT-07")
@pytest.mark.parametrize("shell", [None, "{}\n"])
def test_with_nothing_set_up_it_opens_and_says_so(program: Program, terminal: Terminal, shell: str | None) -> None:
    if shell is not None:
        program.configure()
        program.config.write_text(shell)
    terminal.start()
    screen = terminal.shows("connected  main")
    assert "Nothing is set up yet" in screen
    assert "garra onboard" in screen


def test_a_chat_needs_a_terminal_and_a_named_gateway_its_token(program: Program) -> None:
    ran = program.run("chat")
    assert (ran.code, "needs a terminal" in ran.err) == (1, True)
    assert program.run("chat", "--local", "--url", "ws://x").code == 1
