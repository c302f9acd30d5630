"""What a person answers to a question of the agent's, by a button or in words: taken to the turn that waits for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from garra.core import questions
from garra.core.errors import GarraError
from garra.core.patterns import later
from garra.core.questions import Record
from garra.domains.questions.register import Questions
from garra.turns.ask import Spoken

_BUTTON: Final = later(r"/answer\s+(\S{1,64})\s+(\d)\s*\Z")


async def taken(register: Questions | None, spoken: Spoken) -> Spoken | None:
    """None: a turn waited for this, and has it. Else what goes on as a message: where no turn waits any more, a button
    stands for its words.

    Only who was asked answers, and only in the chat where it was asked.
    """
    if register is None or spoken.judged.given is not None:
        return spoken
    address, place = spoken.event.address, spoken.place
    here = (address.channel, address.account, address.chat, address.thread)
    requester = f"{place.channel}:{place.account}:{place.sender}"
    record = register.here(here, requester)
    pressed = _BUTTON.match(spoken.words.strip())
    if pressed is not None:
        record = _named(register, pressed[1], here, requester)
        words = _label(record, int(pressed[2])) if record is not None else ""
        if not words:
            return replace(spoken, words="(a button of a question that is over)")
        spoken = replace(spoken, words=words)
    if record is None or not record.pending:
        return spoken
    if spoken.event.media:
        return spoken
    waited = register.waited(record.id)
    try:
        await register.end(record.id, "answered", questions.heard(record, spoken.words), requester)
    except GarraError:
        return spoken
    return None if waited else spoken


def _named(register: Questions, id_: str, here: tuple[str, str, str, str], requester: str) -> Record | None:
    try:
        found = register.get(id_)
    except GarraError:
        return None
    return found if (found.place, found.requester) == (here, requester) else None


def _label(record: Record, number: int) -> str:
    options = record.items[0].options
    return options[number - 1].label if 1 <= number <= len(options) else ""
