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
