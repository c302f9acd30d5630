"""What the bot knows of its servers: their channels and threads, and its own roles. Told by the gateway, else asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from garra.builtin.channels.discord.api import Api, Refused
from garra.builtin.channels.discord.codec import Me, Room, room
from garra.builtin.channels.discord.faults import link_lost

_KEPT = 20_000


class World:
    """One account's. What Discord does not let the bot see is as if it were not there."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._rooms: dict[str, Room] = {}
        self._roles: dict[str, frozenset[str]] = {}
        self.me = ""

    def told(self, name: str, body: Mapping[str, Any]) -> None:
        """Learn from an event; what is misshapen teaches nothing."""
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            self._told(name, body)

    def _told(self, name: str, body: Mapping[str, Any]) -> None:
        match name:
            case "GUILD_CREATE":
                self._server(body)
            case "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE":
                self._learn([body], str(body.get("guild_id") or ""))
            case "THREAD_LIST_SYNC":
                self._learn(body.get("threads") or (), str(body.get("guild_id") or ""))
            case "CHANNEL_DELETE" | "THREAD_DELETE":
                self._rooms.pop(str(body.get("id")), None)
            case "GUILD_DELETE":
                self._roles.pop(str(body.get("id")), None)
            case "GUILD_MEMBER_UPDATE" if _id(body.get("user")) == self.me:
                self._roles[str(body.get("guild_id"))] = _roles(body)

    def _server(self, body: Mapping[str, Any]) -> None:
        guild = str(body.get("id") or "")
        self._learn([*(body.get("channels") or ()), *(body.get("threads") or ())], guild)
        own = next((one for one in body.get("members") or () if _id(one.get("user")) == self.me), None)
        if own is not None:
            self._roles[guild] = _roles(own)

    def _learn(self, listed: Any, guild: str) -> None:
        for body in listed:
            try:
                found = room(body, guild)
            except (KeyError, TypeError, ValueError, AttributeError):
                continue
            self._rooms[found.id] = found
        while len(self._rooms) > _KEPT:
            self._rooms.pop(next(iter(self._rooms)))

    def rooms(self, guild: str) -> Iterator[Room]:
        """The channels known of a server."""
        return (found for found in tuple(self._rooms.values()) if found.guild == guild)

    async def room(self, body: Any) -> Room | None:
        """The channel an event is of. Raises LinkLost and LinkRefused: what cannot be placed must not be judged."""
        chat = str(body.get("channel_id") or "") if isinstance(body, dict) else ""
        if not chat.isdecimal():
            return None
        if (known := self._rooms.get(chat)) is not None:
            return known
        guild = str(body.get("guild_id") or "")
        if not guild:
            return None  # a direct one, of which there is no more to know
        shown = body.get("channel")  # an interaction brings its own
        if not isinstance(shown, dict) or str(shown.get("id")) != chat or "type" not in shown:
            shown = await self._asked(f"/channels/{chat}") or {"id": chat}
        self._learn([shown], guild)
        return self._rooms.get(chat)

    async def myself(self, body: Any) -> Me:
        """The bot, with the roles it has where an event happened; asked for only where roles were named."""
        guild = str(body.get("guild_id") or "") if isinstance(body, dict) else ""
        if not guild.isdecimal() or not body.get("mention_roles"):
            return Me(self.me)
        if guild not in self._roles:
            self._roles[guild] = _roles(await self._asked(f"/guilds/{guild}/members/{self.me}") or {})
        return Me(self.me, self._roles[guild])

    async def member(self, guild: str, user: str) -> dict[str, Any]:
        """Somebody in a server, for what only their roles let in; empty where they are not there."""
        found = await self._asked(f"/guilds/{guild}/members/{user}") if user.isdecimal() else None
        return found if isinstance(found, dict) else {}

    async def _asked(self, path: str) -> Any:
        """What Discord says, None where it shows nothing."""
        try:
            return await self._api.call("GET", path)
        except Refused as refused:
            if refused.status in {400, 403, 404}:
                return None
            raise link_lost(refused) from None


def _id(user: Any) -> str:
    return str(user.get("id")) if isinstance(user, Mapping) else ""


def _roles(member: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(role) for role in member.get("roles") or ())
