"""The watched child: signals reach it, three steps end it, and it is begun again only when it should be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from garra.io.process import respawn

PARENT = """
import os, sys
from garra.io.process.respawn import Care, watch
sys.exit(watch([sys.executable, "-c", sys.argv[1]], os.environ, Care(tell=lambda line: print(line, flush=True){care})))
"""
STUBBORN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(os.environ["NOTE"]).write_text(str(os.getpid()))
time.sleep(60)
"""
COUNTING = """
import os, pathlib, sys
note = pathlib.Path(os.environ["NOTE"])
note.write_text((note.read_text() if note.exists() else "") + "x")
{deed}
"""


def parent(code: str, note: Path, care: str = "", **env: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "NOTE": str(note), **env}
    script = PARENT.format(care=f", {care}" if care else "")
    return subprocess.Popen([sys.executable, "-c", script, code], env=variables, stdout=subprocess.PIPE, text=True)


def written(note: Path) -> str:
    end = time.monotonic() + 10
    while not (note.exists() and note.read_text()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return note.read_text()


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.req("BOOT-06")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_child_that_ignores_sigterm_is_gone_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    with parent(STUBBORN, tmp_path / "note") as watching:
        child = int(written(tmp_path / "note"))
        if number is signal.SIGINT:
            os.kill(child, signal.SIGSTOP)
        began = time.monotonic()
        watching.send_signal(number)
        assert watching.wait(10) == 137
        assert time.monotonic() - began < 5
    assert not runs(child)


@pytest.mark.req("BOOT-06")
def test_the_signal_is_passed_on_and_the_childs_own_code_comes_back(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "pathlib.Path(os.environ['NOTE']).write_text('up')\n"
        "time.sleep(60)"
    )
    with parent(code, tmp_path / "note", "patience_s=20, again=True") as watching:
        written(tmp_path / "note")
        watching.send_signal(signal.SIGTERM)
        assert watching.wait(10) == 7


@pytest.mark.req("BOOT-05")
def test_the_environment_reaches_the_child_which_does_not_start_itself_anew(tmp_path: Path) -> None:
    code = (
        "import os; from garra.io.process.respawn import wanted\nprint(os.environ['SSL_CERT_FILE'], wanted(os.environ))"
    )
    with parent(code, tmp_path / "note", SSL_CERT_FILE="/own/ca.pem") as watching:
        assert watching.stdout is not None
        assert watching.stdout.read() == "/own/ca.pem False\n"
    assert respawn.wanted({})
    assert not respawn.wanted({respawn.NEVER: "1"})
    assert not respawn.wanted({respawn.MARK: "1"})


def test_a_child_that_dies_is_begun_again_and_one_that_will_not_start_is_not(tmp_path: Path) -> None:
    with parent(
        COUNTING.format(deed="sys.exit(0 if len(note.read_text()) > 1 else 9)"), tmp_path / "a", "again=True"
    ) as one:
        assert one.stdout is not None
        assert "starting it again in 1 s" in one.stdout.read()
        assert one.wait(10) == 0
    assert (tmp_path / "a").read_text() == "xx"
    with parent(COUNTING.format(deed="sys.exit(1)"), tmp_path / "b", "again=True") as other:
        assert other.wait(10) == 1
    assert (tmp_path / "b").read_text() == "x"
