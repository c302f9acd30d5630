"""E-mail for the suite: a real dovecot, before it a server that can refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from garra.builtin.channels.email.channel import Email
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ports
from garra.testing.channels import MemoryCursor
from garra.testing.smtp import SmtpServer
from tests.e2e.maild import PASSWORD, RECEIVER, Dovecot, house, letter, said

BOT = "bot@bot.example"


class EmailPlatform:
    """A mailbox. The receiving server vouches for its people."""

    name = "email"
    faults: Mapping[str, Callable[[], None]]

    async def __aenter__(self) -> EmailPlatform:
        self.stack = ExitStack()
        folder = self.stack.enter_context(house())
        self.secret, self.up = PASSWORD, True
        self.dovecot = Dovecot(folder / "dovecot")
        await self.dovecot.start()
        self.smtp = await SmtpServer(PASSWORD, deliver=self._deliver).__aenter__()
        self.http, self.tasks = GuardedHttp(), Tasks()
        self.settings: dict[str, Any] = {
            "address": BOT,
            "password": Secret(PASSWORD),
            "authservId": RECEIVER,
            "imap": {"host": "127.0.0.1", "port": self.dovecot.imap, "security": "none"},
            "smtp": {"host": "127.0.0.1", "port": self.smtp.port, "security": "none"},
        }
        self.faults = {
            "passing": lambda: self._fail("rcpt", "451 4.7.1 come again later"),
            "unsure": lambda: self._fail("end", "cut"),
            "refused": lambda: self._fail("end", "554 5.7.1 we do not like this"),
            "auth": lambda: self._fail("auth", "535 5.7.8 authentication failed"),
            "gone": lambda: self._fail("rcpt", "550 5.1.1 nobody of that name"),
        }
        return self

    async def _deliver(self, sender: str, to: str, mail: bytes) -> None:
        await self.dovecot.deliver(to, mail, sender)

    def _fail(self, stage: str, answer: str) -> None:
        self.smtp.fail = (stage, answer)

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()
        self.stack.close()

    def channel(self, cursor: MemoryCursor) -> Email:
        ports = Ports(self.http, SystemClock(), self.tasks, cursor, dial=self.http)
        self.bot = Email(Account("default", self.settings), ports)
        return self.bot

    def known_as(self, user: str) -> str:
        return f"{user}@example.org"

    def address(self, user: str) -> Address:
        return Address("email", "default", f"{user}@example.org", "direct")

    async def say(self, user: str, text: str) -> None:
        await self._reading()
        await self.dovecot.write(BOT, letter(f"{user}@example.org", text))

    async def _reading(self) -> None:
        """A mailbox is read from the moment it is first opened; what lies in it then is left alone."""
        while self.bot.inspect()["idle"] is None:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)

    async def nonsense(self) -> None:
        await self._reading()
        await self.dovecot.deliver(BOT, b"\xff\x00 no mail at all")
        await self.dovecot.deliver(BOT, b"From: =?x?z?=\r\nContent-Type: multipart/mixed\r\n\r\n--\r\n")

    async def poison(self) -> None:
        await self._reading()
        wide = "ann@\uff45xample.org".encode()
        for heads in (b"From: \xff@evil.example", b"From: " + wide, b"From: a@b.c\r\nMessage-ID: <\xff@x>"):
            await self.dovecot.deliver(
                BOT, heads + b"\r\nSubject: \xff\xed\xa0\x80\r\nReferences: <\xff@x>\r\n\r\n\xff"
            )

    async def shown(self, user: str) -> list[str]:
        return said(await asyncio.to_thread(self.dovecot.mails, f"{user}@example.org"))

    def break_link(self) -> None:
        self.settings["imap"] = {**self.settings["imap"], "port": 1}

    def refuse_credential(self) -> None:
        self.settings["password"] = Secret("some-wrong-word")
        self.secret = "some-wrong-word"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.smtp.__aexit__(None, None, None)
            await self.dovecot.stop()
