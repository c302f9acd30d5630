"""A program that calls and is called, over a real HTTP server; what was not taken it sends again."""

from __future__ import annotations

import asyncio
from typing import Any

from garra.builtin.channels.webhook.channel import Webhook
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ports
from garra.testing.channels import MemoryCursor
from garra.testing.webhook import SECRET, Fail, Peer, message, signed

AGAIN_S = 0.002


async def _heard(_: Any) -> None:
    """The channel stores by the way its `run` was given."""


class WebhookPlatform:
    """Somebody's program."""

    name = "webhook"
    called = True

    async def __aenter__(self) -> WebhookPlatform:
        self.peer = await Peer().__aenter__()
        self.up, self.secret = True, SECRET
        self.http, self.tasks, self.clock = GuardedHttp(), Tasks(), SystemClock()
        self.settings: dict[str, Any] = {
            "secret": Secret(SECRET),
            "url": f"{self.peer.url}/answers",
            "allowPrivateNetwork": True,
        }
        self.faults = {
            "passing": lambda: self._fail(429),
            "unsure": lambda: self._fail(0),
            "refused": lambda: self._fail(422),
            "auth": lambda: self._fail(401),
            "gone": lambda: self._fail(410),
        }
        self._bot: Webhook | None = None
        self._waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self._sender = asyncio.ensure_future(self._send())
        self._count = 0
        return self

    def _fail(self, status: int) -> None:
        self.peer.fails.append(Fail(status))

    async def __aexit__(self, *_: object) -> None:
        self._sender.cancel()
        await asyncio.wait([self._sender])
        await self.close()
        await self.tasks.close()
        await self.http.close()

    async def _send(self) -> None:
        while True:
            called, body = await self._waiting.get()
            taken = False
            while not taken:
                await asyncio.sleep(AGAIN_S)
                taken = await self._taken(called, body)

    async def _taken(self, called: str, body: bytes) -> bool:
        if self._bot is None:
            return False
        head = signed(SECRET, called, self.clock.now_ms() // 1000, body)
        return (await self._bot.called("POST", head, body, _heard)).status in {200, 400}

    def channel(self, cursor: MemoryCursor) -> Webhook:
        self._bot = Webhook(Account("default", self.settings), Ports(self.http, self.clock, self.tasks, cursor))
        return self._bot

    def address(self, user: str) -> Address:
        return Address("webhook", "default", user, "direct")

    def _put(self, body: bytes) -> None:
        self._count += 1
        self._waiting.put_nowait((f"msg_{self._count}", body))

    async def say(self, user: str, text: str) -> None:
        self._put(message(text, user))

    async def nonsense(self) -> None:
        self._put(b"\xff no JSON")
        self._put(b'{"chat": 7}')
        self._put(message("  ", "1001"))

    async def poison(self) -> None:
        self._put(b'{"chat": "\\ud800", "sender": {"id": "666"}, "text": "\\ud800"}')
        self._put(b'{"chat": "a\\u0000", "sender": {"id": "6\\u0000", "name": "\\u0000"}, "text": "a\\u0000b"}')

    async def shown(self, user: str) -> list[str]:
        return self.peer.shown(user)

    def break_link(self) -> None:
        """There is none: it is called."""

    def refuse_credential(self) -> None:
        self.secret = "whsec_c2hvcnQ="
        self.settings["secret"] = Secret(self.secret)

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.peer.__aexit__(None, None, None)
