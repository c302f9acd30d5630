"""Real IRC servers with services behind them, and people who sit at them."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
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
                self.answer(line)
                self.lines.append(line)
                self._news.set()

    def answer(self, line: str) -> None:
        if line.startswith("PING"):
            self.say("PONG" + line[4:])

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


def _entered(mark: str, lines: list[str]) -> bool:
    return any(mark in line for line in lines)


class Person(Wired):
    """Somebody with a nick."""

    async def enter(self, port: int, nick: str, *rooms: str) -> Person:
        self.nick = nick
        await self.connect(port, f"NICK {nick}", f"USER {nick} 0 * :{nick}")
        await self.until(lambda lines: any(re.search(f" (376|422) {nick} ", line) for line in lines), 30)
        for room in rooms:
            self.say(f"JOIN {room}")
            await self.until(partial(_entered, f" 366 {nick} {room} "))
        return self

    def tell(self, target: str, text: str) -> None:
        self.say(f"PRIVMSG {target} :{text}")

    def heard(self, source: str) -> list[str]:
        """What `source` said to this person or their rooms."""
        said = [line for line in self.lines if line.startswith(f":{source}!") and " PRIVMSG " in line]
        return [line.partition(" PRIVMSG ")[2].partition(" :")[2] for line in said]


class Services(Wired):
    """The network's services, linked to ngircd: they say who is logged in as what."""

    async def link(self, port: int) -> Services:
        hello = ("PASS word 0210-IRC+ services|1:CHLMX", "SERVER services.test 1 :services")
        await self.connect(port, *hello)
        await self.until(lambda lines: any(" 376 " in line for line in lines))
        self.say(f":services.test 376 {NAME} :End of MOTD command")
        return self

    async def account(self, nick: str, name: str) -> None:
        self.say(f":services.test METADATA {nick} accountname :{name}")


class SpanningServices(Services):
    """The same, linked to InspIRCd, where people have numbers."""

    async def link(self, port: int) -> SpanningServices:
        await self.connect(port, "CAPAB START 1205", "CAPAB END", "SERVER services.test word 0 9ZZ :services")
        await self.until(lambda lines: any(line.startswith("SERVER ") for line in lines))
        self.say(f":9ZZ BURST {time.time():.0f}")
        self.say(":9ZZ ENDBURST")
        await self.until(lambda lines: any(line.endswith(" ENDBURST") for line in lines))
        return self

    def answer(self, line: str) -> None:
        if (asked := re.match(r":(\S+) PING (\S+)", line)) is not None:
            self.say(f":9ZZ PONG {asked[1]}")

    async def account(self, nick: str, name: str) -> None:
        found: list[str] = []

        def known(lines: list[str]) -> bool:
            found[:] = [line.split()[2] for line in lines if re.match(rf":\S+ UID \S+ \S+ {re.escape(nick)} ", line)]
            return bool(found)

        await self.until(known)
        self.say(f":9ZZ METADATA {found[-1]} accountname :{name}")


class Server:
    """A server program on a free port, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.port, self.folder = free_port(), folder
        folder.mkdir()
        folder.chmod(0o755)

    async def run(self, program: str, *words: str) -> None:
        self._process = await asyncio.create_subprocess_exec(
            shutil.which(program) or program, *words, cwd=self.folder,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip

    async def kill(self) -> None:
        self._process.kill()
        await self._process.wait()


class Ngircd(Server):
    """`ngircd`, with no abilities but `multi-prefix`: as plain as servers come."""

    async def start(self) -> None:
        file = self.folder / "ngircd.conf"
        file.write_text(
            f"[Global]\nName={NAME}\nInfo=t\nListen=127.0.0.1\nPorts={self.port}\nServerUID=irc\nServerGID=irc\n"
            "[Options]\nIdent=no\nPAM=no\nDNS=no\n[Limits]\nMaxConnectionsIP=0\nMaxNickLength=20\n"
            "[Server]\nName=services.test\nMyPassword=word\nPeerPassword=word\n"
        )
        await self.run("ngircd", "-n", "-f", str(file))

    async def services(self) -> Services:
        return await Services().link(self.port)


class Inspircd(Server):
    """`inspircd` with all of IRCv3 that it has: accounts with each message, echoes, message ids, tags."""

    MODULES = (
        "spanningtree", "services_account", "cap", "ircv3", "ircv3_accounttag", "ircv3_batch", "ircv3_capnotify",
        "ircv3_ctctags", "ircv3_echomessage", "ircv3_labeledresponse", "ircv3_msgid", "ircv3_servertime",
    )  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._peers = free_port()

    async def start(self) -> None:
        file = self.folder / "inspircd.conf"
        file.write_text(
            f'<server name="{NAME}" description="t" network="T" id="0AA">\n<admin name="a" nick="a" email="a@b.c">\n'
            f'<bind address="127.0.0.1" port="{self.port}" type="clients">\n'
            f'<bind address="127.0.0.1" port="{self._peers}" type="servers">\n'
            '<connect allow="*" resolvehostnames="no" localmax="100" globalmax="100">\n'
            '<link name="services.test" ipaddr="127.0.0.1" port="1" sendpass="word" recvpass="word">\n'
            f'<pid file="{self.folder}/pid">\n<log method="file" type="*" level="default" target="{self.folder}/log">\n'
            + "".join(f'<module name="{name}">\n' for name in self.MODULES)
        )
        await self.run("inspircd", "--runasroot", "--nofork", f"--config={file}")

    async def services(self) -> Services:
        return await SpanningServices().link(self._peers)
