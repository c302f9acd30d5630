"""A real IRC server with services behind it, and people who sit at it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.e2e.resident import free_port

NAME = "irc.test.local"


class Wired:
    """A raw connection: `lines` is all it was told. It answers PINGs."""

    async def connect(self, port: int, *hello: str) -> None:
        self.lines: list[str] = []
        self._news = asyncio.Event()
        async with asyncio.timeout(10):
            while True:
                try:
                    self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                except OSError:
                    await asyncio.sleep(0.05)
        self._task = asyncio.ensure_future(self._read())
        for line in hello:
            self.say(line)

    async def _read(self) -> None:
        with suppress(OSError):
            while raw := await self._reader.readline():
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if line.startswith("PING"):
                    self.say("PONG" + line[4:])
                self.lines.append(line)
                self._news.set()

    def say(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")

    async def until(self, found: Callable[[list[str]], object], timeout_s: float = 15.0) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not found(self.lines):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError("\n".join(self.lines[-20:])) from None

    async def close(self) -> None:
        self._writer.transport.abort()
        await asyncio.wait([self._task])


class Person(Wired):
    """Somebody with a nick."""

    async def enter(self, port: int, nick: str, *rooms: str) -> Person:
        self.nick = nick
        await self.connect(port, f"NICK {nick}", f"USER {nick} 0 * :{nick}", *(f"JOIN {room}" for room in rooms))
        ends = [f" 366 {nick} {room} " for room in rooms] or [f" 376 {nick} "]
        await self.until(lambda lines: all(any(end in line for line in lines) for end in ends))
        return self

    def tell(self, target: str, text: str) -> None:
        self.say(f"PRIVMSG {target} :{text}")

    def heard(self, source: str) -> list[str]:
        """What `source` said to this person or their rooms."""
        said = [line for line in self.lines if line.startswith(f":{source}!") and " PRIVMSG " in line]
        return [line.partition(" PRIVMSG ")[2].partition(" :")[2] for line in said]


class Services(Wired):
    """The network's services: they say who is logged in as what."""

    async def link(self, port: int) -> Services:
        hello = ("PASS word 0210-IRC+ services|1:CHLMX", "SERVER services.test 1 :services")
        await self.connect(port, *hello)
        await self.until(lambda lines: any(" 376 " in line for line in lines))
        self.say(f":services.test 376 {NAME} :End of MOTD command")
        return self

    def account(self, nick: str, name: str) -> None:
        self.say(f":services.test METADATA {nick} accountname :{name}")


class Ngircd:
    """`ngircd` on a free port, with no abilities but `multi-prefix`: as plain as servers come."""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        folder.mkdir()
        folder.chmod(0o755)
        self._file = folder / "ngircd.conf"
        self._file.write_text(
            f"[Global]\nName={NAME}\nInfo=t\nListen=127.0.0.1\nPorts={self.port}\nServerUID=irc\nServerGID=irc\n"
            "[Options]\nIdent=no\nPAM=no\nDNS=no\n[Limits]\nMaxConnectionsIP=0\nMaxNickLength=20\n"
            "[Server]\nName=services.test\nMyPassword=word\nPeerPassword=word\n"
        )

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            shutil.which("ngircd") or "ngircd", "-n", "-f", str(self._file),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()
