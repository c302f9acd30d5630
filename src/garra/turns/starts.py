"""From messages of a chat to a run that was accepted, with what was attached and what its answer points at."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from garra.core.errors import Unavailable
from garra.core.groups import Line
from garra.core.routing import Route
from garra.core.taint import ROW, Mark
from garra.turns import allstop, ask, marks
from garra.turns.answers import Answers, Going
from garra.turns.ask import Spoken
from garra.turns.mentions import name
from garra.turns.parts import Asked, Ports
from garra.turns.queueing import settings
from garra.turns.routes import Routes, spot

log = logging.getLogger(__name__)

T = TypeVar("T")

WAITS_S: Final = (0.5, 1.0, 2.0)
"""How long a message waits for a store that refuses, and keeps its place, before it is taken up again."""


class Starts:
    """Begins turns. `stopped` says whether a message came before a /stop."""

    def __init__(self, ports: Ports, routes: Routes, answers: Answers, stopped: Callable[[Spoken], bool]) -> None:
        self._ports, self._routes, self._answers, self._stopped = ports, routes, answers, stopped

    async def begin(self, spoken: Sequence[Spoken], route: Route, text: str, number: int = 1) -> Going:
        """Hand messages, in these words, to one agent; `number` is the round in which several answer."""
        ports, first = self._ports, spoken[0]
        await self._cleared(first)
        rows = [each.row.id for each in spoken]
        session = await ports.sessions.get(route.key)
        waits = settings(ports.config(), first.event.address.channel, session)
        turn = ask.turn_of(spoken, route, text, waits, number=number)
        if number > 1:
            turn = replace(turn, marks=(*turn.marks, *await self._others(first, route)))
        asked = await self.asked(spoken[-1], route)
        run = await self.in_place(lambda: ports.runs.submit(turn))
        if self._stopped(spoken[-1]):
            run.cancel.set("stop")
            await ports.runs.abort(route.key, run.run_id, "stop")
        return self._answers.begin(run, rows, asked)

    async def _cleared(self, spoken: Spoken) -> None:
        """While work is paused a message waits, and its chat is told so once."""
        switch = self._ports.switch
        if switch.paused:
            address = spoken.event.address
            drafts = self._ports.voice.drafts(allstop.notice(switch, address), Asked(address), allstop.WAITS)
            await self.in_place(lambda: self._ports.outbox.put(drafts))
            await switch.cleared()

    async def in_place(self, step: Callable[[], Awaitable[T]]) -> T:
        """Do it; where the store refuses for a moment, wait here: a message that is given back loses its place."""
        for wait_s in WAITS_S:
            try:
                return await step()
            except Unavailable as error:
                log.warning("a message waits for the store: %s", error.message)
            await self._ports.clock.sleep(wait_s)
        return await step()

    async def attached(self, spoken: Spoken) -> Spoken:
        """The message with what came with it, and its marks."""
        spoken = marks.told(spoken, self._ports.config(), self._own(spoken))
        if not spoken.event.media:
            return spoken
        found = await self._ports.attachments.gather(spoken.event, *(str(each.key) for each in spoken.routes))
        for station, detail in found.stations:
            await self._ports.timeline.note_all((spoken.row.id,), station, detail)
        return replace(spoken, images=found.images, notes=found.lines)

    def after(self, before: Sequence[Line], spoken: Sequence[Spoken]) -> Sequence[Spoken]:
        """The messages of a turn that is told what was said `before` them."""
        first = spoken[0]
        found = marks.heard(before, first, self._own(first))
        return [replace(first, marks=(*first.marks, *found)), *spoken[1:]]

    def _own(self, spoken: Spoken) -> frozenset[str]:
        account = spoken.judged.account
        return marks.owners(account, self._ports.config(), self._ports.pairing.allowed(account.channel, account.id))

    async def _others(self, spoken: Spoken, route: Route) -> tuple[Mark, ...]:
        """What stands behind the words of a chat's other agents: text from outside, where one of them has read some."""
        found = [each for each in spoken.routes if each.key != route.key]
        sessions = [(each, await self._ports.sessions.get(each.key)) for each in found]
        marked = [each for each, session in sessions if session is not None and session.extra.get(ROW)]
        return tuple(Mark("agent", each.agent) for each in marked)

    async def asked(self, spoken: Spoken, route: Route | None = None) -> Asked:
        """What an answer points at, and whose name it begins with: where several agents may answer, its own."""
        session = await self._ports.sessions.get(spoken.routes[0].key)
        extra = session.extra if session else {}
        verbose = (session.verbose if session else None) or ""
        label = ""
        if route is not None and self._routes.crowd(spot(spoken.event)).labelled:
            label = name(self._ports.config(), route.agent)
        return Asked(spoken.event.address, spoken.event.id, ask.reply_mode(extra.get("replyToMode")), verbose, label)
