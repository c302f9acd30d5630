"""What was said while no session ran and Discord would not repeat it: asked for, chat by chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from garra.builtin.channels.discord.api import Api, Refused
from garra.builtin.channels.discord.faults import link_lost
from garra.builtin.channels.discord.position import Last, Position, at_ms, later
from garra.builtin.channels.discord.world import World

DAY_MS = 24 * 3_600_000
"""How far back is asked."""
_PAGE, _PAGES = 100, 10
_TEXT = frozenset({0, 2, 5, 10, 11, 12, 13})


async def said(world: World, api: Api, chat: str, last: Last, *, now_ms: int) -> AsyncIterator[dict[str, Any]]:
    """The messages of a chat after the last one stored, oldest first, as the gateway would have told them.

    At most a day back, and a thousand. A chat that is no longer shown has none. Raises LinkLost and LinkRefused.
    """
    after = last.message if later(last.message, at_ms(now_ms - DAY_MS)) else at_ms(now_ms - DAY_MS)
    members: dict[str, dict[str, Any]] = {}
    for _ in range(_PAGES):
        page = await _page(api, chat, after)
        for message in sorted(page, key=lambda one: int(one["id"])):
            after = str(message["id"])
            if last.guild:
                user = str((message.get("author") or {}).get("id") or "")
                if user not in members and "webhook_id" not in message:
                    members[user] = await world.member(last.guild, user)
                message |= {"guild_id": last.guild, "member": members.get(user) or {}}
            yield message
        if len(page) < _PAGE:
            return


async def _page(api: Api, chat: str, after: str) -> list[dict[str, Any]]:
    try:
        found = await api.call("GET", f"/channels/{chat}/messages?after={after}&limit={_PAGE}")
    except Refused as refused:
        if refused.status in {400, 403, 404}:
            return []
        raise link_lost(refused) from None
    return [one for one in found or () if isinstance(one, dict) and str(one.get("id", "")).isdecimal()]


def unread(world: World, guild: str, here: Position) -> list[tuple[str, Last]]:
    """The channels of a server in which something was said since the session before this one, the known ones aside."""
    found = (room for room in world.rooms(guild) if room.kind in _TEXT and room.id not in here.chats)
    return [
        (room.id, Last(here.since, guild)) for room in found if room.last.isdecimal() and later(room.last, here.since)
    ]
