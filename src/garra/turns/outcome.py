"""What became of an event, and what is done with one that could not be carried to an end."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Literal

from garra.core.errors import GarraError, Unavailable
from garra.core.value import frozen
from garra.domains.delivery.inbox import InboxRow
from garra.turns.ask import Spoken
from garra.turns.bursts import Burst

log = logging.getLogger(__name__)

Admission = Literal["dispatch", "observeOnly", "handled", "drop"]

TRIES: Final = 3
"""So often a message is taken up again after a fault of ours before it is given up."""

AGAIN: Final = "again"
STUCK: Final = "stuck"
"""The ends of an event that is taken up again: soon, or when the store works again."""

FAULT: Final = "A fault of Garra's own kept this message from being answered; the gateway's log has it. Send it again."


@frozen
class Outcome:
    """What became of an event. `dispatched`: a turn ran or a command was carried out. `why` is a word for programs."""

    admission: Admission
    dispatched: bool = False
    why: str = ""


def stuck(row: InboxRow, error: GarraError) -> Outcome:
    """The store refuses: the row is taken up again when it works."""
    log.warning("message %s waits until the store works: %s", row.id, error.message)
    return Outcome("dispatch", why=STUCK)


def abandon(burst: Burst[Spoken, Outcome], error: BaseException) -> None:
    """The leader of a burst failed before it began: the others are taken up again, each by itself."""
    burst.closed.set()
    if isinstance(error, asyncio.CancelledError):
        burst.result.cancel()
    elif not burst.result.done():
        burst.result.set_exception(Unavailable(FAULT, retryable=True))
        burst.result.exception()  # there may be no others
