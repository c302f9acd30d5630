"""The context engines of a house: made by its plugins, and what the owner hears of one that fails."""

from __future__ import annotations

from collections.abc import Callable

from garra.app.channels import Channels
from garra.app.house import House
from garra.sdk.channel import Address

NOWHERE = Address("", "", "", "direct")


def watch(house: House, channels: Channels) -> Callable[[], None]:
    """Tell the owner from now on; gives what ends it."""

    def tell(line: str) -> None:
        channels.notice(NOWHERE, line)

    tellers = house.engines.tellers
    tellers.append(tell)
    return lambda: tellers.remove(tell)
