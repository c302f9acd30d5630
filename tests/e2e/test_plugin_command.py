"""A plugin's command beside those in the box."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.program import Program, awaited, gateway

pytestmark = [pytest.mark.e2e, pytest.mark.req("BOOT-03")]

MANIFEST = """
id = "greeter"
kind = "plugin"
api = 1

[[command]]
name = "greet"
summary = "say hello to somebody"
module = "greet:run"
help = "garra greet NAME"

[[command]]
name = "status"
summary = "not in the place of ours"
module = "greet:run"
"""
CODE = """
def run(arguments, context):
    if not arguments:
        raise ValueError("nobody is there")
    print("Hello,", *arguments, context.config.get("mark", ""))
    if arguments == ["gateway"]:
        print(context.call("health")["ok"])
    return 3
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path)
    folder = made.state / "extensions" / "greeter"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(MANIFEST)
    (folder / "greet.py").write_text(CODE)
    return made


def test_it_is_listed_called_and_explained_once_the_plugin_is_on(program: Program) -> None:
    assert "greet" not in program.run("--help").out
    unknown = program.run("greet", "Ada")
    switch = "garra config set plugins.entries.greeter.enabled true"
    line = f"garra: greet is a command of the plugin greeter, which is off; switch it on with: {switch}\n"
    assert (unknown.code, unknown.err) == (2, line)
    program.configure(plugins={"entries": {"greeter": {"enabled": True, "config": {"mark": "!"}}}})
    listed = program.run("--help")
    assert (listed.code, "say hello to somebody" in listed.out) == (0, True)
    for shell in ("bash", "zsh", "fish"):
        script = program.run("completion", shell).out
        assert "greet" in script
        assert "install" in script
    assert "not in the place of ours" not in listed.out
    assert "its command status is not taken" in listed.err
    assert "its command status is not taken" in program.run("plugins", "list").out
    ran = program.run("greet", "Ada", "--loud")
    assert (ran.code, ran.out, ran.err) == (3, "Hello, Ada --loud !\n", "")
    helped = program.run("greet", "--help")
    assert (helped.code, "garra greet NAME" in helped.out) == (0, True)
    assert program.run("help", "greet").out == helped.out
    assert "did you mean greet?" in program.run("gret").err
    assert "Garra" in program.run("status").out


def test_a_broken_one_is_one_line_and_harms_nobody(program: Program) -> None:
    program.configure(plugins={"entries": {"greeter": {"enabled": True}}})
    failed = program.run("greet")
    assert (failed.code, failed.out) == (1, "")
    assert failed.err == "garra: plugin greeter: its command greet failed: ValueError: nobody is there\n"
    (program.state / "extensions/greeter/greet.py").write_text("import nothing_of_that_name")
    assert "does not load" in program.run("greet", "x").err
    assert "say hello" in program.run("--help").out
    program.config.write_text('{"plugins": {"entries": {"greeter": {"enabled": true')
    assert program.run("--help").code == 0


def test_it_reaches_the_gateway(program: Program) -> None:
    program.configure(plugins={"entries": {"greeter": {"enabled": True}}})
    away = program.run("greet", "gateway")
    assert (away.code, "no gateway answers" in away.err) == (1, True)
    with gateway(program):
        awaited(lambda: program.run("health").code == 0)
        assert program.run("greet", "gateway").out.endswith("True\n")


def test_help_runs_nothing_of_a_plugin_and_loads_nothing_heavy(program: Program) -> None:
    program.configure(plugins={"entries": {"greeter": {"enabled": True}}})
    code = (
        "import sys; from garra.faces.cli.main import run; run(['--help'])\n"
        "print({'pydantic', 'asyncio', 'httpx2', 'textual', 'starlette', 'subprocess'} & set(sys.modules))\n"
        "print([name for name in sys.modules if 'greet' in name])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=program.variables, capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout.splitlines()[-2:] == ["set()", "[]"]
