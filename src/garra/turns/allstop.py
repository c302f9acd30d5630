"""`/stop all` and `/resume`: an owner stops everything from a chat, and lets it go on; who writes meanwhile is told."""

from __future__ import annotations

from typing import Final, Protocol

from garra.core.errors import UserError
from garra.runs.switch import Stopped
from garra.sdk.channel import Address

ALL: Final = frozenset({"all", "everything"})
PAUSE: Final = frozenset({"pause", "--pause"})
WAITS: Final = "Work is paused just now. Your message is kept, and is answered when it goes on."


class Switch(Protocol):
    """The kill switch."""

    @property
    def paused(self) -> bool: ...

    @property
    def since_ms(self) -> int: ...

    @property
    def stopped_at(self) -> int: ...

    async def cleared(self) -> None: ...

    async def stop(self, *, pause: bool = False) -> Stopped: ...

    async def resume(self) -> bool: ...


class Open:
    """Where nothing can be paused."""

    paused = False
    since_ms = 0
    stopped_at = -1

    async def cleared(self) -> None:
        """At once."""

    async def stop(self, *, pause: bool = False) -> Stopped:
        raise UserError("All work can be stopped where a gateway runs only.")

    async def resume(self) -> bool:
        return False


def meant(words: str) -> bool:
    """Whether `/stop` with these words is for everything."""
    first = words.split(maxsplit=1)
    return bool(first) and first[0].lower() in ALL


async def stop(switch: Switch, words: str) -> str:
    """`all`, or `all pause`: what was stopped."""
    pause = any(word.lower() in PAUSE for word in words.split()[1:])
    return (await switch.stop(pause=pause)).words


async def resume(switch: Switch) -> str:
    return "Work goes on." if await switch.resume() else "Work was not paused."


def notice(switch: Switch, address: Address) -> str:
    """Under which name the word that a message waits is written: one for each chat and pause."""
    return f"paused:{switch.since_ms}:{address.channel}:{address.account}:{address.chat}:{address.thread}"
