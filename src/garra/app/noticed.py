"""A line that a run has for its person, beside the answer, is said where the run was asked for."""

from __future__ import annotations

import logging
from collections.abc import Callable

from garra.app import compaction
from garra.app.channels import Channels
from garra.app.house import House
from garra.core.errors import GarraError
from garra.core.events import RunEvent
from garra.gateway.host import Host
from garra.sdk.channel import Address

log = logging.getLogger(__name__)


def watch(house: House, host: Host, channels: Channels) -> Callable[[], None]:
    """Tell from now on; gives what ends it."""

    def tell(event: RunEvent, text: str) -> None:
        run = house.runs.find(event.run_id)
        about = run.turn.address if run is not None else None
        if about is not None:
            house.spawn(say(f"notice:{event.run_id}:{event.seq}", about, text), "word about a conversation")
        else:
            host.show.tell(f"notice-{host.new_id()}", event.session_key, event.agent_id, text)

    async def say(key: str, about: Address, text: str) -> None:
        try:
            await channels.outbox.put(channels.worded(key, about, text))
        except GarraError as error:
            log.warning("a word about a conversation is not sent: %s", error.message)

    return compaction.heard(house.runs, tell)
