"""How the gateway is made a service of its user: the files and the calls, for systemd, launchd and Windows' tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal
from xml.sax.saxutils import escape

from garra.core.value import frozen

Platform = Literal["linux", "darwin", "win32"]
Calls = tuple[tuple[str, ...], ...]

STOP_S: Final = 60
"""How long a gateway that is told to stop has until it is killed; it lets running work end for 20 seconds."""


@frozen
class File:
    path: str
    text: str
    mode: int = 0o600


@frozen
class Facts:
    """Of one installation. `program` starts the gateway; `env` are variables that are no secrets; `secrets` are put
    into a file of their own, which nobody else may read.
    """

    platform: Platform
    home: str
    state: str
    program: tuple[str, ...]
    profile: str = ""
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    uid: int = 0


@frozen
class Plan:
    """`files` are written at the installation and `gone` removed with it; each list of calls is run in its order.
    `hint` is one line that the owner should read.
    """

    kind: Literal["systemd", "launchd", "schtasks"]
    name: str
    files: tuple[File, ...]
    install: Calls
    start: Calls
    stop: Calls
    restart: Calls
    uninstall: Calls
    status: tuple[str, ...]
    reload: Calls = ()
    hint: str = ""

    @property
    def gone(self) -> tuple[str, ...]:
        return tuple(file.path for file in self.files)


@frozen
class State:
    """What the service manager says. `pid` 0: nothing runs."""

    installed: bool
    running: bool
    pid: int = 0
    words: str = ""


def plan(facts: Facts) -> Plan:
    match facts.platform:
        case "darwin":
            return _launchd(facts)
        case "win32":
            return _schtasks(facts)
        case _:
            return _systemd(facts)


def _systemd(facts: Facts) -> Plan:
    name = f"garra-gateway-{facts.profile}.service" if facts.profile else "garra-gateway.service"
    ctl = ("systemctl", "--user")
    secret = File(f"{facts.state}/gateway.env", _env_file(facts.secrets))
    unit = File(f"{facts.home}/.config/systemd/user/{name}", _unit(facts, secret.path), 0o644)
    return Plan(
        kind="systemd",
        name=name,
        files=(unit, secret),
        install=((*ctl, "daemon-reload"), (*ctl, "enable", "--now", name)),
        start=((*ctl, "start", name),),
        stop=((*ctl, "stop", name),),
        restart=((*ctl, "restart", name),),
        uninstall=((*ctl, "disable", "--now", name),),
        status=(*ctl, "show", name, "--property=LoadState,ActiveState,SubState,MainPID,NRestarts"),
        reload=((*ctl, "daemon-reload"),),
        hint="It ends when you log out, unless you say once: loginctl enable-linger",
    )


def _unit(facts: Facts, secrets: str) -> str:
    program = " ".join(_quoted(word) for word in facts.program)
    env = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in facts.env)
    return f"""\
# Written by garra gateway install
[Unit]
Description=Garra gateway{f" ({facts.profile})" if facts.profile else ""}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={program}
{env}EnvironmentFile=-{secrets.replace("%", "%%")}
Restart=always
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
KillMode=mixed
TimeoutStopSec={STOP_S}
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


def _quoted(word: str) -> str:
    """As systemd reads a word in double quotes: `%`, `$` and backslashes mean themselves."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\n", "\\n")
    return f'"{plain}"'


def _env_file(secrets: Sequence[tuple[str, str]]) -> str:
    """Lines that both systemd and a shell read."""
    return "".join(f"{name}={_worded(value)}\n" for name, value in secrets)


def _worded(value: str) -> str:
    for letter in '\\"$`':
        value = value.replace(letter, f"\\{letter}")
    return f'"{value}"'


def secrets(text: str) -> dict[str, str]:
    """What an environment file of ours says."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and value.startswith('"') and value.endswith('"') and len(value) > 1:
            found[name] = _unworded(value[1:-1])
    return found


def _unworded(value: str) -> str:
    letters = iter(value)
    return "".join(next(letters, "") if letter == "\\" else letter for letter in letters)


