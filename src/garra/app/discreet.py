"""A channel whose faults and notes tell no secret: what a platform answers may repeat the credential it was given."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Final

from garra.core.errors import GarraError
from garra.core.value import frozen
from garra.sdk.channel import Channel, Identity, Limits, Outbound, Pulse, Receive

Clean = Callable[[str], str]

AWAITED: Final = frozenset({"called", "delete", "edit", "open_direct", "react", "type"})
"""What some channels have beside `run` and `send`, and are awaited for."""


class Discreet:
    """`channel`, with the words of everything it raises and notes cleaned before anybody stores or tells them.

    What the channel does not have, this has not either.
    """

    def __init__(self, channel: Channel, clean: Clean) -> None:
        self._channel, self._words = channel, _Words(clean)
        self.limits: Limits = channel.limits

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        with self._words:
            await self._channel.run(receive, _Pulse(pulse, self._words.clean))

    async def send(self, message: Outbound) -> str:
        with self._words:
            return await self._channel.send(message)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._channel, name)
        if name in AWAITED:
            return functools.partial(self._awaited, found)
        return functools.partial(self._read, found) if name == "fetch" else found

    async def _awaited(self, call: Callable[..., Coroutine[Any, Any, Any]], *given: Any) -> Any:
        with self._words:
            return await call(*given)

    async def _read(self, call: Callable[..., AsyncIterator[bytes]], *given: Any) -> AsyncIterator[bytes]:
        with self._words:
            async for chunk in call(*given):
                yield chunk


@frozen
class _Words:
    """Cleans the words of whatever is raised within."""

    clean: Clean

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, GarraError):
            error.message = self.clean(error.message)
            error.args = (error.message,)


@frozen
class _Pulse:
    pulse: Pulse
    clean: Clean

    def alive(self) -> None:
        self.pulse.alive()

    def connected(self, me: Identity) -> None:
        self.pulse.connected(me)

    def note(self, line: str) -> None:
        self.pulse.note(self.clean(line))
