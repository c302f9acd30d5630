"""How fast one credential may send: per second, per chat, per minute in a group, and when the platform said "later".

Times are monotonic seconds. A state is a value; `taken` and `held` give the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final

from garra.core.value import frozen

MINUTE: Final = 60.0


@frozen
class Rate:
    """`per_second` messages over all chats, `per_chat_s` seconds between two of one chat, `per_group_minute` in a
    group. 0 is no limit.
    """

    per_second: float = 0.0
    per_chat_s: float = 0.0
    per_group_minute: int = 0


@frozen
class State:
    """When the last messages went, over all and in each chat, oldest first; `until` the platform wants none at all."""

    recent: tuple[float, ...] = ()
    chats: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    until: float = 0.0


def delay(state: State, rate: Rate, chat: str, now: float, *, group: bool = False) -> float:
    """Seconds until the next message to `chat` may go; 0 is now."""
    free = [state.until, _over_all(state, rate)]
    said = state.chats.get(chat, ())
    if said and rate.per_chat_s:
        free.append(said[-1] + rate.per_chat_s)
    if group and rate.per_group_minute and len(said) >= rate.per_group_minute:
        free.append(said[-rate.per_group_minute] + MINUTE)
    return max(0.0, max(free) - now)


def _over_all(state: State, rate: Rate) -> float:
    """When the sliding window of all chats has room again."""
    size, span = _window(rate)
    return state.recent[-size] + span if rate.per_second and len(state.recent) >= size else 0.0


def _window(rate: Rate) -> tuple[int, float]:
    """How many messages in how many seconds: one in ten is what a tenth in one is."""
    size = max(1, int(rate.per_second))
    return size, size / rate.per_second if rate.per_second else 0.0


def taken(state: State, rate: Rate, chat: str, now: float, *, group: bool = False) -> State:
    """One message to `chat` goes now."""
    recent = (*state.recent, now)[-_window(rate)[0] :] if rate.per_second else ()
    kept = rate.per_group_minute if group and rate.per_group_minute else 1
    if not rate.per_chat_s and not (group and rate.per_group_minute):
        return replace(state, recent=recent)
    span = max(MINUTE, rate.per_chat_s)
    chats = {name: said for name, said in state.chats.items() if said[-1] + span > now}
    chats[chat] = (*chats.get(chat, ()), now)[-kept:]
    return replace(state, recent=recent, chats=chats)


def held(state: State, now: float, seconds: float) -> State:
    """The platform wants nothing of this credential for `seconds`; a longer wait that stands already is kept."""
    return replace(state, until=max(state.until, now + seconds))
