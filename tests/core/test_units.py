"""What makes the gateway a service: the whole text of each file, and every call."""

from __future__ import annotations

import plistlib
from typing import Any

import pytest

from garra.core import units
from garra.core.units import Facts, State
from garra.core.value import replace

FACTS = Facts(
    platform="linux",
    home="/home/ada",
    state="/home/ada/.garra",
    program=("/opt/garra 1/bin/python", "-P", "-m", "garra", "gateway", "run"),
    env=(("PATH", "/usr/bin:/bin"), ("GARRA_X", '50% of "$HOME"')),
    secrets=(("OPENAI_API_KEY", 'sk-"a$b`c\\d'),),
    uid=1000,
)

UNIT = """\
# Written by garra gateway install
[Unit]
Description=Garra gateway
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart="/opt/garra 1/bin/python" "-P" "-m" "garra" "gateway" "run"
Environment="PATH=/usr/bin:/bin"
Environment="GARRA_X=50%% of \\"$$HOME\\""
EnvironmentFile=-/home/ada/.garra/gateway.env
Restart=always
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
KillMode=mixed
TimeoutStopSec=60
OOMPolicy=continue
Delegate=yes
UMask=0077
# The sandbox makes namespaces and mounts of its own; what would forbid that is left out.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=default.target
"""


def facts(**more: Any) -> Facts:
    return replace(FACTS, **more)


@pytest.mark.req("BOOT-17")
def test_systemd() -> None:
    plan = units.plan(FACTS)
    unit, secret = plan.files
    assert (plan.kind, plan.name) == ("systemd", "garra-gateway.service")
    assert (unit.path, unit.mode) == ("/home/ada/.config/systemd/user/garra-gateway.service", 0o644)
    assert unit.text == UNIT
    assert (secret.path, secret.mode) == ("/home/ada/.garra/gateway.env", 0o600)
    assert secret.text == 'OPENAI_API_KEY="sk-\\"a\\$b\\`c\\\\d"\n'
    assert "sk-" not in unit.text
    ctl, name = ("systemctl", "--user"), "garra-gateway.service"
    assert plan.install == ((*ctl, "daemon-reload"), (*ctl, "enable", "--now", name))
    assert (plan.start, plan.stop) == (((*ctl, "start", name),), ((*ctl, "stop", name),))
    assert (plan.restart, plan.uninstall) == (((*ctl, "restart", name),), ((*ctl, "disable", "--now", name),))
    assert plan.reload == ((*ctl, "daemon-reload"),)
    assert "enable-linger" in plan.hint
    assert plan.gone == (unit.path, secret.path)


def test_a_profile_has_its_own_names() -> None:
    assert units.plan(facts(profile="work")).name == "garra-gateway-work.service"
    assert "(work)" in units.plan(facts(profile="work")).files[0].text
    assert units.plan(facts(profile="work", platform="darwin")).name == "ai.garra.work"
    assert units.plan(facts(profile="work", platform="win32")).name == "Garra Gateway (work)"


