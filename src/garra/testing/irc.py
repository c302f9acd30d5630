"""An IRC server with no network behind it: loopback, IRCv3 abilities, people with accounts, faults on demand.

async with IrcServer() as server:       # host 127.0.0.1, port `server.port`
    await server.say("ann", "hello")    # a person, logged in as `ann`, writes to the bot
    server.fail = "404"                 # the next message of the bot is refused so; or "cut"
    server.shown("ann")                 # what the bot wrote to them
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

FULL = ("message-tags", "server-time", "account-tag", "echo-message", "batch", "draft/chathistory", "sasl=PLAIN")


@dataclass
class IrcServer:
    """`async with IrcServer() as server:` gives a running one. `abilities` are what CAP LS tells; `password` and
    `sasl` (base64 of the right answer) are asked for where they are set; `taken` are nicks in use; `accounts` who is
    logged in as what, by nick, where that is not their nick.
    """

    abilities: tuple[str, ...] = FULL
    password: str = ""
    sasl: str = ""
    taken: set[str] = field(default_factory=set)
    accounts: dict[str, str] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    shut: Mapping[str, str] = field(default_factory=dict)
    nickserv: str = ""
    fail: str = ""
    deaf: bool = False
    banned: bool = False
    port: int = 0
    lines: list[str] = field(default_factory=list)
    log: list[tuple[str, str, str, str]] = field(default_factory=list)
    bot: _Client | None = None
    _ids: count[int] = field(default_factory=lambda: count(1))
    _clock: count[int] = field(default_factory=lambda: count(4_000_000_000_000))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> IrcServer:
        self._server = await asyncio.start_server(self._client, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.sleep(0.02)  # the transports say goodbye

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        client = _Client(self, writer)
        with suppress(OSError, asyncio.CancelledError):
            while not self.deaf and not client.over and (raw := await reader.readline()):
                self.lines.append(raw.decode("utf-8", "replace").rstrip("\r\n"))
                client.heard(self.lines[-1])
                await writer.drain()
        if self.bot is client:
            self.bot = None
            self._entered.clear()
        writer.transport.abort()
        self._tasks.discard(task)

    def enter(self) -> None:
        """The bot has answered its first PING."""
        self._entered.set()

    # ---- people

    async def say(self, nick: str, text: str, target: str = "", command: str = "PRIVMSG") -> None:
        """Somebody writes to the bot, or to a channel. Waits for the bot to be there."""
        async with asyncio.timeout(10):
            await self._entered.wait()
        assert self.bot is not None
        at = self.later()
        record = (self.tags(nick, at), f"{nick}!u@{nick}.example", target or self.bot.nick, text)
        self.log.append(record)
        self.bot.pass_on(command, record)

    def miss(self, nick: str, text: str) -> None:
        """Somebody writes to the bot while it is away; only the history has it."""
        self.log.append((self.tags(nick, self.later()), f"{nick}!u@{nick}.example", "bot", text))

    def shown(self, nick: str) -> list[str]:
        """What the bot wrote to a nick or channel."""
        return [line.partition(" :")[2] for line in self.lines if f"PRIVMSG {nick} :" in line]

    def tell(self, line: str) -> None:
        """Say a line to the bot as it stands."""
        assert self.bot is not None
        self.bot.say(line)

    def tags(self, nick: str, at: str) -> str:
        account = self.accounts.get(nick, nick)
        return f"time={at};msgid=m{next(self._ids)}" + (f";account={account}" if account else "")

    def later(self) -> str:
        """Later each time, and later than now."""
        at = next(self._clock)
        return f"2096-10-02T07:06:{at // 1000 % 60:02d}.{at % 1000:03d}Z"


class _Client:
    """One connection."""

    def __init__(self, server: IrcServer, writer: asyncio.StreamWriter) -> None:
        self.server, self._writer = server, writer
        self.nick, self.over = "*", False
        self._caps: set[str] = set()
        self._waits, self._named, self._word = False, False, ""

    def say(self, line: str) -> None:
        self._writer.write(line.encode("utf-8", "surrogateescape") + b"\r\n")

    def number(self, number: str, text: str) -> None:
        self.say(f":irc.example {number} {self.nick} {text}")

    def heard(self, line: str) -> None:
        if line.startswith("@"):
            line = line.partition(" ")[2]
        head, mark, tail = line.partition(" :")
        command, *words = head.split()
        told = getattr(self, f"_{command.lower()}", None)
        if told is not None:
            told([*words, tail] if mark else words)
        self._arrive()

    def _arrive(self) -> None:
        if self._waits or not self._named or self.nick == "*" or self.server.bot is self:
            return
        if self.server.banned:
            self.number("465", ":You are banned from this server")
            return
        if self._word != self.server.password:
            self.number("464", ":Password incorrect")
            self.say("ERROR :Bad password")
            self.over = True
            return
        self.server.bot = self
        self.number("001", f":Welcome {self.nick}")
        self.number("005", "CASEMAPPING=ascii CHANTYPES=# PREFIX=(ov)@+ CHATHISTORY=100 BOT=B :are supported")
        self.number("422", ":No message of the day")
        self.say(f"PING {self.nick}-entered")

    def pass_on(self, command: str, record: tuple[str, str, str, str], batch: str = "") -> None:
        tags, source, target, text = record
        kept = [part for part in tags.split(";") if self._wants(part.partition("=")[0])]
        kept += [f"batch={batch}"] if batch else []
        head = f"@{';'.join(kept)} " if kept else ""
        self.say(f"{head}:{source} {command} {target} :{text}")

    def _wants(self, tag: str) -> bool:
        return {"time": "server-time", "msgid": "message-tags", "account": "account-tag"}[tag] in self._caps

    # ---- what the bot may say, by command

    def _cap(self, words: list[str]) -> None:
        match words[0]:
            case "LS":
                self._waits = True
                self.say(f":irc.example CAP * LS :{' '.join(self.server.abilities)}")
            case "REQ":
                self._caps = set(words[1].split())
                self.say(f":irc.example CAP * ACK :{words[1]}")
            case "END":
                self._waits = False

    def _authenticate(self, words: list[str]) -> None:
        if words[0] == "PLAIN":
            self.say("AUTHENTICATE +")
        elif words[0] == self.server.sasl:
            self.number("900", "* bot :You are logged in")
            self.number("903", ":SASL authentication successful")
        else:
            self.number("904", ":SASL authentication failed")

    def _pass(self, words: list[str]) -> None:
        self._word = words[0]

    def _user(self, words: list[str]) -> None:
        self._named = True

    def _nick(self, words: list[str]) -> None:
        if words[0] in self.server.taken:
            self.number("433", f"{words[0]} :Nickname is already in use")
            return
        if self.server.bot is self:
            self.say(f":{self.nick}!~b@bot.example NICK {words[0]}")
        self.nick = words[0]

    def _ping(self, words: list[str]) -> None:
        self.say(f":irc.example PONG irc.example :{words[0]}")

    def _pong(self, words: list[str]) -> None:
        self.server.enter()

    def _join(self, words: list[str]) -> None:
        if number := self.server.shut.get(words[0]):
            self.number(number, f"{words[0]} :Cannot join channel")
        else:
            self.say(f":{self.nick}!~b@bot.example JOIN {words[0]}")

    def _whois(self, words: list[str]) -> None:
        nick = words[0]
        if nick in self.server.absent:
            self.number("401", f"{nick} :No such nick")
        else:
            self.number("311", f"{nick} u {nick}.example * :{nick}")
            if account := self.server.accounts.get(nick, nick):
                self.number("330", f"{nick} {account} :is logged in as")
        self.number("318", f"{nick} :End of WHOIS")

    def _privmsg(self, words: list[str]) -> None:
        target, text = words
        if target == "NickServ" and self.server.nickserv:
            self.say(f":NickServ!n@services NOTICE {self.nick} :{self.server.nickserv}")
            return
        fault, self.server.fail = self.server.fail, ""
        if fault == "cut":
            self.over = True
        elif fault or target in self.server.absent:
            self.number(fault or "401", f"{target} :Refused")
        elif "echo-message" in self._caps:
            at = self.server.later()
            self.pass_on("PRIVMSG", (self.server.tags("", at), f"{self.nick}!~b@bot.example", target, text))

    def _chathistory(self, words: list[str]) -> None:
        since = words[2].removeprefix("timestamp=")
        found = [one for one in self.server.log if one[0].partition(";")[0] > f"time={since}"]
        if words[0] == "TARGETS":
            self.say(":irc.example BATCH +t draft/chathistory-targets")
            for nick in dict.fromkeys(one[1].partition("!")[0] for one in found):
                self.say(f"@batch=t :irc.example CHATHISTORY TARGETS {nick} {since}")
            self.say(":irc.example BATCH -t")
            return
        self.say(f":irc.example BATCH +h{words[1]} chathistory {words[1]}")
        for one in found:
            if one[1].startswith(f"{words[1]}!"):
                self.pass_on("PRIVMSG", one, f"h{words[1]}")
        self.say(f":irc.example BATCH -h{words[1]}")
