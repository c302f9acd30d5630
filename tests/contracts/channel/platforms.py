"""The platforms the suite runs over. A new channel adds a class here, and all of `test_channel.py` holds for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest

from garra.builtin.channels.irc.channel import Irc
from garra.builtin.channels.telegram.channel import Telegram
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Channel, Ports
from garra.testing.channels import MemoryCursor
from garra.testing.irc import IrcServer
from garra.testing.telegram import Fault, TelegramServer
from tests.contracts.channel.discord_platform import DiscordPlatform
from tests.contracts.channel.email_platform import EmailPlatform
from tests.contracts.channel.matrix_platform import MatrixPlatform
from tests.contracts.channel.poison import ODD
from tests.contracts.channel.slack_platform import SlackPlatform
from tests.contracts.channel.webhook_platform import WebhookPlatform
from tests.contracts.channel.xmpp_platform import XmppPlatform


class Platform(Protocol):
    """A platform in a box. `faults` are its ways to make the next send fail, by the fault they must show as.
    One that sends over the link it receives by has `linked = True`, one that calls us, so that there is no link to
    break, `called = True`; `known_as` gives a user's id, where that is more than the name.
    """

    name: str
    secret: str
    faults: Mapping[str, Callable[[], None]]

    async def __aenter__(self) -> Platform: ...

    async def __aexit__(self, *_: object) -> None: ...

    def channel(self, cursor: MemoryCursor) -> Channel: ...

    def address(self, user: str) -> Address: ...

    async def say(self, user: str, text: str) -> None: ...

    async def nonsense(self) -> None: ...

    async def poison(self) -> None: ...

    async def shown(self, user: str) -> list[str]: ...

    def break_link(self) -> None: ...

    def refuse_credential(self) -> None: ...

    async def close(self) -> None: ...


class TelegramPlatform:
    """Telegram, over the fake Bot API server."""

    name = "telegram"

    async def __aenter__(self) -> TelegramPlatform:
        self.server = await TelegramServer().__aenter__()
        self.up, self.secret = True, self.server.token
        self.http, self.tasks = GuardedHttp(), Tasks()
        self.settings: dict[str, Any] = {"botToken": Secret(self.secret), "apiRoot": self.server.url}
        self.faults = {
            "passing": lambda: self._fail(Fault(429, "Too Many Requests: retry after 3", retry_after=3)),
            "unsure": lambda: self._fail(Fault(kind="cut_after")),
            "refused": lambda: self._fail(Fault(400, "Bad Request: not enough rights to send text messages")),
            "auth": lambda: self._fail(Fault(401, "Unauthorized")),
            "gone": lambda: self._fail(Fault(403, "Forbidden: bot was blocked by the user")),
        }
        return self

    def _fail(self, fault: Fault) -> None:
        self.server.fail("sendMessage", fault)

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()

    def channel(self, cursor: MemoryCursor) -> Telegram:
        return Telegram(Account("default", self.settings), Ports(self.http, SystemClock(), self.tasks, cursor))

    def address(self, user: str) -> Address:
        return Address("telegram", "default", user, "direct")

    async def say(self, user: str, text: str) -> None:
        self.server.say(int(user), text)

    async def nonsense(self) -> None:
        self.server.push({"message": {"message_id": "?", "chat": 7}})
        self.server.push({"some_day": {}})

    async def poison(self) -> None:
        said = self.server.message(666, ODD)
        who = {"id": 666, "is_bot": False, "first_name": ODD, "username": ODD}
        sent = {"file_id": ODD, "file_unique_id": ODD, "file_name": ODD, "mime_type": ODD, "file_size": 10**30}
        self.server.push({"message": {**said, "from": who}})
        self.server.push({"message": {**said, "from": {**who, "id": ODD}}})
        self.server.push({"message": {**said, "chat": {"id": ODD, "type": "private"}}})
        self.server.push({"message": {**said, "message_id": 10**30, "date": -(10**30)}})
        self.server.push({"message": {**said, "document": sent}})
        self.server.push({"callback_query": {"id": ODD, "from": who, "message": said, "data": ODD}})
        self.server.push({ODD: {"a": ODD}})

    async def shown(self, user: str) -> list[str]:
        return self.server.shown(int(user))

    def break_link(self) -> None:
        self.server.fail("getUpdates", Fault(502, "Bad Gateway"))

    def refuse_credential(self) -> None:
        self.settings["botToken"] = Secret("7:wrong")
        self.secret = "7:wrong"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.server.__aexit__(None, None, None)


class IrcPlatform:
    """IRC, over the fake server: with echoes and history, as the newest servers have them."""

    name = "irc"
    linked = True

    async def __aenter__(self) -> IrcPlatform:
        self.secret = "the-server-word"
        self.server = await IrcServer(password=self.secret).__aenter__()
        self.up = True
        self.http, self.tasks = GuardedHttp(), Tasks()
        own = {"host": "127.0.0.1", "port": self.server.port, "tls": False, "nick": "bot"}
        self.settings: dict[str, Any] = {**own, "password": Secret(self.secret)}
        self.faults = {
            "passing": lambda: self._fail("439"),
            "unsure": lambda: self._fail("cut"),
            "refused": lambda: self._fail("404"),
            "gone": lambda: self._fail("401"),
        }
        return self

    def _fail(self, how: str) -> None:
        self.server.fail = how

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()

    def channel(self, cursor: MemoryCursor) -> Irc:
        ports = Ports(self.http, SystemClock(), self.tasks, cursor, dial=self.http)
        return Irc(Account("default", self.settings), ports)

    def address(self, user: str) -> Address:
        return Address("irc", "default", user, "direct")

    async def say(self, user: str, text: str) -> None:
        await self.server.say(user, text)

    async def nonsense(self) -> None:
        await self.server.say("1001", "\x01VERSION\x01")
        self.server.tell(":irc.example")
        self.server.tell(":x!y@z PRIVMSG")

    async def poison(self) -> None:
        await self.server.say("1001", "\x01VERSION\x01")
        for line in (":\udcff!\udcff@\udcff PRIVMSG bot :\udced\udca0\udc80", ":a\0b!c@d PRIVMSG bot :e\0f", "\udcff"):
            self.server.tell(line)

    async def shown(self, user: str) -> list[str]:
        return self.server.shown(user)

    def break_link(self) -> None:
        self.server.deaf = True

    def refuse_credential(self) -> None:
        self.settings["password"] = Secret("some-wrong-word")
        self.secret = "some-wrong-word"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.server.__aexit__(None, None, None)


PLATFORMS = [
    TelegramPlatform,
    IrcPlatform,
    pytest.param(EmailPlatform, marks=pytest.mark.needs("dovecot")),
    DiscordPlatform,
    SlackPlatform,
    MatrixPlatform,
    WebhookPlatform,
    pytest.param(XmppPlatform, marks=pytest.mark.needs("prosody")),
]
