"""Invitations: accepted where the owner's rules could let the bot answer there, left alone elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.matrix import faults
from garra.builtin.channels.matrix.api import Api, Refused, at
from garra.builtin.channels.matrix.position import Invite
from garra.builtin.channels.matrix.settings import Joining
from garra.sdk.channel import Ignored, Pulse, Receive
from garra.sdk.ports import Clock

STRANGERS, HOUR_S = 20, 3600.0
"""How many invitations of people nobody named are accepted in an hour."""


def invited(room: str, body: Mapping[str, Any], me: str) -> Invite | None:
    """The invitation of `me` in what the server shows of a room; None where it shows none."""
    for event in (body.get("invite_state") or {}).get("events") or ():
        content = event.get("content") or {}
        if event.get("type") == "m.room.member" and event.get("state_key") == me:
            return Invite(room, str(event.get("sender") or ""), content.get("is_direct") is True)
    return None


class Door:
    """Answers invitations of one account."""

    def __init__(self, api: Api, joining: Joining, clock: Clock) -> None:
        self._api, self._joining, self._clock = api, joining, clock
        self._strangers: deque[float] = deque()

    async def answer(self, invite: Invite, receive: Receive, pulse: Pulse) -> None:
        """Join, or note that one does not. Raises LinkLost where the server could not be asked."""
        why = await self._closed(invite)
        if not why:
            why = await self._join(invite.room)
        if why:
            pulse.note(f"{invite.by} invited the bot to {invite.room}: {why}.")
            await receive(Ignored(f"invite:{invite.room}:{self._clock.now_ms()}", None, f"invite: {why}"))

    async def _closed(self, invite: Invite) -> str:
        """Why it is not accepted; empty when it is."""
        joining = self._joining
        match joining.mode:
            case "always":
                return ""
            case "off":
                return "autoJoin is off"
            case "allowlist":
                return "" if await self._listed(invite.room) else "the room is not in autoJoinAllowlist"
        if invite.room in joining.rooms:
            return ""
        if not invite.direct:
            return "it is no direct chat, and groups does not name the room"
        if not joining.direct:
            return "direct messages are off"
        if joining.people is not None:
            return "" if invite.by in joining.people else "allowFrom does not name this person"
        return self._crowded()

    def _crowded(self) -> str:
        now = self._clock.monotonic()
        while self._strangers and now - self._strangers[0] > HOUR_S:
            self._strangers.popleft()
        if len(self._strangers) >= STRANGERS:
            return f"more than {STRANGERS} invitations of strangers in an hour"
        self._strangers.append(now)
        return ""

    async def _listed(self, room: str) -> bool:
        listed = self._joining.listed
        if "*" in listed or room in listed:
            return True
        for alias in sorted(one for one in listed if one.startswith("#")):
            try:
                found = await self._api.call("GET", at("directory", "room", alias))
            except Refused as refused:
                if refused.status in {0, 429}:
                    raise faults.lost(refused) from None
                continue
            if found.get("room_id") == room:
                return True
        return False

    async def _join(self, room: str) -> str:
        try:
            await self._api.call("POST", at("join", room), wait=120.0)
        except Refused as refused:
            if refused.status in {0, 429} or refused.errcode in faults.TOKEN:
                raise faults.lost(refused) from None
            return f"it could not be joined ({refused.said})"
        return ""
