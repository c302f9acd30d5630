"""What `garra secrets` says of what it keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("name", "kind", "plain"), [("BANK", "env", True), ("BANK_KEY", "secret", False)])
def test_a_name_that_is_no_secret_s_is_said_to_be_kept_openly(
    tmp_path: Path, name: str, kind: str, *, plain: bool
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "garra", "secrets", "set", name],
        env={"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"},
        input=b"some words 12345", capture_output=True, check=True,
    )  # fmt: skip
    assert f"{name} is kept in the file." in ran.stdout.decode()
    assert (f"{name} --kind secret" in ran.stderr.decode()) is plain
    assert f'"kind": "{kind}"' in (tmp_path / "state" / "secrets.json").read_text()


def test_what_is_taken_from_a_file_is_told_by_what_it_is(tmp_path: Path) -> None:
    def run(text: str) -> str:
        (tmp_path / ".env").write_text(text)
        ran = subprocess.run(
            [sys.executable, "-m", "garra", "secrets", "import", str(tmp_path / ".env")],
            env={"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"},
            capture_output=True, check=True,
        )  # fmt: skip
        return ran.stdout.decode()

    told = run("BANK_KEY=sk-12345678\nREGION=eu\n")
    assert "Stored: BANK_KEY." in told
    assert "As plain variables, which may be shown: REGION." in told
    assert f"They still stand in {tmp_path}/.env, too" in told
    assert "no line NAME=value" in run("# nothing\n")
