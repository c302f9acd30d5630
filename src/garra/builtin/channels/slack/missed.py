"""What was said while no connection stood: asked for, chat by chat and thread by thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from garra.builtin.channels.slack.api import Api, Refused
from garra.builtin.channels.slack.faults import AUTH, link_lost
from garra.builtin.channels.slack.position import Spot, moment
from garra.sdk.ports import Clock

DAY_S = 24 * 3_600
"""How far back is asked."""
_PAGE, _PAGES = 200, 5
_PATIENCE_S = 60.0
_SHUT = frozenset(
    {"channel_not_found", "not_in_channel", "is_archived", "thread_not_found", "missing_scope", "access_denied"}
)


class History:
    """Reads what stands in chats. A chat that is not shown has nothing in it."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock

    async def since(self, spot: Spot, last: str) -> AsyncIterator[dict[str, Any]]:
        """The messages of a place after `last`, oldest first, at most a day back and a thousand, as events would have
        told them; of a chat also those in threads begun since. Raises LinkLost and LinkRefused.
        """
        oldest = max(last, f"{self._clock.now_ms() // 1000 - DAY_S}.000000", key=moment)
        for message in await self._pages(spot, oldest):
            if moment(str(message.get("ts") or "")) <= moment(oldest):
                continue  # a thread's first message comes with each page
            yield {**message, "channel": spot.chat}
            if not spot.thread and message.get("reply_count"):
                begun = Spot(spot.chat, str(message["ts"]))
                for reply in await self._pages(begun, str(message["ts"])):
                    if reply.get("ts") != message["ts"]:
                        yield {**reply, "channel": spot.chat}

    async def latest(self, spot: Spot) -> list[dict[str, Any]]:
        """What was said in a place today, at most two hundred, with what programs wrote to it. Raises Refused."""
        oldest = f"{self._clock.now_ms() // 1000 - DAY_S}.000000"
        found = await self._api.call(*_asked(spot, oldest), wait=15.0)
        return _listed(found)

    async def _pages(self, spot: Spot, oldest: str) -> list[dict[str, Any]]:
        method, params = _asked(spot, oldest)
        found: list[dict[str, Any]] = []
        for _ in range(_PAGES):
            page = await self._page(method, params)
            found += _listed(page)
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                break
            params = {**params, "cursor": cursor}
        return sorted(found, key=lambda message: moment(str(message.get("ts") or "")))

    async def _page(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        while True:
            try:
                return await self._api.call(method, params)
            except Refused as refused:
                if refused.word in _SHUT and refused.word not in AUTH.keys() - _SHUT:
                    return {}
                wait = refused.retry_after_s
                if wait is None or wait > _PATIENCE_S:
                    raise link_lost(refused) from None
                await self._clock.sleep(wait)


def _asked(spot: Spot, oldest: str) -> tuple[str, dict[str, Any]]:
    params = {"channel": spot.chat, "oldest": oldest, "limit": _PAGE, "include_all_metadata": True}
    if spot.thread:
        return "conversations.replies", {**params, "ts": spot.thread}
    return "conversations.history", params


def _listed(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [one for one in page.get("messages") or () if isinstance(one, dict)]
