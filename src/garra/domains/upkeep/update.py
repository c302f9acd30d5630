"""Another version of Garra in this one's place: staged beside it, tried on the real configuration and a copy of the
database, put in place, watched until it is healthy, and taken back where it is not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from garra import __version__
from garra.config.paths import Paths
from garra.core.errors import Conflict, GarraError, UserError
from garra.core.value import frozen
from garra.domains.upkeep import handoff, installs
from garra.domains.upkeep.service import Installed
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.files import atomic
from garra.io.process import detached, pip, short
from garra.io.process.door import Start
from garra.io.store import copies

INSTALL_S: Final = 900.0
TEST_S: Final = 120.0
READY_S: Final = 60.0
"""So long the new version has to become ready, its predecessor's draining included."""
OUTPUT: Final = 1 << 20
LAUNCHER: Final = """\
#!/bin/sh
# Written by garra update: the version in place
exec '{python}' -P -m garra "$@"
"""


@frozen
class Source:
    """Where the new version comes from. `wheel` is a file; else `version`, or the latest, of the user's own index.

    `wheelhouse` is a folder with all packages: no index is asked then. `requirements` is a file of hashed versions that
    everything must match. `reuse` takes the packages of the version at hand.
    """

    wheel: Path | None = None
    version: str = ""
    wheelhouse: Path | None = None
    requirements: Path | None = None
    reuse: bool = False


@frozen
class Ports:
    """What is asked of others: `idle` waits until no turn runs (False: it gave up), `healthy` whether the gateway
    answers, `tell` shows a line of progress.
    """

    idle: Callable[[], bool]
    healthy: Callable[[], bool]
    tell: Callable[[str], None]


