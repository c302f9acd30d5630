"""Messages of IRC as events of the host. Pure: who a nick belongs to is handed in.

A nick belongs to whoever takes it. A person is the account they are logged in to at the network's services; whoever is
logged in to none has no identity, unless the owner says that nick and host are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from garra.builtin.channels.irc.line import Line, ctcp, fold, seen
from garra.core.value import frozen
from garra.sdk.channel import Address, Ignored, Inbound, Sender

CHANNEL = "irc"
_NICK = r"A-Za-z0-9_\-\[\]\\`^{}|"


@frozen
class Me:
    """We, as the server knows us. `signs` begin a channel's name, `status` may stand before it."""

    nick: str
    source: str = ""
    casemapping: str = "rfc1459"
    signs: str = "#&"
    status: str = "~&@%+"

    def same(self, name: str) -> str:
        """A name as it is compared and kept."""
        return fold(name, self.casemapping)

    def own(self, nick: str) -> bool:
        return self.same(nick) == self.same(self.nick)

    def room(self, target: str) -> str:
        """The channel that a message to `target` was said in; empty for a message to a person."""
        bare = target.lstrip(self.status) if target[:1] in self.status and target[:1] not in self.signs else target
        return self.same(bare) if bare[:1] in self.signs else ""


def identity(line: Line, account: str, me: Me, *, by_name: bool) -> str:
    """Who said it, as lists name them. Accounts have no `!`, so no nick can pass for one."""
    if account and account != "*" and "!" not in account:
        return me.same(account)
    return mask(line, me) if by_name else ""


def mask(line: Line, me: Me) -> str:
    nick, _, rest = line.source.partition("!")
    return f"{me.same(nick)}!{rest}"


@frozen
class Reader:
    """Reads the messages of one connection. `new_id` makes an id where the server gives none."""

    account: str
    me: Me
    new_id: Callable[[], str]
    by_name: bool = False

    def read(self, line: Line, account: str, now_ms: int) -> Inbound | Ignored:
        """A PRIVMSG or NOTICE. `account` is the one its sender is logged in to, empty for none."""
        me, who = self.me, identity(line, account, self.me, by_name=self.by_name)
        room = me.room(line.param(0))
        known = line.tags.get("msgid") or self.new_id()
        chat = room or who or mask(line, me)
        address = Address(CHANNEL, self.account, chat, "group" if room else "direct")
        request, words = ctcp(line.param(-1))
        text = seen(words).strip()
        raw = {"source": line.source, "target": line.param(0), "text": line.param(-1), "account": account or None}
        if line.command == "NOTICE" or request not in {"", "ACTION"}:
            return Ignored(known, address, f"ctcp-{request.lower()}" if request else "notice", raw)
        if not text:
            return Ignored(known, address, raw=raw)
        said, mentioned = addressed(text, me.nick)
        sender = Sender(who, line.nick, line.nick, "bot" in line.tags or "draft/bot" in line.tags)
        return Inbound(
            known,
            "message",
            address,
            sender,
            f"* {line.nick} {text}" if request else said,
            timestamp_ms(line.tags.get("time", "")) or now_ms,
            mentioned,
            own=me.own(line.nick),
            reply_to=line.tags.get("+reply") or line.tags.get("+draft/reply") or "",
            raw=raw,
        )


def addressed(text: str, nick: str) -> tuple[str, bool]:
    """The words without our nick where it opens them (`nick: …`), and whether they name us at all."""
    name = re.escape(nick)
    opening = re.match(rf"@?{name}(?:[:,;]\s*|\s+|$)", text, re.IGNORECASE)
    if opening and text[opening.end() :].strip():
        return text[opening.end() :].strip(), True
    return text, re.search(rf"(?<![{_NICK}]){name}(?![{_NICK}])", text, re.IGNORECASE) is not None


def timestamp_ms(text: str) -> int:
    """A `server-time`, 0 for none or nonsense."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0
