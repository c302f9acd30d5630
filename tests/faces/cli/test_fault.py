"""A fault of ours is one line for the person, without what was in the variables."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from garra.faces.cli.main import fault_of_ours
sys.excepthook = fault_of_ours
def broken(secret):
    raise ZeroDivisionError(secret)
broken("sk-very-secret")
"""


def test_one_line_and_no_secret() -> None:
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env={})
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("garra: a fault of Garra's own: ZeroDivisionError at <string>:6;")
    assert "sk-very-secret" not in ran.stderr


def test_all_of_it_for_whoever_mends_it() -> None:
    env = {"GARRA_DEBUG": "1"}
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=env)
    assert "Traceback" in ran.stderr