class Update:
    """One update of one installation. All of it blocks."""

    def __init__(self, paths: Paths, env: Mapping[str, str], ports: Ports, ready_s: float = READY_S) -> None:
        self._paths, self._env, self._ports, self._ready_s = paths, env, ports, ready_s
        self._clock = SystemClock()
        self.base = installs.base(paths)

    def stage(self, source: Source) -> Path:
        """A virtual environment with the new version. Raises UserError, and leaves nothing, when pip does."""
        stamp = f"{datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC):%Y%m%dT%H%M%S}"
        folder = installs.versions(self._paths) / f"{stamp}-{os.getpid()}"
        atomic.folder(folder.parent)
        env = pip.environment(self._env)
        try:
            self._run((sys.executable, "-P", "-m", "venv", "--without-pip", str(folder)), env, "no environment")
            if source.reuse:
                site = next(folder.glob("lib/python*/site-packages"))
                (site / "garra-packages.pth").write_text(f"{_site()}\n")
            python = str(installs.python(folder))
            argv = (sys.executable, "-P", "-m", "pip", "--python", python, "install", *pip.QUIET, *_wanted(source))
            self._run(argv, env, "it could not be installed")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def tried(self, folder: Path) -> dict[str, Any]:
        """What the version in `folder` says of itself on this configuration and a copy of this database.

        Raises UserError with what is worse there than here.
        """
        copy = self._paths.state / "backups" / f".trial-{os.getpid()}.db"
        _swept(copy.parent)
        try:
            if self._paths.db.is_file():
                copies.copy(self._paths.db, copy)
            argv = (str(installs.python(folder)), "-P", "-m", "garra", "update", "selftest", "--db", str(copy))
            done = short.once(Start(argv, str(self._paths.home), dict(self._env), stderr="apart", bare=True),
                              timeout_s=TEST_S, limit=OUTPUT)  # fmt: skip
        finally:
            for end in ("", "-wal", "-shm", "-journal"):
                copy.with_name(copy.name + end).unlink(missing_ok=True)
        try:
            told = json.loads(done.output)
            told["version"], told["schema"], told["faults"]
        except (ValueError, KeyError, TypeError):
            said = done.output.decode(errors="replace").strip()[-300:]
            raise UserError(
                f"the new version does not run here (code {done.code}): {said or 'it said nothing'}"
            ) from None
        return dict(told)

    def switch(self, folder: Path, version: str) -> dict[str, Any]:
        """Put it in place and have the gateway, where one runs, go on as it. Gives what happened; where the new one
        does not become healthy the old one is back, and `ok` is false. Raises Conflict while turns run.
        """
        holder = lock.holder(self._paths.lock)
        if holder is not None and not self._ports.idle():
            raise Conflict("turns are running, and did not end in time: nothing was changed; try again later")
        before = Path(sys.prefix)
        if self._paths.db.is_file():  # whatever happens from here on, there is a way back
            installs.keep(self._paths)
        self._point("previous", before)
        self._point("current", folder)
        report: dict[str, Any] = {"ok": True, "from": __version__, "to": version, "restarted": holder is not None}
        if holder is not None:
            argv = _argv(int(holder["pid"]))
            why = self._carry(int(holder["pid"]), version)
            if why:
                report |= {"ok": False, "why": why, **self._back(before, int(holder["pid"]), argv)}
        with suppress(GarraError, OSError):
            Installed(self._paths, self._env).rewrite()
        report["launcher"] = self._launch()
        self._note(report)
        return report

    def _carry(self, pid: int, version: str) -> str:
        """Have the process go on as what is in place now; empty when it is healthy, else why not."""
        began = self._clock.now_ms()
        wish = {"at": began, "reason": f"update to {version}", "switch": True, "keep": True}
        handoff.write(handoff.wishes(self._paths), wish)
        os.kill(pid, signal.SIGUSR1)
        while self._clock.now_ms() - began < self._ready_s * 1000:
            self._clock.hold(0.1)
            if not atomic.alive(pid) or _zombie(pid):
                return "the new version ended at its start"
            told = handoff.read(handoff.place(self._paths))
            if told.get("requestedAt", 0) >= began and "after" in told:
                if told["after"].get("version") != version:
                    return f"version {told['after'].get('version')} came back instead"
                return "" if self._ports.healthy() else "the new version does not answer"
        return f"the new version was not ready within {self._ready_s:.0f} s"

    def _back(self, before: Path, pid: int, argv: Sequence[str]) -> dict[str, Any]:
        """The old version in place again, with the database as it was before the new one opened it, and running."""
        self._ports.tell("It is not healthy: going back.")
        self._end(pid)
        self._point("current", before)
        restored = self._database()
        service = Installed(self._paths, self._env)
        if service.state().installed:
            service.restart()
        else:
            python = str(installs.python(before))
            detached.start((python, "-P", "-m", "garra", *(argv or ("gateway", "run"))), self._env, self._paths.home,
                           self._paths.logs / "gateway-after-update.log")  # fmt: skip
        end = self._clock.monotonic() + self._ready_s
        while self._clock.monotonic() < end and not (lock.holder(self._paths.lock) and self._ports.healthy()):
            self._clock.hold(0.2)
        return {"rolledBack": True, "running": lock.holder(self._paths.lock) is not None, "databaseRestored": restored}

    def _end(self, pid: int) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            end = self._clock.monotonic() + 5.0
            while atomic.alive(pid) and not _zombie(pid) and self._clock.monotonic() < end:
                self._clock.hold(0.05)

    def _database(self) -> bool:
        """Whether the copy had to take the place of what the new version made of the database."""
        kept, db = installs.kept(self._paths), self._paths.db
        if not kept.is_file() or copies.schema(kept) == copies.schema(db):
            return False
        aside = f"state.db.after-update-{self._clock.now_ms()}"
        for end in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                db.with_name(db.name + end).rename(kept.with_name(aside + end))
        copies.copy(kept, db)
        return True

    def rollback(self, *, restore: bool) -> dict[str, Any]:
        """Put the previous version back. Raises UserError where there is none, or it cannot read the database."""
        previous = self.base / "previous"
        if not installs.python(previous).exists():
            raise UserError("there is no previous version here")
        kept = installs.kept(self._paths)
        differs = kept.is_file() and copies.schema(kept) != copies.schema(self._paths.db)
        holder = lock.holder(self._paths.lock)
        if differs and (holder is not None or not restore):
            raise UserError(
                "the database has gone on since, and the previous version cannot read it: stop the gateway, then say "
                "--restore-database, which puts back the copy of before the update; what came since is kept aside"
            )
        folder, now = previous.resolve(), (self.base / "current").resolve()
        if differs:
            self._database()
        self._point("current", folder)
        self._point("previous", now)
        report: dict[str, Any] = {"ok": True, "rolledBack": True, "restarted": False, "databaseRestored": differs}
        if holder is not None:
            if not self._ports.idle():
                raise Conflict("turns are running: the next start takes the previous version")
            wish = {"at": self._clock.now_ms(), "reason": "rollback", "switch": True}
            handoff.write(handoff.wishes(self._paths), wish)
            os.kill(int(holder["pid"]), signal.SIGUSR1)
            report["restarted"] = True
        self._note(report)
        return report

    def _point(self, name: str, folder: Path) -> None:
        atomic.folder(self.base)
        draft = self.base / f".{name}.{os.getpid()}"
        draft.unlink(missing_ok=True)
        draft.symlink_to(folder.resolve())
        draft.replace(self.base / name)

    def _launch(self) -> str:
        """A `garra` command that starts the version in place, unless something else stands there."""
        file = self._paths.home / ".local" / "bin" / "garra"
        text = LAUNCHER.format(python=installs.python(self.base / "current"))
        with suppress(OSError):
            if os.path.lexists(file) and "Written by garra update" not in file.read_text(errors="replace"):
                return ""
            file.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(file, text.encode(), 0o755)
            return str(file)
        return ""

    def _run(self, argv: tuple[str, ...], env: Mapping[str, str], what: str) -> None:
        done = short.once(Start(argv, str(self._paths.home), env, bare=True), timeout_s=INSTALL_S, limit=OUTPUT)
        if done.code != 0:
            said = done.output.decode(errors="replace").strip().splitlines()[-3:]
            raise UserError(f"{what}: {' / '.join(said) or f'code {done.code}'}")

    def _note(self, report: Mapping[str, Any]) -> None:
        with suppress(OSError):
            handoff.write(noted(self._paths), {**report, "at": self._clock.now_ms()})


