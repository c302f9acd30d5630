"""The launcher: fast, dependency-free, and never started twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from garra.faces.cli.table import COMMANDS
from tests.e2e.program import ROOT, Program

pytestmark = pytest.mark.e2e


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def bare(code: str, *flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A Python that sees our source and the standard library alone."""
    return subprocess.run(
        [sys.executable, "-S", *flags, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def launched(*argv: str) -> str:
    return f"import sys; sys.argv = {['garra', *argv]!r}; from garra.__main__ import main; sys.exit(main())"


@pytest.mark.req("BOOT-01")
def test_version_needs_nothing_but_the_standard_library() -> None:
    ran = bare(launched("--version"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("Garra 0.1.0")


@pytest.mark.req("BOOT-02")
def test_an_old_python_is_told_what_is_needed() -> None:
    ran = bare("import sys; sys.version_info = (3, 9, 1, 'final', 0); " + launched("--version"))
    assert ran.returncode == 1
    assert "3.11 or newer" in ran.stderr
    assert "3.9" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_version_loads_few_modules() -> None:
    code = launched("--version").replace("sys.exit(main())", "main(); print(len(sys.modules), *sorted(sys.modules))")
    words = bare(code).stdout.splitlines()[1].split()
    assert int(words[0]) < 60
    assert {"argparse", "asyncio", "dataclasses", "json", "re", "pathlib"}.isdisjoint(words)


@pytest.mark.req("BOOT-04")
def test_importing_the_entry_starts_nothing() -> None:
    ran = bare("import garra.__main__, garra.faces.cli.main, threading; print(threading.active_count())")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n", "")


@pytest.mark.req("BOOT-09")
def test_every_listed_command_answers_help(program: Program) -> None:
    listed = program.run("--help")
    assert listed.code == 0
    for row in COMMANDS:
        ran = program.run(*row.name.split(), "--help")
        assert (ran.code, ran.err) == (0, ""), row.name
        assert "usage: garra" in ran.out
        if " " not in row.name:
            assert row.summary in listed.out


@pytest.mark.req("BOOT-09")
def test_gateway_run_loads_no_other_command(program: Program) -> None:
    ran = program.run("gateway", "run", "--help")
    assert ran.code == 0
    code = (
        "import sys; from garra.faces.cli.main import run\n"
        "try: run(['gateway', 'run', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted(name for name in sys.modules if name.startswith('garra.faces.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    commands = {row.module for row in COMMANDS} - {"garra.faces.cli.gateway_run"}
    assert commands.isdisjoint(eval(loaded.stdout.splitlines()[-1]))


def test_an_unknown_command_is_named_with_the_nearest(program: Program) -> None:
    ran = program.run("statsu")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "garra: no such command: statsu; did you mean status? See garra --help\n"
    assert program.run("--nonsense").code == 2


def test_global_options_choose_the_place(program: Program, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    assert program.run("--state-dir", str(other), "status", "--json").json["state"]["path"] == str(other)
    assert program.run("--profile=work", "status", "--json").json["state"]["path"].endswith("/.garra-work")
    assert program.run("--dev", "status", "--json").json["state"]["path"].endswith("/.garra-dev")
    for wrong in (["--profile"], ["--profile", "../x"], ["--log-level", "loud", "status"]):
        assert program.run(*wrong).code == 2


def test_a_status_loads_no_heavy_library(program: Program) -> None:
    code = (
        "import sys; from garra.faces.cli.main import run; run(['status'])\n"
        "print({'pydantic', 'asyncio', 'httpx2', 'textual', 'websockets', 'starlette', 'msgspec'} & set(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=program.variables, capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout.splitlines()[-1] == "set()"


def test_output_that_nobody_reads_is_no_fault(program: Program) -> None:
    script = f"{sys.executable} -m garra --help | true; {sys.executable} -m garra gateway schema --help | head -1"
    ran = subprocess.run(["sh", "-c", script], env=program.variables, capture_output=True, text=True, timeout=30)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_fault(program: Program, closed: str) -> None:
    for command in ("--help", "status"):
        script = f"{sys.executable} -m garra {command} {closed}"
        ran = subprocess.run(["sh", "-c", script], env=program.variables, capture_output=True, text=True, timeout=30)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert bool(ran.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_a_level_of_thinking_that_is_none_is_named(program: Program) -> None:
    ran = program.run("agent", "--local", "-m", "hi", "--thinking", "loud")
    assert ran.code == 2
    assert "unknown thinking level 'loud': use one of off, minimal" in ran.err
