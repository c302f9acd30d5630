"""Changes of the configuration that agents make, tied to the gateway: who is told of them, and where."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from garra.app.channels import Channels
from garra.core.errors import GarraError
from garra.domains.delivery.accounts import WEBCHAT
from garra.gateway.host import Host
from garra.gateway.methods import chat
from garra.gateway.trials import WHERE, Trials
from garra.runs.errand import Errand
from garra.sdk.channel import Address

log = logging.getLogger(__name__)


def serve(host: Host, channels: Channels) -> Callable[[], None]:
    """Let agents propose changes. The call ends it."""

    def tell(errand: Errand | None, text: str) -> None:
        log.warning("%s", text)
        host.spawn(_told(host, channels, errand, text), "word about the configuration")

    made = Trials(host, tell)
    host.more[WHERE] = made
    return made.start()


async def _told(host: Host, channels: Channels, errand: Errand | None, text: str) -> None:
    """In the chat or session of who asked, and by another account, for that chat may be what was cut off."""
    address = errand.address if errand is not None else None
    try:
        if address is not None and address.channel != WEBCHAT:
            await channels.outbox.put(channels.desk.drafting(f"trial:{uuid.uuid4()}", address, text))
        elif errand is not None:
            await chat.put(host, errand.session_key, text)
    except GarraError as error:
        log.info("it could not be told there: %s", error.message)
    channels.notice(address or Address(WEBCHAT, "default", "", "direct"), text)
