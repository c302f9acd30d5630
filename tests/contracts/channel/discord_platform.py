"""Discord, over the server that plays its gateway and REST."""

from __future__ import annotations

from typing import Any

from garra.builtin.channels.discord.channel import Discord
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ports
from garra.testing.channels import MemoryCursor
from garra.testing.discord import DiscordServer, Fault
from tests.contracts.channel.poison import ODD


class DiscordPlatform:
    """Discord."""

    name = "discord"

    async def __aenter__(self) -> DiscordPlatform:
        self.server = await DiscordServer().__aenter__()
        self.up, self.secret = True, self.server.token
        self.http, self.tasks = GuardedHttp(), Tasks()
        self.settings: dict[str, Any] = {"token": Secret(self.secret), "apiRoot": self.server.url}
        self.faults = {
            "passing": lambda: self._fail(Fault(429, "You are being rate limited.", retry_after=3.5)),
            "unsure": lambda: self._fail(Fault(kind="cut_after")),
            "refused": lambda: self._fail(Fault(403, "Missing Permissions", 50013)),
            "auth": lambda: self._fail(Fault(401, "401: Unauthorized")),
            "gone": lambda: self._fail(Fault(404, "Unknown Channel", 10003)),
        }
        return self

    def _fail(self, fault: Fault) -> None:
        self.server.fail("/messages", fault)

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()

    def channel(self, cursor: MemoryCursor) -> Discord:
        ports = Ports(self.http, SystemClock(), self.tasks, cursor, dial=self.http)
        return Discord(Account("default", self.settings), ports)

    def address(self, user: str) -> Address:
        return Address("discord", "default", self.server.dm(user), "direct")

    async def say(self, user: str, text: str) -> None:
        await self.server.entered()
        self.server.say(user, text)

    async def nonsense(self) -> None:
        await self.server.entered()
        self.server.push("MESSAGE_CREATE", {"id": "?", "channel_id": 7})
        self.server.push("SOME_DAY", {})
        self.server.push("MESSAGE_CREATE", None)

    async def poison(self) -> None:
        await self.server.entered()
        said = self.server.message("666", ODD, self.server.dm("666"))
        self.server.push("MESSAGE_CREATE", said)
        for key in ("id", "channel_id", "guild_id", "timestamp", "webhook_id"):
            self.server.push("MESSAGE_CREATE", {**said, key: ODD})
        self.server.push("MESSAGE_CREATE", {**said, "author": {"id": ODD, "username": ODD, "global_name": ODD}})
        sent = {"id": ODD, "filename": ODD, "url": ODD, "content_type": ODD, "size": 10**30}
        self.server.push("MESSAGE_CREATE", {**said, "id": self.server.id(), "attachments": [sent]})
        self.server.push(ODD, {ODD: ODD})
        rooms = [{"id": ODD, "type": ODD, "name": ODD}, None]
        self.server.push("GUILD_CREATE", {"id": ODD, "channels": rooms, "threads": None, "members": [None]})
        self.server.push("GUILD_CREATE", {"id": ODD, "channels": 7})
        self.server.push("THREAD_LIST_SYNC", {"threads": 7})
        self.server.push("GUILD_MEMBER_UPDATE", {"user": {"id": self.server.bot}, "roles": 7})

    async def shown(self, user: str) -> list[str]:
        return self.server.shown(self.server.dm(user))

    def break_link(self) -> None:
        self.server.broken = 4000

    def refuse_credential(self) -> None:
        self.settings["token"] = Secret("some.wrong.token")
        self.secret = "some.wrong.token"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.server.__aexit__(None, None, None)