def _launchd(facts: Facts) -> Plan:
    label = f"ai.garra.{facts.profile}" if facts.profile else "ai.garra.gateway"
    domain = f"gui/{facts.uid}"
    secret = File(f"{facts.state}/gateway.env", _env_file(facts.secrets))
    script = File(f"{facts.state}/gateway-start.sh", _script(facts, secret.path), 0o700)
    plist = File(f"{facts.home}/Library/LaunchAgents/{label}.plist", _plist(facts, label, script.path), 0o644)
    begin = (("launchctl", "bootstrap", domain, plist.path), ("launchctl", "kickstart", f"{domain}/{label}"))
    return Plan(
        kind="launchd",
        name=label,
        files=(plist, script, secret),
        install=(("launchctl", "enable", f"{domain}/{label}"), *begin),
        start=begin,
        stop=(("launchctl", "bootout", f"{domain}/{label}"),),
        restart=(("launchctl", "kickstart", "-k", f"{domain}/{label}"),),
        uninstall=(("launchctl", "bootout", f"{domain}/{label}"),),
        status=("launchctl", "print", f"{domain}/{label}"),
    )


def _script(facts: Facts, secrets: str) -> str:
    words = " ".join(_shell(word) for word in facts.program)
    return f"""\
#!/bin/sh
# Written by garra gateway install
set -a
. {_shell(secrets)}
set +a
exec {words}
"""


def _shell(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _plist(facts: Facts, label: str, script: str) -> str:
    env = "".join(f"    <key>{escape(name)}</key>\n    <string>{escape(value)}</string>\n" for name, value in facts.env)
    log = escape(f"{facts.state}/logs/gateway-service.log")
    return f"""\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{escape(label)}</string>
  <key>ProgramArguments</key>
  <array>
    <string>/bin/sh</string>
    <string>{escape(script)}</string>
  </array>
  <key>EnvironmentVariables</key>
  <dict>
{env}  </dict>
  <key>WorkingDirectory</key>
  <string>{escape(facts.home)}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>10</integer>
  <key>ExitTimeOut</key>
  <integer>{STOP_S}</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>{log}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"""


def _schtasks(facts: Facts) -> Plan:
    name = f"Garra Gateway ({facts.profile})" if facts.profile else "Garra Gateway"
    script = File(f"{facts.state}\\gateway.cmd", _batch(facts))
    task = ("schtasks", "/Create", "/F", "/SC", "ONLOGON", "/RL", "LIMITED", "/TN", name, "/TR", f'"{script.path}"')
    run, end = ("schtasks", "/Run", "/TN", name), ("schtasks", "/End", "/TN", name)
    return Plan(
        kind="schtasks",
        name=name,
        files=(script,),
        install=(task, run),
        start=(run,),
        stop=(end,),
        restart=(end, run),
        uninstall=(end, ("schtasks", "/Delete", "/F", "/TN", name)),
        status=("schtasks", "/Query", "/FO", "LIST", "/TN", name),
    )


def _batch(facts: Facts) -> str:
    """Windows has no second file for secrets here: who may read the state folder may read this one."""
    pairs = (*facts.env, *facts.secrets)
    lines = [f'set "{name}={value.replace("%", "%%")}"' for name, value in pairs]
    program = " ".join(f'"{word}"' for word in facts.program)
    return "\r\n".join(["@echo off", "rem Written by garra gateway install", *lines, program, ""])


def state(kind: str, code: int | None, said: str) -> State:
    """What the answer to `Plan.status` means; `code` is how that call ended."""
    if kind == "systemd":
        rows = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
        there = code == 0 and rows.get("LoadState") == "loaded"
        words = f"{rows.get('ActiveState', '')} ({rows.get('SubState', '')})" if there else ""
        return State(there, rows.get("ActiveState") == "active", _number(rows.get("MainPID", "")), words)
    if kind == "launchd":
        rows = dict(line.strip().split(" = ", 1) for line in said.splitlines() if " = " in line)
        return State(code == 0, rows.get("state") == "running", _number(rows.get("pid", "")), rows.get("state", ""))
    rows = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in said.splitlines())}
    return State(code == 0, rows.get("Status") == "Running", 0, rows.get("Status", ""))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
