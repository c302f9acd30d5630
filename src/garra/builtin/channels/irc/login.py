"""How a connection becomes ours: abilities, account, nick. Each line heard gives the lines to say next."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from garra.builtin.channels.irc.codec import Me
from garra.builtin.channels.irc.line import Line, write
from garra.builtin.channels.irc.settings import Settings
from garra.sdk.channel import LinkLost, LinkRefused

HISTORY = frozenset({"batch", "draft/chathistory", "message-tags", "server-time"})
"""With these a server tells what was said while we were away."""
WANTED = HISTORY | {"account-tag", "echo-message"}
_CHUNK = 400
_REFUSED: Mapping[str, str] = {
    "464": "the server does not take the password (464): set channels.irc.password to the server's",
    "465": "the server has banned us (465)",
    "902": "the account is locked (902)",
    "904": "the account or its password is wrong (904): see channels.irc.nickserv",
    "905": "the password is too long for this server (905)",
}


def _others(nick: str) -> Iterator[str]:
    """What to be called when `nick` is taken; servers allow nine letters at least."""
    yield nick + "_"
    yield nick[:8] + "_"
    yield from (f"{nick[:7]}_{number}" for number in range(1, 5))


@dataclass(slots=True)
class Login:
    """One connection's way in. `welcomed`: it is through. `logged_in`: to our services account."""

    own: Settings
    me: Me = field(init=False)
    caps: set[str] = field(default_factory=set)
    facts: dict[str, str] = field(default_factory=dict)
    welcomed: bool = False
    logged_in: bool = False
    _offered: dict[str, str] = field(default_factory=dict)
    _others: Iterator[str] = field(init=False)
    _tried: int = 0

    def __post_init__(self) -> None:
        self.me, self._others = Me(self.own.nick), _others(self.own.nick)

    def hello(self) -> list[bytes]:
        first = [write("CAP", "LS", "302")]
        if self.own.password:
            first.append(write("PASS", self.own.password.reveal()))
        return [*first, write("NICK", self.own.nick), write("USER", self.own.username, "0", "*", self.own.realname)]

    def heard(self, line: Line) -> list[bytes]:
        """What to say to it. Raises LinkRefused and LinkLost."""
        if line.command in _REFUSED and not self.welcomed:
            raise LinkRefused(f"{self.own.host}: {_REFUSED[line.command]}")
        match line.command:
            case "CAP":
                return self._capable(line)
            case "AUTHENTICATE":
                return self._account()
            case "903" | "906" | "907":
                self.logged_in = line.command == "903"
                return [write("CAP", "END")] if not self.welcomed else []
            case "432" | "433" | "436" | "437" if not self.welcomed:
                return self._renamed(line)
            case "ERROR" if not self.welcomed and "password" in line.param(-1).lower():  # not all say 464
                raise LinkRefused(f"{self.own.host}: {_REFUSED['464']}")
            case "ERROR":
                raise LinkLost(f"{self.own.host} ends the connection: {line.param(-1)[:200]}")
            case _:
                self._learn(line)
                return []

    def _capable(self, line: Line) -> list[bytes]:
        listed = dict(part.partition("=")[::2] for part in line.param(-1).split())
        match line.param(1).upper():
            case "LS":
                self._offered |= listed
                return [] if line.param(2) == "*" else self._ask()
            case "ACK":
                self.caps |= {name for name in listed if not name.startswith("-")}
                return [write("AUTHENTICATE", "PLAIN")] if "sasl" in self.caps else [write("CAP", "END")]
            case "NAK":
                return [write("CAP", "END")]
            case "DEL":
                self.caps -= set(listed)
        return []

    def _ask(self) -> list[bytes]:
        wanted = WANTED & set(self._offered)
        ways = self._offered.get("sasl", "none")
        if self.own.services.on and (not ways or "PLAIN" in ways.upper().split(",")):
            wanted |= {"sasl"}
        return [write("CAP", "REQ", " ".join(sorted(wanted)))] if wanted else [write("CAP", "END")]

    def _account(self) -> list[bytes]:
        name, word = self.own.services.account, self.own.services.password.reveal()
        text = base64.b64encode(f"\0{name}\0{word}".encode()).decode()
        parts = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
        return [write("AUTHENTICATE", part) for part in parts + ["+"] * (len(parts[-1]) == _CHUNK)]

    def _renamed(self, line: Line) -> list[bytes]:
        if line.command == "432" and not self._tried:
            raise LinkRefused(f"{self.own.host} does not take the nick {self.own.nick!r}: {line.param(-1)[:100]}")
        self._tried += 1
        other = next(self._others, None)
        if other is None:
            raise LinkLost(f"{self.own.host}: the nick {self.own.nick} and every other that was tried are in use")
        return [write("NICK", other)]

    def _learn(self, line: Line) -> None:
        match line.command:
            case "001" if line.param(0):
                self.me = replace(self.me, nick=line.param(0))
            case "005":
                self._supported(line)
            case "376" | "422":
                self.welcomed = True
            case "900":
                self.logged_in = True
            case "NICK" if self.me.own(line.nick) and line.param(0):
                _, mark, rest = self.me.source.partition("!")
                self.me = replace(self.me, nick=line.param(0), source=f"{line.param(0)}!{rest}" if mark else "")
            case "JOIN" if self.me.own(line.nick):
                self.me = replace(self.me, source=line.source)

    def _supported(self, line: Line) -> None:
        self.facts |= dict(part.partition("=")[::2] for part in line.params[1:-1])
        self.me = replace(
            self.me,
            casemapping=self.facts.get("CASEMAPPING", self.me.casemapping),
            signs=self.facts.get("CHANTYPES", self.me.signs),
            status=self.facts.get("PREFIX", "").partition(")")[2] or self.me.status,
        )
