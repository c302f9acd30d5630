"""What agents change of the gateway itself: its configuration on trial, its restart; who is told, and where."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

import msgspec

from garra.app import webchat
from garra.app.channels import Channels
from garra.core.errors import GarraError
from garra.domains.delivery.accounts import WEBCHAT
from garra.gateway import restarting
from garra.gateway.host import Host
from garra.gateway.trials import WHERE, Trials
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.runs.errand import Errand
from garra.sdk.channel import Address

log = logging.getLogger(__name__)


def serve(host: Host, channels: Channels, db: Database, begin: Callable[..., None]) -> Callable[[], None]:
    """Let agents propose changes, and a restart, which is to `begin`. The call ends it."""

    def tell(errand: Errand | None, text: str) -> None:
        log.warning("%s", text)
        host.spawn(_told(host, channels, errand, text), "word about the configuration")

    made = Trials(host, tell, Shelf(db, WHERE))
    host.more[WHERE] = made
    host.more[restarting.WHERE] = again = restarting.Restart(Shelf(db, restarting.WHERE), begin)
    host.spawn(made.load(), "what is on trial")
    host.spawn(_back(host, channels, again), "word after a restart")
    return made.start()


async def _back(host: Host, channels: Channels, again: restarting.Restart) -> None:
    """Whoever agreed to a restart is told that it is over."""
    row = await again.shelf.get(restarting.WHERE)
    if row is not None:
        await again.shelf.remove(restarting.WHERE)
        await _said(host, channels, msgspec.convert(row, Errand), restarting.BACK.format(version=host.version))


async def _told(host: Host, channels: Channels, errand: Errand | None, text: str) -> None:
    """In the chat or session of who asked, and by another account, for that chat may be what was cut off."""
    if errand is not None:
        await _said(host, channels, errand, text)
    address = errand.address if errand is not None else None
    channels.notice(address or Address(WEBCHAT, "default", "", "direct"), text)


async def _said(host: Host, channels: Channels, errand: Errand, text: str) -> None:
    address = errand.address
    try:
        if address is not None and address.channel != WEBCHAT:
            await channels.outbox.put(channels.desk.drafting(f"trial:{uuid.uuid4()}", address, text))
        else:
            await webchat.putting(host)(errand.session_key, text, "")
    except GarraError as error:
        log.info("it could not be told there: %s", error.message)
