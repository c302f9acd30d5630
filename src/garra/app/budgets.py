"""Who hears that a budget is used up to a step: the owner, and the conversation it happened in."""

from __future__ import annotations

import logging
from collections.abc import Callable

from garra.app.channels import Channels
from garra.app.house import House
from garra.core.errors import GarraError
from garra.core.spending import Warned
from garra.gateway.host import Host
from garra.runs.run import Run
from garra.sdk.channel import Address

log = logging.getLogger(__name__)

NOWHERE = Address("", "", "", "direct")
OWN = frozenset({"run", "session", "sender"})
"""Of these budgets somebody who is no owner hears, too, in a chat of their own."""


def watch(house: House, host: Host, channels: Channels) -> Callable[[], None]:
    """Tell from now on; gives what ends it."""

    def tell(run: Run, warned: Warned) -> None:
        turn = run.turn
        about, place = turn.address, turn.place
        if warned.cap.account.scope != "run" or warned.over:
            channels.notice(about or NOWHERE, warned.text)
        if warned.over and turn.origin != "job":
            return  # the run ends with that very line, where it was asked for
        if about is None:
            host.show.tell(f"budget-{host.new_id()}", turn.session_key, turn.agent_id, warned.text)
        elif place is not None and not place.group and (place.owner or warned.cap.account.scope in OWN):
            house.spawn(say(about, warned), "word about a budget")

    async def say(about: Address, warned: Warned) -> None:
        drafts = channels.worded(f"budget:{warned.names[-1]}", about, warned.text)
        try:
            await channels.outbox.put(drafts)
        except GarraError as error:
            log.warning("a word about a budget is not sent: %s", error.message)

    house.purse.tellers.append(tell)
    return lambda: house.purse.tellers.remove(tell)
