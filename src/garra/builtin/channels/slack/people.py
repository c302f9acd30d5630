"""What people are called and what kind a channel is: asked once, kept, and done without where Slack does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from garra.builtin.channels.slack.api import Api, Refused
from garra.builtin.channels.slack.codec import Facts

_KEPT = 2_000
_WAIT_S = 2.0
"""Slack waits three seconds for its acknowledgement, and a name is not worth more."""


class People:
    """One workspace's."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._names: dict[str, tuple[str, str]] = {}
        self._kinds: dict[str, str] = {}

    async def facts(self, kind: str, payload: Any) -> Facts:
        """What the codec wants to know besides the envelope."""
        if not isinstance(payload, Mapping):
            return Facts()
        chat, user, told = _places(kind, payload)
        name, handle = await self._name(user) if _id(user) else ("", "")
        return Facts(await self._kind(chat, told) if _id(chat) else "", name, handle)

    async def _kind(self, chat: str, told: str) -> str:
        """im, mpim, channel or group. A mention and a reaction do not say."""
        if told and told != "app_home":
            _keep(self._kinds, chat, told)
        elif chat[0] == "D":
            return "im"
        elif chat not in self._kinds:
            found = (await self._asked("conversations.info", {"channel": chat})).get("channel")
            if not isinstance(found, Mapping):
                return ""
            _keep(self._kinds, chat, "mpim" if found.get("is_mpim") else "channel")
        return self._kinds[chat]

    async def _name(self, user: str) -> tuple[str, str]:
        if user not in self._names:
            found = (await self._asked("users.info", {"user": user})).get("user") or {}
            profile = found.get("profile") or {}
            name = profile.get("display_name") or profile.get("real_name") or found.get("real_name") or ""
            _keep(self._names, user, (str(name), str(found.get("name") or "")))
        return self._names[user]

    async def _asked(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return await self._api.call(method, params, wait=_WAIT_S)
        except Refused:
            return {}


def _places(kind: str, payload: Mapping[str, Any]) -> tuple[Any, Any, str]:
    """Chat, sender, and the channel's kind where the envelope says it."""
    if kind == "slash_commands":
        return payload.get("channel_id"), payload.get("user_id"), ""
    if kind == "interactive":
        return _part(payload, "channel").get("id"), _part(payload, "user").get("id"), ""
    event = _part(payload, "event")
    chat = event.get("channel") or _part(event, "item").get("channel")
    user = event.get("user") or _part(event, "message").get("user")
    told = event.get("channel_type")
    return chat, user, told if isinstance(told, str) else ""


def _part(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    inner = found.get(key)
    return inner if isinstance(inner, Mapping) else {}


def _id(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and value.isalnum()


def _keep(kept: dict[str, Any], key: str, value: Any) -> None:
    kept[key] = value
    while len(kept) > _KEPT:
        kept.pop(next(iter(kept)))
