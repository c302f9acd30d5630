"""Where the questions of agents are asked, found from the house's owners, rules, sessions and what came in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from garra.app.couriers import Couriers
from garra.app.house import House
from garra.app.owners import Owners
from garra.core.ids import SessionKey
from garra.domains.access.allowlist import Accounts
from garra.domains.delivery.ledger import Ledger
from garra.sdk.channel import Address
from garra.turns.places import Places, Ports


def places(house: House, rules: Accounts, owners: Owners, *, ledger: Ledger, couriers: Couriers) -> Places:
    """The places of one process."""

    async def direct(channel: str, account: str, person: str) -> Address | None:
        plain = Address(channel, account, person, "direct")
        opens: Callable[[str], Awaitable[Address]] | None = getattr(couriers.channel(plain), "open_direct", None)
        return await opens(person) if opens is not None else plain

    async def session(key: SessionKey) -> Address | None:
        found = await house.sessions.get(key)
        place: Mapping[str, Any] = (found.extra.get("deliveryContext") if found is not None else None) or {}
        channel, account, chat = (str(place.get(each) or "") for each in ("channel", "accountId", "to"))
        heard = await ledger.heard(channel, account, chat) if channel and chat else None
        if heard is None:
            return None
        return replace(heard.address, thread=str(place.get("threadId") or ""), roles=())

    return Places(
        Ports(
            lambda: house.live.config,
            rules,
            owners.own,
            direct,
            ledger.heard,
            session,
            lambda address: couriers.limits(address) is not None,
        )
    )
