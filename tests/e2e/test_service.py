"""The service commands on a machine whose service manager is a small one of ours: it records what it is told, and
really starts and ends the program of the unit.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.program import Program, awaited, port
from tests.e2e.resident import free_port

pytestmark = pytest.mark.e2e

FAKE = f"""#!{sys.executable}
import os, shlex, signal, subprocess, sys
from pathlib import Path
home = Path(os.environ["HOME"])
words = sys.argv[1:]
with (home / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\\n")
assert words[0] == "--user"
act, name = words[1], next((word for word in words[2:] if word.endswith(".service")), "")
unit, kept = home / ".config/systemd/user" / name, home / "fake.pid"
pid = int(kept.read_text()) if kept.exists() else 0
def start():
    lines = unit.read_text().splitlines()
    value = lambda key: [line[len(key) + 1:] for line in lines if line.startswith(key + "=")]
    env = dict(shlex.split(line)[0].split("=", 1) for line in value("Environment"))
    more = Path(value("EnvironmentFile")[0][1:]).read_text().splitlines()
    env |= dict(shlex.split(line)[0].split("=", 1) for line in more)
    log = (home / "gateway.log").open("ab")
    child = subprocess.Popen(shlex.split(value("ExecStart")[0]), env={{"HOME": str(home), **env}},
                             stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    kept.write_text(str(child.pid))
def stop():
    if pid:
        os.kill(pid, signal.SIGTERM)
        kept.unlink()
if act == "show":
    there = unit.is_file()
    print(f"LoadState={{'loaded' if there else 'not-found'}}")
    state = ("active", "running") if pid else ("inactive", "dead")
    print("ActiveState=%s\\nSubState=%s\\nMainPID=%d" % (*state, pid))
elif act in ("enable", "start"):
    start()
elif act in ("stop", "disable"):
    stop()
elif act == "restart":
    stop()
    start()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "systemctl").write_text(FAKE)
    (bin_ / "systemctl").chmod(0o755)
    made = Program(tmp_path, {"PATH": f"{bin_}:/usr/bin:/bin", "MY_TOKEN": "secret-of-mine-0123456789"})
    if "PYTHONPATH" in os.environ:
        made.env["PYTHONPATH"] = os.environ["PYTHONPATH"]
    made.configure(gateway={"port": free_port(), "auth": {"mode": "token", "token": "${MY_TOKEN}"}})
    yield made
    if (kept := tmp_path / "fake.pid").exists():
        os.kill(int(kept.read_text()), signal.SIGKILL)


def listens(program: Program, *, yes: bool) -> bool:
    return (port(program) is not None) == yes


def calls(program: Program) -> list[str]:
    return [line for line in (program.home / "calls").read_text().splitlines() if " show " not in line]


@pytest.mark.req("BOOT-17")
def test_install_status_stop_start_restart_uninstall(program: Program) -> None:
    name = "garra-gateway.service"
    made = program.run("gateway", "install", "--json")
    assert made.code == 0, made.err
    assert made.json["service"]["installed"] is True
    unit, secret = program.home / ".config/systemd/user" / name, program.state / "gateway.env"
    assert "secret-of-mine" not in unit.read_text() + made.out
    assert 'MY_TOKEN="secret-of-mine-0123456789"' in secret.read_text()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert calls(program) == ["--user daemon-reload", f"--user enable --now {name}"]
    awaited(lambda: port(program) is not None, what=lambda: (program.home / "gateway.log").read_text())
    shown = program.run("gateway", "status", "--json")
    assert shown.code == 0, shown.out
    assert shown.json["service"] == {
        "kind": "systemd", "name": name, "installed": True, "running": True,
        "pid": int((program.home / "fake.pid").read_text()), "state": "active (running)", "file": str(unit),
    }  # fmt: skip
    at = port(program)
    again = program.run("gateway", "restart", "--json")
    assert again.code == 0, again.err
    assert again.json["restart"]["after"]["readyMs"] > 0
    assert port(program) == at, "in place"
    assert calls(program)[2:] == []
    for words, call in ((("stop",), f"stop {name}"), (("start",), f"start {name}")):
        assert program.run("gateway", *words).code == 0
        assert calls(program)[-1] == f"--user {call}"
        awaited(partial(listens, program, yes=words == ("start",)))
    assert program.run("gateway", "restart", "--force").code == 0
    assert calls(program)[-1] == f"--user restart {name}"
    gone = program.run("daemon", "uninstall", "--json")
    assert gone.code == 0, gone.err
    assert gone.json["service"]["installed"] is False
    assert not unit.exists()
    assert not secret.exists()
    assert calls(program)[-2:] == [f"--user disable --now {name}", "--user daemon-reload"]


def test_what_cannot_be_is_said_in_a_line(program: Program) -> None:
    none = program.run("gateway", "start")
    assert (none.code, none.out) == (1, "")
    assert "garra gateway install" in none.err
    mine = program.run("gateway", "stop", "--json", text="")
    assert mine.code == 1
    program.env["PATH"] = str(program.home / "nowhere")
    lost = program.run("gateway", "install")
    assert lost.code == 1
    assert "there is no systemctl here" in lost.err
    program.env["GARRA_SHELL"] = "1"
    agent = program.run("gateway", "stop")
    assert agent.code == 1
    assert "the owner does" in agent.err
