"""What turns recordings into words, made from the parts of the house."""

from __future__ import annotations

import secrets

from garra.app.house import House
from garra.domains.hearing.ask import Asking
from garra.domains.hearing.ears import Ears, Ports
from garra.domains.hearing.programs import Running
from garra.io.store.shelf import Shelf


def ears(house: House) -> Ears:
    """The one of this house; what it heard is kept in the house's store."""
    return Ears(
        Ports(
            media=lambda: house.live.config.tools.media,
            listening=house.models.listening,
            asking=Asking(house.http, lambda: secrets.token_hex(16)),
            running=Running(house.programs, house.env),
            memory=Shelf(house.db, "heard"),
            clock=house.clock,
        )
    )
