"""WebChat as an account among the others: always there, and its sending puts words into a session."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import Final

from garra.core.errors import NotFound, UserError
from garra.domains.delivery.accounts import WEBCHAT, Setup
from garra.gateway.host import Host
from garra.sdk.channel import Account, Identity, Limits, Outbound, Pulse, Receive, SendFailed

SETUP: Final = Setup(WEBCHAT, Account("default"), label="WebChat")
"""It is in no configuration."""

Put = Callable[[str, str, str], Awaitable[str]]
"""`(session key, text, key)`: say it in the session, once for a key; the id of what stands there now."""


def putting(host: Host) -> Put:
    """To say it by the gateway's own method, whose module is loaded when somebody speaks first."""

    async def put(key: str, text: str, once: str = "") -> str:
        entry: str = await importlib.import_module("garra.gateway.methods.chat").put(host, key, text, once)
        return entry

    return put


class WebChannel:
    """Operators write by the gateway's own methods, so nothing comes in here. A chat is a session by its key."""

    limits = Limits(100_000, formats=("markdown", "plain"), per_second=1_000.0, idempotent=True, beat_s=0.0)

    def __init__(self, put: Callable[[], Put | None]) -> None:
        self._put = put

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        pulse.connected(Identity(WEBCHAT, "WebChat"))
        pulse.alive()
        await asyncio.Event().wait()

    async def send(self, message: Outbound) -> str:
        put = self._put()
        if put is None:
            raise SendFailed("passing", "the gateway is starting")
        address = message.address
        key = f"{address.chat}:topic:{address.thread}" if address.thread else address.chat
        named = [f"[{file.name}: files are not shown here]" for file in message.files]
        try:
            return await put(key, "\n".join(part for part in (message.text, *named) if part), message.key)
        except NotFound as fault:
            raise SendFailed("gone", fault.message) from None
        except UserError as fault:
            raise SendFailed("passing" if fault.retryable else "refused", fault.message) from None
