"""Matrix, over the homeserver of one bot."""

from __future__ import annotations

from typing import Any

from garra.builtin.channels.matrix.channel import Matrix
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Ports
from garra.testing.channels import MemoryCursor
from garra.testing.matrix import MatrixFault, MatrixServer
from tests.contracts.channel.poison import ODD


class MatrixPlatform:
    """Matrix, over the fake homeserver. Its people are called `1001`, as the suite calls them."""

    name = "matrix"

    async def __aenter__(self) -> MatrixPlatform:
        self.server = await MatrixServer().__aenter__()
        self.up, self.secret = True, self.server.token
        self.http, self.tasks = GuardedHttp(), Tasks()
        self.settings: dict[str, Any] = {
            "homeserver": self.server.url,
            "accessToken": Secret(self.secret),
            "encryption": False,
        }
        outside = "User @garra:example.org not in room !room1:example.org"
        self.faults = {
            "passing": lambda: self._fail(MatrixFault(429, "M_LIMIT_EXCEEDED", "Too Many Requests", "status", 3000)),
            "unsure": lambda: self._fail(MatrixFault(kind="cut_after")),
            "refused": lambda: self._fail(MatrixFault(403, "M_FORBIDDEN", "You don't have permission to post that")),
            "auth": lambda: self._fail(MatrixFault(401, "M_UNKNOWN_TOKEN", "Access token has expired")),
            "gone": lambda: self._fail(MatrixFault(403, "M_FORBIDDEN", outside)),
        }
        return self

    def _fail(self, fault: MatrixFault) -> None:
        self.server.fail("send", fault)

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.tasks.close()
        await self.http.close()

    def channel(self, cursor: MemoryCursor) -> Matrix:
        return Matrix(Account("default", self.settings), Ports(self.http, SystemClock(), self.tasks, cursor))

    def address(self, user: str) -> Address:
        return Address("matrix", "default", self.server.room(user).id, "direct")

    async def say(self, user: str, text: str) -> None:
        await self.server.say(user, text)

    async def nonsense(self) -> None:
        await self.server.say("1001", "")
        room = self.server.room("1001").id
        self.server.push(room, ["nobody"], "m.room.message", {"msgtype": "m.text", "body": "from no one"})
        self.server.push(room, "1001", {"no": "type"}, "no content")
        self.server.push(room, "1001", "m.room.message", {"msgtype": "m.image", "body": "no address"})

    async def poison(self) -> None:
        await self.server.say("666", ODD)
        room = self.server.room("666").id
        self.server.push(room, ODD, "m.room.message", {"msgtype": "m.text", "body": "from an odd one"})
        self.server.push(room, "666", ODD, {ODD: ODD})
        sent = {
            "msgtype": "m.file",
            "body": ODD,
            "filename": ODD,
            "url": ODD,
            "info": {"size": 10**30, "mimetype": ODD},
        }
        self.server.push(room, "666", "m.room.message", sent)
        self.server.push(room, "666", "m.room.message", {"msgtype": "m.text", "body": "x"}, event_id=ODD)

    async def shown(self, user: str) -> list[str]:
        return self.server.shown(user)

    def break_link(self) -> None:
        self.server.fail("sync", MatrixFault(502, "M_UNKNOWN", "Bad Gateway"))

    def refuse_credential(self) -> None:
        self.settings["accessToken"] = Secret("some-wrong-token")
        self.secret = "some-wrong-token"

    async def close(self) -> None:
        if self.up:
            self.up = False
            await self.server.__aexit__(None, None, None)