def noted(paths: Paths) -> Path:
    """Where the last update's report is kept."""
    return paths.state / "update.json"


def tidy(paths: Paths) -> list[str]:
    """Remove the versions that are neither in place nor the one before; gives their names. Blocks."""
    base = installs.base(paths)
    used = {(base / name).resolve() for name in ("current", "previous")} | {Path(sys.prefix).resolve()}
    gone = [each for each in installs.versions(paths).glob("*") if each.resolve() not in used]
    for each in gone:
        shutil.rmtree(each, ignore_errors=True)
    return [each.name for each in gone]


def _swept(folder: Path) -> None:
    """Copies of databases that trials which were killed have left."""
    for left in folder.glob(".trial-*.db*"):
        pid = left.name.removeprefix(".trial-").partition(".")[0]
        if pid.isdigit() and not atomic.alive(int(pid)):
            left.unlink(missing_ok=True)


def alone(paths: Paths) -> lock.Lock:
    """One update at a time: hold this meanwhile. Raises Conflict while another runs."""
    try:
        return lock.acquire(paths.locks / "update.lock", {"pid": os.getpid()})
    except Conflict as busy:
        pid = ((busy.details or {}).get("holder") or {}).get("pid", "?")
        raise Conflict(f"another update is under way (process {pid})") from None


def worse(now: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What the self-test of the new version found that this one's does not."""
    return [str(fault) for fault in new["faults"] if fault not in now["faults"]]


def _wanted(source: Source) -> list[str]:
    """What pip is to install, and where from."""
    words = []
    if source.reuse:
        words.append("--no-deps")
    if source.wheelhouse is not None:
        words += ["--no-index", "--find-links", str(source.wheelhouse)]
    if source.requirements is not None:
        words += ["--require-hashes", "-r", str(source.requirements)]
    elif source.wheel is not None:
        words.append(str(source.wheel))
    else:
        words.append(f"garra=={source.version}" if source.version else "garra")
    return words


def _site() -> str:
    """Where this program's packages stand."""
    return str(Path(msgspec.__file__).parent.parent)


def _argv(pid: int) -> list[str]:
    """With which arguments of ours the gateway was started; empty where the system does not say."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        if "gateway" in words:
            return words[words.index("gateway") :]
    return []


def _zombie(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False
