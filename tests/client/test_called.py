"""What a hint calls this program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = f"#!{sys.executable}\nimport os\nfrom garra.client import called\nprint(called.command(os.environ, 'dev'))\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "my bin" / "garra"
    file.parent.mkdir()
    file.write_text(CODE)
    file.chmod(0o755)
    return file


def said(program: str, cwd: Path, path: str) -> str:
    env = {**os.environ, "PATH": path}
    return subprocess.run([program], env=env, cwd=cwd, capture_output=True, text=True, check=True).stdout.strip()


def test_the_bare_name_where_the_search_path_leads_to_it(program: Path, tmp_path: Path) -> None:
    assert said(str(program), tmp_path, f"/bin:{program.parent}") == "garra --profile dev"


def test_else_as_it_was_called(program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "garra"
    other.parent.mkdir()
    other.write_text("")
    for path in ("/bin", f"{other.parent}:{program.parent}"):
        assert said("my bin/garra", tmp_path, path) == "'my bin/garra' --profile dev"


def test_the_module_has_the_bare_name(tmp_path: Path) -> None:
    code = "import sys; from garra.client import called; sys.argv = ['/x/garra/__main__.py']; print(called.command({}))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "garra\n"
