"""A named program is lent its secrets, started by itself; nothing else ever has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.core.errors import NotFound
from garra.core.execplan import Settings
from garra.core.execrules import Rules
from garra.core.ids import AgentId, RunId
from garra.core.secret import Secret
from garra.domains.exec.errand import Errand, Settled
from garra.domains.exec.lending import lend
from garra.domains.exec.planning import Ground, Host
from garra.sdk.ports import Launch
from tests.domains.exec.house import MAIN

KEY = "sk-known-5f3c9a7e1b2d4c6f8a0e"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bin_ = tmp_path / "bin"
    bin_.mkdir(mode=0o755)
    for name in ("forge", "other"):
        (bin_ / name).write_text("#!/bin/sh\nenv\n")
        (bin_ / name).chmod(0o755)
    (bin_ / "bash").symlink_to("/bin/bash")
    (tmp_path / "work").mkdir()
    return tmp_path


def lent(folder: Path, line: str, *, program: str = "forge", secret: Secret | None = None, **env: str) -> Settled:
    token = Secret(KEY) if secret is None else secret
    settings = Settings(path=(str(folder / "bin"),), lent={program: {"FORGE_TOKEN": token}})
    errand = Errand(
        Launch(line, env=env), Ground(str(folder / "work"), settings, Host()), Rules, None, lambda: 0, MAIN,
        AgentId("main"), RunId("r"), "",
    )  # fmt: skip
    plan = errand.plan()
    return lend(errand, Settled(plan, plan.argv))


@pytest.mark.parametrize("program", ["forge", "path"])
def test_the_program_has_it_without_a_shell(folder: Path, program: str) -> None:
    named = str(folder / "bin" / "forge") if program == "path" else program
    found = lent(folder, "forge pr list 'a b'", program=named)
    assert found.argv == (str(folder / "bin" / "forge"), "pr", "list", "a b")
    assert found.plan.argv == found.argv
    assert found.plan.env["FORGE_TOKEN"] == KEY
    assert found.same


@pytest.mark.parametrize(
    "line",
    [
        "other pr list",
        "forge pr list | cat",
        "forge pr list; env",
        "forge pr list > out.txt",
        "FORGE_HOST=evil.example forge pr list",
        "env forge pr list",
        "bash -c 'forge pr list'",
        "echo $(forge pr list)",
        "forge $FORGE_TOKEN",
        "./forge pr list",
        "nothing pr list",
    ],
)
def test_nothing_else_has_it(folder: Path, line: str) -> None:
    own = folder / "work" / "forge"
    own.write_text("#!/bin/sh\nenv\n")
    own.chmod(0o755)
    found = lent(folder, line)
    assert "FORGE_TOKEN" not in found.plan.env
    assert KEY not in repr(found)


def test_nor_one_that_runs_others(folder: Path) -> None:
    assert "FORGE_TOKEN" not in lent(folder, "bash x.sh", program="bash").plan.env


def test_nor_one_that_the_model_gives_variables(folder: Path) -> None:
    assert "FORGE_TOKEN" not in lent(folder, "forge pr list", FORGE_HOST="evil.example").plan.env


def test_one_that_is_lacking_is_told(folder: Path) -> None:
    with pytest.raises(NotFound, match="FORGE"):
        lent(folder, "forge pr list", secret=Secret("", missing="tools.exec.secretEnv.forge.FORGE_TOKEN: not there"))
