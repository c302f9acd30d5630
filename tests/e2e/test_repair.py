"""A broken configuration at a real terminal: what `garra` says, what it offers, and the chat after it is mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from garra.testing.model_server import ModelServer, Say
from tests.e2e.program import Program, awaited, model, speaking
from tests.e2e.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.needs("tmux"), pytest.mark.timeout(60), pytest.mark.req("BOOT-07")]


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


def choose(terminal: Terminal, words: str) -> None:
    """Take the choice that says `words`, when the menu that holds it waits for an answer."""
    found: list[str] = []

    def offered() -> bool:
        screen = terminal.screen.rstrip()
        asking = screen.rpartition("\n")[2].startswith("What shall be done?") and screen.endswith(")")
        found[:] = [line.split()[0] for line in screen.splitlines() if words in line and line.split()[0].isdecimal()]
        return asking and bool(found)

    awaited(offered, 20, lambda: f"{words!r} in\n{terminal.screen}")
    terminal.type(found[-1])


def good(program: Program, server: ModelServer) -> str:
    """A configuration that was good once, and is kept as such."""
    program.configure()
    program.config.write_text(json.dumps(speaking(server.url), indent=2))
    assert program.run("config", "set", "gateway.port", "18999").code == 0
    return program.config.read_text()


def test_it_is_mended_step_by_step_and_the_chat_opens(
    program: Program, terminal: Terminal, server: ModelServer
) -> None:
    server.then(Say("It is kelp."))
    before = json.dumps(speaking(server.url), indent=2)
    broken = before.replace("{", '{\n  // mine\n  "agents_": 1,', 1).replace('"baseUrl"', '"baseURL"')
    broken = broken.replace('"apiKey": "test",', '"apiKey": "very-secret"')
    program.configure()
    program.config.write_text(broken)
    terminal.start()
    screen = terminal.shows("What shall be done?")
    assert "is not valid" in screen
    assert "line 10, column 9: expected a comma or }" in screen
    assert "very-secret" not in screen
    choose(terminal, "put the missing comma at the end of line 9")
    choose(terminal, "write baseUrl instead of baseURL in models.providers.fake")
    terminal.shows("in this process")
    terminal.type("what is it?")
    terminal.shows("It is kelp.")
    assert "// mine" in program.config.read_text()
    assert (program.state / "garra.json.broken").read_text() == broken
    assert not (program.state / "garra.json.broken.1").exists()
    terminal.press("C-d")
    terminal.shows("left-with-0")


def test_the_last_good_one_comes_back_after_its_difference_was_seen(
    program: Program, terminal: Terminal, server: ModelServer
) -> None:
    before = good(program, server)
    broken = before.replace("18999", '"no port"')
    program.config.write_text(broken)
    terminal.start()
    terminal.shows("gateway.port: Invalid input")
    choose(terminal, "bring the last good configuration back")
    screen = terminal.shows("Bring the last good one back?")
    assert '-    "port": "no port"' in screen
    assert '+    "port": 18999' in screen
    terminal.type("n")
    terminal.shows("What shall be done?")
    assert program.config.read_text() == broken
    choose(terminal, "bring the last good configuration back")
    terminal.type("y")
    terminal.shows("in this process")
    assert program.config.read_text() == before
    assert (program.state / "garra.json.broken").read_text() == broken


def test_one_may_go_on_with_the_last_good_one_or_leave(
    program: Program, terminal: Terminal, server: ModelServer
) -> None:
    broken = good(program, server).replace("18999", "18999,,")
    program.config.write_text(broken)
    terminal.start()
    terminal.shows("What shall be done?")
    terminal.type("99")
    terminal.shows("none of the choices")
    choose(terminal, "go on with the last good configuration")
    terminal.shows("in this process")
    terminal.type("/quit")
    terminal.shows("left-with-0")
    assert program.config.read_text() == broken


def test_leaving_changes_nothing(program: Program, terminal: Terminal) -> None:
    program.configure()
    program.config.write_text('{"gateway": {\n  "port": }}')
    terminal.start("repair")
    assert "line 2, column 11" in terminal.shows("What shall be done?")
    terminal.type("77")
    assert terminal.shows("none of the choices").count("is not valid") == 1
    terminal.type("q")
    assert "Nothing was changed" in terminal.shows("left-with-1")
    assert program.config.read_text() == '{"gateway": {\n  "port": }}'
    assert not (program.state / "garra.json.broken").exists()


def test_an_editor_a_value_and_a_new_beginning(program: Program, terminal: Terminal) -> None:
    editor = program.home / "edit"
    editor.write_text('#!/bin/sh\nprintf "{gateway: {port: \'x\'}}" > "$1"\n')
    editor.chmod(0o755)
    program.env["EDITOR"] = str(editor)
    program.configure()
    program.config.write_text("no configuration at all")
    terminal.start("repair")
    terminal.shows("What shall be done?")
    choose(terminal, "open it in edit")
    choose(terminal, "type another value for gateway.port")
    terminal.type("many")
    terminal.shows("That would not do either: Invalid input: expected a valid integer")
    choose(terminal, "type another value for gateway.port")
    terminal.type("18999")
    terminal.shows("left-with-0")
    assert program.config.read_text() == "{gateway: {port: 18999}}"
    assert (program.state / "garra.json.broken").read_text() == "no configuration at all"
    program.config.write_text("[1]")
    (program.state / "garra.json.last-good").unlink()
    terminal.press("C-l")
    terminal.tmux("respawn-pane", "-k", terminal.line("repair"))
    choose(terminal, "begin with an empty configuration")
    terminal.type("y")
    terminal.shows("left-with-0")
    assert program.config.read_text() == "{}\n"
    assert (program.state / "garra.json.broken").read_text() == "[1]"
    assert (program.state / "garra.json.broken.1").read_text() == "no configuration at all"


def test_the_agent_can_be_asked(program: Program, terminal: Terminal, server: ModelServer) -> None:
    server.then(Say("Write a number there."))
    program.config.write_text(good(program, server).replace("18999", '"many"').replace('"test"', '"very-secret"'))
    terminal.start("repair")
    choose(terminal, "ask the agent about it")
    terminal.shows("Write a number there.", 30)
    asked = json.dumps(server.requests[-1].body)
    assert "gateway.port" in asked
    assert "very-secret" not in asked


def test_without_a_terminal_it_is_said_and_nothing_is_asked(program: Program, server: ModelServer) -> None:
    program.config.write_text(good(program, server).replace("18999", '"many"'))
    for words in ((), ("repair",)):
        ran = program.run(*words)
        assert (ran.code, ran.out) == (1, "")
        assert "gateway.port" in ran.err
        assert "config restore" in ran.err
    assert program.run("config", "restore").code == 0
    assert "nothing to repair" in program.run("repair").out
