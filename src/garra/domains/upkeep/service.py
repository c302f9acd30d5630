"""The gateway as a service of its user: installed, asked, started and stopped through the machine's service manager."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from garra.config.paths import Paths
from garra.core import units
from garra.core.errors import Unavailable, UserError
from garra.core.patterns import later
from garra.core.units import Plan, State
from garra.domains.upkeep import installs
from garra.io.files import atomic
from garra.io.process import short
from garra.io.process.door import Start

CALL_S: Final = 90.0
"""A call of the service manager may wait for the gateway's end."""
TEXT: Final = 64 << 10
SAID: Final = 500
_NAMED = later(r"\$\{([A-Z_][A-Z0-9_]*)\}|\"source\"\s*:\s*\"env\"[^{}]*\"id\"\s*:\s*\"([A-Z_][A-Z0-9_]*)\"")
_PASSED: Final = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "PATH", "HOME", "USER", "LANG", "SystemRoot")


class Installed:
    """This installation's service, there or not."""

    def __init__(self, paths: Paths, env: Mapping[str, str], platform: str = sys.platform) -> None:
        self._paths, self._env, self._platform = paths, env, platform

    def plan(self) -> Plan:
        """Blocks."""
        return units.plan(self.facts())

    def facts(self) -> units.Facts:
        platform: units.Platform = "darwin" if self._platform == "darwin" else "win32" if self._windows else "linux"
        program = (str(installs.program(self._paths)), "-P", "-m", "garra", "gateway", "run")
        paths, prefix = self._paths, self._paths.prefix
        ours = ("STATE_DIR", "CONFIG_PATH", "PROFILE", "HOME")
        names = ["PATH", *(f"{prefix}_{name}" for name in ours), "GARRA_COMPAT"]
        plain = tuple((name, self._env[name]) for name in names if self._env.get(name))
        return units.Facts(
            platform=platform,
            home=str(paths.home),
            state=str(paths.state),
            program=program,
            profile=paths.profile,
            env=plain,
            secrets=tuple(sorted(self._secrets().items())),
            uid=os.getuid(),
        )

    @property
    def _windows(self) -> bool:
        return self._platform == "win32"

    def _secrets(self) -> dict[str, str]:
        """The variables that the configuration names, and keys; what was kept before stays where it is not set now."""
        try:
            before = units.secrets((self._paths.state / "gateway.env").read_text())
        except OSError:
            before = {}
        try:
            text = self._paths.config_file.read_text(errors="replace")
        except OSError:
            text = ""
        named = {name for pair in _NAMED.findall(text) for name in pair if name}
        named |= {name for name in self._env if name.endswith("_API_KEY")}
        named |= {f"{self._paths.prefix}_GATEWAY_TOKEN", f"{self._paths.prefix}_GATEWAY_PASSWORD"}
        now = {name: self._env[name] for name in named if self._env.get(name)}
        return {name: value for name, value in {**before, **now}.items() if "\n" not in value}

    def state(self) -> State:
        """Blocks. Raises nothing: no service manager is no service."""
        plan = self.plan()
        try:
            code, said = self._call(plan.status)
        except Unavailable as fault:
            return State(Path(plan.files[0].path).is_file(), running=False, words=fault.message)
        found = units.state(plan.kind, code, said)
        if code and plan.kind == "systemd":
            return State(Path(plan.files[0].path).is_file(), running=False, words=said.strip()[:SAID])
        return found

    def install(self) -> Plan:
        """Write its files and start it. Blocks. Raises Unavailable where the service manager does not follow."""
        plan = self.plan()
        for file in plan.files:
            with atomic.writing(Path(file.path)):
                atomic.write(Path(file.path), file.text.encode(), file.mode)
                Path(file.path).chmod(file.mode)
        atomic.folder(self._paths.logs)
        self._all(plan.install)
        return plan

    def rewrite(self) -> bool:
        """Bring the files of an installed service up to date; whether there was one to be. Blocks."""
        plan = self.plan()
        unit = Path(plan.files[0].path)
        if not unit.is_file():
            return False
        if unit.read_text(errors="replace") != plan.files[0].text:
            for file in plan.files:
                atomic.write(Path(file.path), file.text.encode(), file.mode)
            self._all(plan.reload)
        return True

    def start(self) -> None:
        self._all(self._there().start)

    def stop(self) -> None:
        self._all(self._there().stop)

    def restart(self) -> None:
        self._all(self._there().restart)

    def uninstall(self) -> bool:
        """Stop it and remove its files; False where there was none. Blocks."""
        plan = self.plan()
        if not any(Path(path).exists() for path in plan.gone):
            return False
        self._all(plan.uninstall, also=True)
        for path in plan.gone:
            Path(path).unlink(missing_ok=True)
        self._all(plan.reload, also=True)
        return True

    def _there(self) -> Plan:
        plan = self.plan()
        if not Path(plan.files[0].path).is_file():
            raise UserError(f"there is no service {plan.name}: make it with `garra gateway install`")
        return plan

    def _all(self, calls: Sequence[Sequence[str]], *, also: bool = False) -> None:
        """Raises Unavailable at the first that fails; with `also`, goes on."""
        for argv in calls:
            try:
                code, said = self._call(argv)
            except Unavailable:
                if also:
                    continue
                raise
            if code and not also:
                raise Unavailable(f"`{' '.join(argv)}` failed: {said.strip()[:SAID] or f'code {code}'}")

    def _call(self, argv: Sequence[str]) -> tuple[int | None, str]:
        found = shutil.which(argv[0], path=self._env.get("PATH"))
        if found is None:
            raise Unavailable(
                f"there is no {argv[0]} here: run `garra gateway run --restart` under your own supervisor"
            )
        env = {name: self._env[name] for name in _PASSED if name in self._env}
        start = Start((str(Path(found).absolute()), *argv[1:]), str(self._paths.home), env, bare=True)
        done = short.once(start, timeout_s=CALL_S, limit=TEXT)
        return done.code, done.output.decode(errors="replace")


def shown(state: State, plan: Plan) -> dict[str, Any]:
    """As `--json` tells of it."""
    return {
        "kind": plan.kind,
        "name": plan.name,
        "installed": state.installed,
        "running": state.running,
        "pid": state.pid or None,
        "state": state.words or None,
        "file": plan.files[0].path,
    }
