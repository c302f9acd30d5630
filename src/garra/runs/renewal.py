"""Conversations that begin anew by themselves: daily at an hour, or after a pause, as `session.reset` says."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import tzinfo
from pathlib import Path
from typing import Final

from garra.config.live import Live
from garra.config.sections.session import Reset
from garra.config.sections.session import Session as Settings
from garra.core import resets
from garra.core.keys import parse
from garra.core.resets import Kind, Policies, Policy
from garra.domains.context import stamps
from garra.domains.sessions.session import Session
from garra.domains.sessions.store import Sessions
from garra.runs.run import Run, Turn
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)

Ending = Callable[[Turn], Awaitable[None]]
"""Hears of a conversation, by the turn that begins another, just before it ends."""

PEOPLES: Final = frozenset({"operator", "local", "channel"})
"""Whose turns begin a conversation anew: people's. A job or a sub-agent never does."""
WAITING: Final = 1_000


def policies(settings: Settings) -> Policies:
    """What the configuration says."""
    usual = settings.reset
    if usual.mode == "none" and "mode" not in usual.model_fields_set and settings.idle_minutes is not None:
        return Policies(Policy("idle", idle_minutes=settings.idle_minutes), *_narrower(settings))
    return Policies(_policy(usual), *_narrower(settings))


def _narrower(settings: Settings) -> tuple[dict[str, Policy], dict[str, Policy]]:
    by_type = {name: _policy(each) for name, each in settings.reset_by_type.items()}
    if "dm" in by_type:
        by_type.setdefault("direct", by_type["dm"])
    return by_type, {name: _policy(each) for name, each in settings.reset_by_channel.items()}


def _policy(reset: Reset) -> Policy:
    return Policy(reset.mode, reset.at_hour, reset.idle_minutes)


def wants_digest(settings: Settings, *, by_hand: bool) -> bool:
    """Whether a new conversation is told of the one before."""
    return settings.digest == "always" or (settings.digest == "auto" and not by_hand)


class Renewal:
    """Looks at a session before a person's message is put into it."""

    def __init__(self, sessions: Sessions, live: Live, clock: Clock, folder: Callable[[str], Path]) -> None:
        self._sessions, self._live, self._clock, self._folder = sessions, live, clock, folder
        self._told: OrderedDict[str, str] = OrderedDict()
        self._zone: tuple[str, tzinfo | None] = ("", None)
        self._one = asyncio.Lock()

    async def begin(self, turn: Turn, ending: Ending | None = None) -> None:
        """Begin the conversation anew where that is due, `ending` first; the person is told with the turn."""
        settings = self._live.config.session
        found = policies(settings)
        if found == resets.Policies():
            return
        async with self._one:
            await self._begin(found, turn, settings, ending)

    async def _begin(self, found: Policies, turn: Turn, settings: Settings, ending: Ending | None) -> None:
        session = await self._sessions.get(turn.session_key)
        if session is None or not (why := await self._due(found, turn, session)):
            return
        if ending is not None:
            await ending(turn)
        await self._sessions.reset(
            turn.session_key, why, cwd=str(self._folder(turn.agent_id)), digest=wants_digest(settings, by_hand=False)
        )
        log.info("%s begins anew (%s); the conversation before is kept", turn.session_key, why)
        self._told[turn.run_id] = resets.TOLD[why]
        while len(self._told) > WAITING:
            self._told.popitem(last=False)

    def told(self, run: Run) -> str:
        """What the person is to be told with this run, once."""
        return self._told.pop(run.run_id, "")

    async def _due(self, found: Policies, turn: Turn, session: Session) -> resets.Why:
        last = session.extra.get("lastInteractionAt")
        if last is None and session.last_message is None:
            return ""  # nothing was said in it yet
        policy = found.of(*_place(turn))
        zone = await self._local()
        return resets.due(
            policy, started=session.started_at, last=last if isinstance(last, int) else 0,
            now=self._clock.now_ms(), zone=zone,
        )  # fmt: skip

    async def _local(self) -> tzinfo | None:
        """The owner's zone; None is the machine's."""
        name = self._live.config.agents.defaults.time_zone
        if name != self._zone[0]:
            self._zone = (name, await asyncio.to_thread(stamps.zone, name) if name else None)
        return self._zone[1]


def _place(turn: Turn) -> tuple[Kind, str]:
    """What kind of chat a turn comes from, and by which channel."""
    key = parse(turn.session_key)
    channel = (turn.place.channel if turn.place else "") or key.channel
    if key.thread:
        return "thread", channel
    group = turn.place.group if turn.place else None
    return ("group" if group or key.kind in ("group", "channel") else "direct"), channel
