"""The one browser of a house: started when it is wanted, in a process group that ends with us, never twice."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import msgspec

from garra.config.sections.web import Browser as Section
from garra.core.errors import ToolFailed, Unavailable
from garra.core.hosts import Hosts
from garra.core.ids import SessionKey
from garra.domains.web import settings
from garra.io.files import atomic
from garra.io.http.bound import Binding
from garra.io.http.outside import Outside
from garra.io.http.relay import Refusal, Relay, Way
from garra.io.process import stub
from garra.io.process.child import Child, started_at
from garra.io.process.door import Limits, Programs, Start
from garra.sdk.browsing import Standing
from garra.sdk.ports import Clock, Spawn, Task, Via

MODULE: Final = "garra.builtin.tools.browser.worker"
NAMES: Final = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave",
)
START_S: Final = 40.0
ANSWER_S: Final = 75.0
LINE: Final = 32 << 20
FILES: Final = 256 << 20
"""Bytes of one file that it may write: its storage, a download."""
KEPT: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "DISPLAY", "WAYLAND_DISPLAY")


class Running:
    """One browser that runs: whom to ask, and who waits for an answer."""

    def __init__(self, child: Child, relay: Relay, scratch: str) -> None:
        self.child, self.relay, self.scratch = child, relay, scratch
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.number = 0

    def expect(self, number: int) -> asyncio.Future[dict[str, Any]]:
        made: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.waiting[number] = made
        return made

    async def hear(self) -> None:
        """Hand answers to those who wait, until it ends."""
        assert self.child.stdout is not None
        try:
            while line := await self.child.stdout.line(LINE):
                said = msgspec.json.decode(line)
                if (waits := self.waiting.pop(said["id"], None)) is not None and not waits.done():
                    waits.set_result(said)
        except (Unavailable, msgspec.DecodeError, KeyError, TypeError):
            pass  # it speaks nonsense, or no more: the same end
        finally:
            for waits in self.waiting.values():
                if not waits.done():
                    waits.set_result({"error": "the browser has ended"})
            self.waiting.clear()


class Host:
    """As `sdk.browsing.Browsing`. `folder` is STATE/browser."""

    def __init__(
        self, folder: Path, section: Callable[[], Section], via: Callable[[], Via], *, programs: Programs,
        env: Mapping[str, str], spawn: Spawn, clock: Clock, bound: Binding = lambda: (),
    ) -> None:  # fmt: skip
        self._folder, self._section = folder, section
        self._programs, self._env, self._spawn, self._clock = programs, env, spawn, clock
        self._outside = Outside(self._hosts, via, bound)
        self._running: Running | None = None
        self._lock = asyncio.Lock()
        self._used = 0.0
        self._watch: Task | None = None

    def _hosts(self) -> Hosts:
        return settings.hosts(self._section().ssrf_policy)

    async def standing(self) -> Standing:
        executable, lacks = await asyncio.to_thread(self._found)
        return Standing(self._alive() is not None, executable, lacks)

    @property
    def running(self) -> bool:
        return self._alive() is not None

    def _alive(self) -> Running | None:
        running = self._running
        return running if running is not None and running.child.code is None else None

    def _found(self) -> tuple[str, str]:
        return found(self._section(), self._env)

    async def ask(self, session_key: SessionKey, op: str, more: Mapping[str, Any]) -> Mapping[str, Any]:
        """As `sdk.browsing.Browsing`. A secret that is bound to hosts goes into no other address, and into no page:
        where a page sends what is typed there, only the page knows.
        """
        try:
            self._outside.door.bounds.check(_host(more), _texts(more))
        except Unavailable as refused:
            raise ToolFailed(refused.message) from None
        running = await self._started()
        self._used = self._clock.monotonic()
        running.number += 1
        number = running.number
        waits = running.expect(number)
        line = json.dumps({**more, "id": number, "session": session_key, "op": op}).encode() + b"\n"
        try:
            await running.child.stdin.write(line)
            async with asyncio.timeout(ANSWER_S):
                said = await waits
        except TimeoutError:
            await self.stop()
            raise ToolFailed("the browser hung and was stopped; open the page again") from None
        except Unavailable:
            raise ToolFailed("the browser has ended; open the page again") from None
        finally:
            running.waiting.pop(number, None)
        if "error" in said:
            raise ToolFailed(said["error"], details={"outside": True} if said.get("outside") else None)
        found: Mapping[str, Any] = said["ok"]
        return found

    async def _started(self) -> Running:
        async with self._lock:
            if (running := self._alive()) is not None:
                return running
            await self._ended()
            executable, lacks = await asyncio.to_thread(self._found)
            if lacks:
                raise ToolFailed(lacks)
            self._running = await self._start(executable)
            self._used = self._clock.monotonic()
            self._watch = self._spawn(self._until_idle(), "browser, until nobody uses it")
            return self._running

    async def _start(self, executable: str) -> Running:
        """Raises ToolFailed."""
        await asyncio.to_thread(self._prepare)
        listener = socket.create_server(("127.0.0.1", 0))
        relay = Relay(self._judge, self._spawn)
        await relay.serve(listener)
        scratch = await asyncio.to_thread(tempfile.mkdtemp, prefix="garra-browser-")
        env = self._built(scratch)
        argv = (sys.executable, "-P", "-m", MODULE)
        start = Start(
            argv, str(self._folder), env, stdin=True, stderr="drop", keep=True, limits=Limits(file_bytes=FILES)
        )
        running = Running(await self._programs.start(start), relay, scratch)
        self._spawn(running.hear(), "browser, its answers")
        ready = running.expect(0)
        try:
            await running.child.stdin.write(self._first(executable, listener.getsockname()[1], env))
            async with asyncio.timeout(START_S):
                said = await ready
            if "error" in said:
                raise ToolFailed(f"the browser did not start ({executable}): look at it with {executable} --headless")
        except (TimeoutError, ToolFailed, Unavailable) as fault:
            await self._over(running)
            raise (
                fault if isinstance(fault, ToolFailed) else ToolFailed("the browser did not start in time")
            ) from None
        await asyncio.to_thread(self._record, running.child.pid, scratch)
        return running

    def _first(self, executable: str, port: int, env: Mapping[str, str]) -> bytes:
        section = self._section()
        asked = {
            "executable": executable,
            "headless": section.headless,
            "sandbox": not section.no_sandbox and os.geteuid() != 0,
            "proxy": f"http://127.0.0.1:{port}",
            "folder": str(self._folder),
            "most": section.tab_cleanup.max_tabs_per_session,
            "idle": section.tab_cleanup.idle_minutes * 60 if section.tab_cleanup.enabled else 1e9,
            "limit": round(section.download_max_mb * (1 << 20)),
            "env": dict(env),
        }
        return json.dumps(asked).encode() + b"\n"

    def _built(self, scratch: str) -> dict[str, str]:
        """Its sockets are in `scratch`: a path below the state folder may be too long for them."""
        kept = {name: self._env[name] for name in KEPT if name in self._env}
        return {**kept, "HOME": str(self._folder / "home"), "TMPDIR": scratch}

    def _judge(self, host: str, port: str) -> Way | Refusal:
        if not port.isdigit() or not 0 < int(port) < 65_536:
            return Refusal(f"{host}:{port} is no address")
        if self._hosts().verdict(host) == "closed":
            return Refusal(f"{host} is among the hosts that the owner blocks")
        return Way(self._outside.door, host.strip("[]"), int(port), lambda: None, lambda _: None)

    def _prepare(self) -> None:
        """End what an earlier gateway left, and clean up after it. Blocks."""
        with atomic.writing(self._folder):
            atomic.folder(self._folder)
            reap(self._folder / "processes.json")
            shutil.rmtree(self._folder / "downloads", ignore_errors=True)
            for name in ("downloads", "home", "sessions"):
                atomic.folder(self._folder / name)

    def _record(self, pid: int, scratch: str) -> None:
        """Which processes it has, so that the next start can end what this one could not. Blocks."""
        every = [pid, *stub.below(pid)]
        rows = [[each, began] for each in every if (began := started_at(each)) is not None]
        atomic.write(self._folder / "processes.json", json.dumps({"scratch": scratch, "processes": rows}).encode())

    async def _until_idle(self) -> None:
        while (running := self._alive()) is not None:
            left = self._used + self._section().idle_minutes * 60 - self._clock.monotonic()
            if not self._section().enabled or (left <= 0 and not running.waiting):
                await self.stop()
                return
            await self._clock.sleep(min(max(left, 1.0), 60.0))

    async def stop(self) -> None:
        """As `sdk.browsing.Browsing`."""
        async with self._lock:
            await self._ended()

    async def _ended(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            await self._over(running)

    async def _over(self, running: Running) -> None:
        await asyncio.shield(running.child.kill(grace_s=2.0))
        running.child.close()
        await running.relay.close()
        await asyncio.to_thread(self._tidy, running.scratch)

    def _tidy(self, scratch: str) -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        (self._folder / "processes.json").unlink(missing_ok=True)

    async def take(self, name: str) -> bytes:
        """As `sdk.browsing.Browsing`."""
        if not name.startswith("kept-") or not name[5:].isdigit():
            raise ToolFailed("there is no such download")
        return await asyncio.to_thread(_taken, self._folder / "downloads" / name)

    async def close(self) -> None:
        await self.stop()
        await self._outside.close()


def _host(more: Mapping[str, Any]) -> str:
    try:
        return urlsplit(str(more.get("url", ""))).hostname or "a page"
    except ValueError:
        return "a page"


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
            yield unquote(value)
        case Mapping():
            for each in value.values():
                yield from _texts(each)
        case list() | tuple():
            for each in value:
                yield from _texts(each)


def found(section: Section, env: Mapping[str, str]) -> tuple[str, str]:
    """(the browser's executable, what is lacking in one line): one of them is empty. Blocks."""
    if not section.enabled:
        return "", "The browser is off; the owner switches it on: garra config set browser.enabled true"
    importlib.invalidate_caches()
    if importlib.util.find_spec("playwright") is None:
        return "", (
            "The browser needs the package playwright, which is not installed. Its owner runs: "
            "garra plugins install browser"
        )
    named = section.executable_path
    path = env.get("PATH", "")
    program = named if named and os.access(named, os.X_OK) else "" if named else _program(path)
    if program:
        return program, ""
    where = f"browser.executablePath {named} is no program" if named else "No Chromium, Chrome, Edge or Brave is found"
    return "", f"{where}: install one (apt install chromium), or set browser.executablePath"


def _program(path: str) -> str:
    return next((found for name in NAMES if (found := shutil.which(name, path=path))), "")


def _taken(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        path.unlink()
    except OSError as error:
        raise ToolFailed(f"the download is gone: {error.strerror}") from None
    return data


def reap(record: Path) -> int:
    """End the processes of `record` that are still the same ones; how many there were. Blocks."""
    try:
        told = json.loads(record.read_bytes())
        known = [(int(pid), int(began)) for pid, began in told["processes"]]
        scratch = Path(told["scratch"])
    except (OSError, ValueError, TypeError, LookupError):
        return 0
    left = [pid for pid, began in known if pid > 1 and started_at(pid) == began]
    stub.signal_all(left, signal.SIGKILL)
    if scratch.name.startswith("garra-browser-") and not scratch.is_symlink():
        shutil.rmtree(scratch, ignore_errors=True)
    record.unlink(missing_ok=True)
    return len(left)
