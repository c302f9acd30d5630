"""Who is who: the account behind a nick, and the nick of an account, as the server tells it."""

from __future__ import annotations

from collections.abc import Callable

from garra.builtin.channels.irc.codec import Me, identity
from garra.builtin.channels.irc.line import Line, write
from garra.builtin.channels.irc.wire import Wire
from garra.core.value import frozen
from garra.sdk.ports import Clock

KEPT_S = 60.0
"""So long an answer about somebody in a channel is believed, unless they leave it or change their name."""
FRESH_S = 5.0
"""So long who has a nick is believed while an answer goes out in pieces."""
_MOST = 1000


@frozen
class Who:
    """What WHOIS told: `nick!user@host` (empty: nobody has the nick), and the account."""

    source: str = ""
    account: str = ""


class People:
    """The people of one connection."""

    def __init__(self, wire: Wire, clock: Clock, me: Callable[[], Me], *, by_name: bool) -> None:
        self._wire, self._clock, self._me, self._by_name = wire, clock, me, by_name
        self._accounts: dict[str, tuple[str, float]] = {}
        self._nicks: dict[str, str] = {}
        self._checked: dict[str, tuple[str, float]] = {}

    async def account(self, line: Line, *, direct: bool) -> str:
        """The account behind a message, asked of the server. A direct message's is asked for each time: somebody who
        shares no channel with us may go, and another take the nick, unseen."""
        source = self._me().same(line.source)
        known, at = self._accounts.get(source, ("", -KEPT_S))
        if not direct and self._clock.monotonic() - at < KEPT_S:
            return known
        who = await self.whois(line.nick)
        account = who.account if self._me().same(who.source) == source else ""
        if len(self._accounts) >= _MOST:
            self._accounts.clear()
        self._accounts[source] = account, self._clock.monotonic()
        return account

    def met(self, person: str, nick: str) -> None:
        """Somebody with an identity was heard under `nick`."""
        if len(self._nicks) >= _MOST:
            self._nicks.clear()
        self._nicks[person] = nick

    def moved(self, line: Line) -> None:
        """A QUIT, PART, NICK, KICK or ACCOUNT line: what was known of that nick may be so no longer."""
        nick = self._me().same(line.param(1) if line.command == "KICK" else line.nick)
        self._accounts = {key: kept for key, kept in self._accounts.items() if key.partition("!")[0] != nick}
        self._checked.clear()

    async def nick(self, person: str) -> str:
        """The nick `person` (see `codec.identity`) has now, as the server says; empty when they are not there."""
        nick, at = self._checked.get(person, ("", 0.0))
        if nick and self._clock.monotonic() - at < FRESH_S:
            return nick
        for nick in dict.fromkeys((self._nicks.get(person, ""), person.partition("!")[0])):
            if nick:
                who = await self.whois(nick)
                line = Line("", source=who.source)
                if who.source and identity(line, who.account, self._me(), by_name=self._by_name) == person:
                    self._checked = {person: (nick, self._clock.monotonic())}
                    return nick
        return ""

    async def whois(self, nick: str) -> Who:
        """Raises LinkLost, and TimeoutError."""
        told = {"source": "", "account": ""}
        me, wanted = self._me(), self._me().same(nick)

        def answer(line: Line) -> Who | None:
            if line.personal or me.same(line.param(1)) != wanted:
                return None
            if line.command == "311":
                told["source"] = f"{line.param(1)}!{line.param(2)}@{line.param(3)}"
            elif line.command == "330":
                told["account"] = line.param(2)
            return Who(**told) if line.command == "318" else None

        return await self._wire.ask([write("WHOIS", nick)], answer)
