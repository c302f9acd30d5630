"""XMPP for the suite: a real prosody, with a module that refuses on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from xml.etree.ElementTree import Element

from garra.builtin.channels.xmpp.channel import Xmpp
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ports
from garra.testing.channels import MemoryCursor
from tests.e2e.xmppd import PASSWORD, Person, Prosody, house

BOT = "bot@localhost"


class XmppPlatform:
    """One server, one person. What is said to the bot before it first came is in its archive, and left alone there."""

    name = "xmpp"
    linked = True
    faults: Mapping[str, Callable[[], None]]

    async def __aenter__(self) -> XmppPlatform:
        self.stack = ExitStack()
        folder = self.stack.enter_context(house())
        self.server = Prosody(folder, "bot", "1001")
        await self.server.start()
        self.person = await Person(self.server.port, "1001").enter()
        self.secret, self.up = PASSWORD, True
        self.http, self.tasks = GuardedHttp(), Tasks()
        self.settings: dict[str, Any] = {
            "jid": BOT,
            "password": Secret(PASSWORD),
            "host": "127.0.0.1",
            "port": self.server.port,
            "security": "none",
        }
        self.faults = dict.fromkeys(
            ("passing", "unsure", "refused", "gone"), lambda: None
        )  # the server knows the words
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()
        self.stack.close()

    def channel(self, cursor: MemoryCursor) -> Xmpp:
        ports = Ports(self.http, SystemClock(), self.tasks, cursor, dial=self.http)
        self.bot = Xmpp(Account("default", self.settings), ports)
        return self.bot

    def known_as(self, user: str) -> str:
        return f"{user}@localhost"

    def address(self, user: str) -> Address:
        return Address("xmpp", "default", f"{user}@localhost", "direct")

    async def say(self, user: str, text: str) -> None:
        await self._there()
        self.person.tell(BOT, text)

    async def _there(self) -> None:
        while self.bot.inspect()["archive"] is None:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)

    async def nonsense(self) -> None:
        await self._there()
        sealed = Element("{eu.siacs.conversations.axolotl}encrypted")
        self.person.tell(BOT, "", payloads=[sealed])
        self.person.tell(BOT, "", payloads=[Element("{x:y}z"), Element("{urn:xmpp:mam:2}result")])

    async def poison(self) -> None:
        """XML has no such characters: the server refuses them. What Unicode calls no character it lets by."""
        await self._there()
        self.person.tell(BOT, "\ufffd\ufdd0")

    async def shown(self, user: str) -> list[str]:
        await asyncio.sleep(0.3)  # confirmed by the server is not yet shown
        return self.person.said(BOT)

    def break_link(self) -> None:
        self.settings["port"] = 1

    def refuse_credential(self) -> None:
        self.settings["password"] = Secret("some-wrong-word")
        self.secret = "some-wrong-word"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.person.close()
            await self.server.stop()