@pytest.mark.req("BOOT-17")
def test_launchd() -> None:
    plan = units.plan(facts(platform="darwin", home="/Users/a&b", state="/Users/a&b/.garra"))
    plist, script, secret = plan.files
    assert (plan.kind, plan.name) == ("launchd", "ai.garra.gateway")
    assert plist.path == "/Users/a&b/Library/LaunchAgents/ai.garra.gateway.plist"
    assert plistlib.loads(plist.text.encode()) == {
        "Label": "ai.garra.gateway",
        "ProgramArguments": ["/bin/sh", "/Users/a&b/.garra/gateway-start.sh"],
        "EnvironmentVariables": dict(FACTS.env),
        "WorkingDirectory": "/Users/a&b",
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": 10,
        "ExitTimeOut": 60,
        "Umask": 0o077,
        "StandardOutPath": "/Users/a&b/.garra/logs/gateway-service.log",
        "StandardErrorPath": "/Users/a&b/.garra/logs/gateway-service.log",
    }
    assert "sk-" not in plist.text + script.text
    assert (plist.mode, script.mode, secret.mode) == (0o644, 0o700, 0o600)
    assert script.text == (
        "#!/bin/sh\n# Written by garra gateway install\nset -a\n. '/Users/a&b/.garra/gateway.env'\nset +a\n"
        "exec '/opt/garra 1/bin/python' '-P' '-m' 'garra' 'gateway' 'run'\n"
    )
    me = "gui/1000/ai.garra.gateway"
    begin = (("launchctl", "bootstrap", "gui/1000", plist.path), ("launchctl", "kickstart", me))
    assert plan.install == (("launchctl", "enable", me), *begin)
    assert (plan.start, plan.stop) == (begin, (("launchctl", "bootout", me),))
    assert (plan.restart, plan.status) == ((("launchctl", "kickstart", "-k", me),), ("launchctl", "print", me))
    assert plan.uninstall == plan.stop


@pytest.mark.req("BOOT-17")
def test_windows() -> None:
    plan = units.plan(facts(platform="win32", state="C:\\Users\\ada\\.garra", env=(("A", "50%"),)))
    (script,) = plan.files
    assert script.path == "C:\\Users\\ada\\.garra\\gateway.cmd"
    assert script.text == (
        "@echo off\r\nrem Written by garra gateway install\r\n"
        'set "A=50%%"\r\nset "OPENAI_API_KEY=sk-"a$b`c\\d"\r\n'
        '"/opt/garra 1/bin/python" "-P" "-m" "garra" "gateway" "run"\r\n'
    )
    task = ("schtasks", "/Create", "/F", "/SC", "ONLOGON", "/RL", "LIMITED", "/TN", "Garra Gateway")
    run, end = ("schtasks", "/Run", "/TN", "Garra Gateway"), ("schtasks", "/End", "/TN", "Garra Gateway")
    assert plan.install == ((*task, "/TR", '"C:\\Users\\ada\\.garra\\gateway.cmd"'), run)
    assert (plan.start, plan.stop, plan.restart) == ((run,), (end,), (end, run))
    assert plan.uninstall == (end, ("schtasks", "/Delete", "/F", "/TN", "Garra Gateway"))
    assert plan.status == ("schtasks", "/Query", "/FO", "LIST", "/TN", "Garra Gateway")


def test_what_was_kept_of_secrets_is_read_back() -> None:
    text = units.plan(FACTS).files[1].text
    assert units.secrets(text) == dict(FACTS.secrets)
    assert units.secrets('A=plain\nnothing\nB="\nC="x"\nD="y\\') == {"C": "x"}
    assert units.secrets('E="z\\"') == {"E": "z"}


@pytest.mark.parametrize(
    ("kind", "code", "said", "state"),
    [
        ("systemd", 0, "LoadState=loaded\nActiveState=active\nSubState=running\nMainPID=42\nNRestarts=0\n",
         State(installed=True, running=True, pid=42, words="active (running)")),
        ("systemd", 0, "LoadState=not-found\nActiveState=inactive\nSubState=dead\nMainPID=0\nnoise",
         State(installed=False, running=False)),
        ("systemd", 1, "Failed to connect to bus", State(installed=False, running=False)),
        ("launchd", 0, "gui/1 = {\n\tstate = running\n\tpid = 77\n}",
         State(installed=True, running=True, pid=77, words="running")),
        ("launchd", 113, "Could not find service", State(installed=False, running=False)),
        ("schtasks", 0, "TaskName: \\Garra Gateway\nStatus: Running\n",
         State(installed=True, running=True, words="Running")),
        ("schtasks", 1, "ERROR: The system cannot find the file specified.", State(installed=False, running=False)),
    ],
)  # fmt: skip
def test_what_the_service_manager_says(kind: str, code: int, said: str, state: State) -> None:
    assert units.state(kind, code, said) == state
