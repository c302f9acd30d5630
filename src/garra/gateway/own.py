"""What a program that the gateway has started itself, a command of an agent, may not ask of it."""

from __future__ import annotations

import asyncio

from garra.core.errors import Forbidden
from garra.gateway.method import Caller


async def refuse(caller: Caller) -> None:
    """Raises Forbidden where an agent's own command calls: what it is allowed, a person says."""
    who = caller.who
    if who.loopback and who.port:
        from garra.io.process import kin  # noqa: PLC0415 - few ask this

        if await asyncio.to_thread(kin.holds, who.port):
            raise Forbidden("an agent may not answer its own questions: a person does, in another terminal")
