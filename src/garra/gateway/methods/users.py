"""`users.prefs…`: what a page keeps for a person. Nothing is: one owner, and each browser keeps its own looks.

Pages of the original ask whether or not a gateway says that it knows the methods, and complain where it does not.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from garra.gateway.host import Host
from garra.gateway.method import READ, WRITE, Caller, Method
from garra.gateway.params import Params

NOBODY: Final = {"status": "no_durable_identity"}


class Preferences(Params, frozen=True):
    """Which are asked for, or what is to be kept."""

    keys: tuple[str, ...] = ()
    entries: dict[str, Any] = msgspec.field(default_factory=dict)
    expected_entries: dict[str, Any] = msgspec.field(default_factory=dict)


async def preferences(host: Host, caller: Caller, params: Preferences) -> dict[str, Any]:
    return dict(NOBODY)


METHODS: Final = (
    Method("users.prefs.get", READ, Preferences, preferences, advertised=False),
    Method("users.prefs.set", WRITE, Preferences, preferences, advertised=False),
)
