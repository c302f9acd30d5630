"""Whom a word about somebody's messages may be told: the owner, and nobody because they happened to be let in.

Such a word names people and their chats. So where the configuration names owners, they alone hear it. Where it names
none, it is told only if a single person is let in at all; else nobody hears it, and it stays in the log.
"""

from __future__ import annotations

from collections.abc import Iterable

from garra.core.value import frozen


@frozen
class Reach:
    """Somebody who was let in at an account. `person` is who it is over all channels, `chat` the direct chat with them
    where one is known, `owner` whether the configuration names them as one.
    """

    channel: str
    account: str
    sender: str
    person: str
    chat: str = ""
    owner: bool = False


def told(people: Iterable[Reach], *, named: bool) -> tuple[Reach, ...]:
    """Those of `people` who may be told, in their order. `named`: the configuration names owners (of any channel)."""
    found = tuple(people)
    if named:
        return tuple(each for each in found if each.owner)
    return found if len({each.person for each in found}) == 1 else ()


def elsewhere(people: Iterable[Reach], channel: str, account: str, chat: str) -> tuple[Reach, ...]:
    """Where to tell them of a fault at a place, best first: by another account, else in another chat of the same one.
    Without a `chat` the whole account is at fault, and says nothing any more.
    """
    found = tuple(people)
    apart = tuple(each for each in found if (each.channel, each.account) != (channel, account))
    if not chat:
        return apart
    near = (each for each in found if (each.channel, each.account) == (channel, account))
    return (*apart, *(each for each in near if (each.chat or each.sender) != chat))
