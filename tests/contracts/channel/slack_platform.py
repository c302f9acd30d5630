"""Slack, over the server that plays its Web API and Socket Mode."""

from __future__ import annotations

from typing import Any

from garra.builtin.channels.slack.channel import Slack
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ports
from garra.testing.channels import MemoryCursor
from garra.testing.slack import Fault, SlackServer
from tests.contracts.channel.poison import ODD


class SlackPlatform:
    """Slack."""

    name = "slack"

    async def __aenter__(self) -> SlackPlatform:
        self.server = await SlackServer().__aenter__()
        self.up, self.secret = True, self.server.bot_token
        self.http, self.tasks = GuardedHttp(), Tasks()
        self.settings: dict[str, Any] = {
            "botToken": Secret(self.secret),
            "appToken": Secret(self.server.app_token),
            "apiRoot": self.server.url,
        }
        self.faults = {
            "passing": lambda: self._fail(Fault("ratelimited", status=429, retry_after=3)),
            "unsure": lambda: self._fail(Fault(kind="cut_after")),
            "refused": lambda: self._fail(Fault("restricted_action")),
            "auth": lambda: self._fail(Fault("token_revoked")),
            "gone": lambda: self._fail(Fault("channel_not_found")),
        }
        return self

    def known_as(self, user: str) -> str:
        return f"U{user}"

    def _fail(self, fault: Fault) -> None:
        self.server.fail("chat.postMessage", fault)

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()

    def channel(self, cursor: MemoryCursor) -> Slack:
        ports = Ports(self.http, SystemClock(), self.tasks, cursor, dial=self.http)
        return Slack(Account("default", self.settings), ports)

    def address(self, user: str) -> Address:
        return Address("slack", "default", self.server.dm(f"U{user}"), "direct")

    async def say(self, user: str, text: str) -> None:
        self.server.say(f"U{user}", text)

    async def nonsense(self) -> None:
        self.server.push("some_day", {})
        self.server.happens({"type": "message", "ts": 7})
        self.server.happens(None)

    async def poison(self) -> None:
        said = {"type": "message", "user": "U666", "text": ODD, "channel": "D666", "channel_type": "im"}
        self.server.happens({**said, "ts": self.server.ts()})
        for key in ("user", "channel", "ts", "thread_ts", "subtype", "bot_id", "team", "channel_type"):
            self.server.happens({**said, "ts": self.server.ts(), key: ODD})
        sent = {"id": ODD, "name": ODD, "url_private": ODD, "mimetype": ODD, "size": 10**30}
        self.server.happens({**said, "ts": self.server.ts(), "files": [sent]})
        self.server.push("slash_commands", {"command": ODD, "text": ODD, "user_id": ODD, "channel_id": ODD})
        self.server.push(ODD, {ODD: ODD})

    async def shown(self, user: str) -> list[str]:
        return self.server.shown(self.server.dm(f"U{user}"))

    def break_link(self) -> None:
        self.server.broken = "too_many_websockets"

    def refuse_credential(self) -> None:
        self.settings["botToken"] = Secret("xoxb-some-wrong-token")
        self.secret = "xoxb-some-wrong-token"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.server.__aexit__(None, None, None)
