"""The one door of every event a channel brings: let in or not, routed, recorded, run, answered.

    ingest → classify → preflight → route → record → command or turn → answer

A row of the inbox leaves here done, dead, or, when the process stops, as it is: then the next start goes on with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from garra.core.access import Dispatch, Drop, Handled, Observe
from garra.core.crowds import Crowd
from garra.core.errors import GarraError
from garra.core.ids import AgentId
from garra.core.keys import agent_of
from garra.core.routing import Route
from garra.domains.delivery.inbox import InboxRow
from garra.sdk.channel import Ignored, Inbound
from garra.turns import ask, chores, inbound
from garra.turns.answering import taken
from garra.turns.answers import KEPT, Answers, End, Going, numbered
from garra.turns.ask import Spoken
from garra.turns.bursts import Bursts
from garra.turns.commands import Given, refusal
from garra.turns.crowds import Begin, Crowds
from garra.turns.gate import Gate, Judged, line
from garra.turns.histories import Histories
from garra.turns.outcome import AGAIN, FAULT, TRIES, Outcome, abandon, stuck
from garra.turns.parts import Asked, Ports
from garra.turns.queueing import quiet_s
from garra.turns.recovery import Found, standing
from garra.turns.routes import Routes, lane, spot
from garra.turns.starts import Starts

log = logging.getLogger(__name__)

T = TypeVar("T")

STOPS: Final = 1_000
"""Chats whose last /stop is remembered."""

ANSWERED: Final = Outcome("dispatch", dispatched=True, why="answer to a question")


class Kernel:
    """All chats of one process. `turn` may be called for many rows at once; a chat's order is kept."""

    def __init__(self, ports: Ports, histories: Histories) -> None:
        self._ports = ports
        self._histories = histories
        self.routes = Routes(ports.config)
        self.gate = Gate(ports.config, ports.pairing, ports.clock, self._activation)
        self.answers = Answers(ports)
        self._starts = Starts(ports, self.routes, self.answers, self._is_stopped)
        self._crowds = Crowds(self.answers, ports.config)
        self._bursts: Bursts[Spoken, Outcome] = Bursts()
        self._recorder = inbound.Recorder(ports)
        self._stopped: OrderedDict[tuple[str, ...], int] = OrderedDict()

    async def turn(self, row: InboxRow, step: Callable[[], Awaitable[Outcome]] | None = None) -> Outcome:
        """Carry one event, already claimed, to its end, by `step` if given. It raises nothing but cancellation."""
        try:
            return await (self._taken(row) if step is None else step())
        except GarraError as error:
            return await self._failed(row, error.message, retry=error.retryable)
        except Exception:
            log.exception("message %s met a fault", row.id)
            return await self._failed(row, FAULT, retry=True)

    async def _taken(self, row: InboxRow) -> Outcome:
        event = row.event
        if isinstance(event, Ignored):
            await self._ports.inbox.done(row.id, event.reason)
            return Outcome("drop", why=event.reason)
        judged = await self.gate.judge(event)
        match judged.verdict:
            case Dispatch():
                return await self._dispatch(row, judged)
            case Observe(reason):
                await self._observe(judged)
                return await self._closed(row, Outcome("observeOnly", why=reason))
            case Handled(reason):
                return await self._closed(row, Outcome("handled", why=reason))
            case Drop(reason, knock):
                if knock and await self._knocked(row, judged):
                    return Outcome("drop", why="pairing")
                return await self._closed(row, Outcome("drop", why=reason))

    async def _closed(self, row: InboxRow, outcome: Outcome) -> Outcome:
        await self._ports.inbox.done(row.id, outcome.why)
        return outcome

    async def _observe(self, judged: Judged) -> None:
        assert judged.group is not None
        said = line(judged.event, judged.text)
        await self._histories.note("\x1f".join(lane(judged.event.address)), said, judged.group.history)

    async def _knocked(self, row: InboxRow, judged: Judged) -> bool:
        """Whether a stranger was given a code. They are told nothing else, whatever goes wrong."""
        try:
            return await self._knock(row, judged)
        except GarraError as error:
            if error.retryable and row.tries < TRIES:
                raise
            log.info("%s: no code is given: %s", row.id, error.message)
            return False

    async def _knock(self, row: InboxRow, judged: Judged) -> bool:
        """A stranger wrote: a code, once for each request, whichever of their messages it answers. One that never got
        there is sent again.
        """
        event, ports = judged.event, self._ports
        address = event.address
        request = await ports.pairing.knock(
            {
                "channel": address.channel,
                "account": address.account,
                "sender": event.sender.id,
                "name": event.sender.name,
                "handle": event.sender.handle,
                "chat": address.chat,
            }
        )
        if request is None:
            return False
        brief = ports.voice.lines(address)
        text = inbound.pairing_line(address.channel, event.sender.id, request.code, brief=brief)
        drafts = ports.voice.drafts(f"pairing:{request.id}:{request.created_at}", Asked(address), text)
        for sent in await ports.outbox.put(drafts, inbox_id=row.id, why="pairing"):
            if sent.state == "dead" and not sent.reason.startswith("dropped by"):
                await ports.outbox.retry(sent.key)
        return True

    async def _dispatch(self, row: InboxRow, judged: Judged) -> Outcome:
        """Somebody was let in: record where they wrote, then a command or a turn."""
        assert isinstance(judged.verdict, Dispatch)
        place = spot(judged.event)
        routes = self.routes.all(place, judged.text)
        spoken = Spoken(row, judged.event, judged, judged.verdict.admitted, routes, judged.text)
        await self._ports.timeline.note_all((row.id,), "admitted", ask.label(spoken))
        for route in routes:
            await self._recorder.record(spoken, route)
        detail = ", ".join(f"{route.key} ({route.level})" for route in routes)
        await self._ports.timeline.note_all((row.id,), "routed", detail)
        if judged.given is not None:
            return await self._command(spoken, judged.given)
        left = await taken(self._ports.questions, spoken)
        return await (self._closed(row, ANSWERED) if left is None else self._speak(left))

    async def _command(self, spoken: Spoken, given: Given) -> Outcome:
        """Carry out a command: at once where it overtakes, else in the chat's order."""
        key = lane(spoken.event.address)
        desk = chores.Desk(self._ports, spoken, given)
        level = spoken.judged.group.command_level if spoken.judged.group else "all"
        owner_id = f"{spoken.event.address.channel}:{spoken.admitted.sender}"
        shared = desk.shared
        if refused := refusal(given, spoken.admitted, level, shared=shared, owner_id=owner_id):
            return await self._said(spoken, refused, given)
        if given.command.name == "stop":
            self._halt(key, spoken.row.seq)
        if given.command.overtakes:
            return await self._said(spoken, await chores.words(desk), given)
        self._bursts.close(key)
        async with self._bursts.enter(key):
            spoken, text = await chores.ordered(desk)
            if text:
                return await self._said(spoken, text, given)
            await self._adopt(spoken, spoken)
            going = await self._submit([spoken])
        return await self._answered(going)

    def _halt(self, key: tuple[str, ...], seq: int) -> None:
        """What came before a /stop and has not begun will not begin."""
        self._stopped[key] = max(seq, self._stopped.pop(key, 0))
        while len(self._stopped) > STOPS:
            self._stopped.popitem(last=False)
        self._bursts.close(key)

    def _is_stopped(self, spoken: Spoken) -> bool:
        everywhere = spoken.row.received_at <= self._ports.switch.stopped_at
        return everywhere or spoken.row.seq < self._stopped.get(lane(spoken.event.address), 0)

    async def _said(self, spoken: Spoken, text: str, given: Given) -> Outcome:
        asked = await self._starts.asked(spoken)
        drafts = self._ports.voice.drafts(f"{spoken.row.id}:command", asked, text)
        await self._ports.outbox.put(drafts, inbox_id=spoken.row.id, why=f"command {given.command.name}")
        return Outcome("dispatch", dispatched=True, why=f"command {given.command.name}")

    async def _speak(self, spoken: Spoken) -> Outcome:
        """Ordinary words: with others of their burst they become one turn."""
        event = spoken.event
        key, kind = lane(event.address), (tuple(route.key for route in spoken.routes), spoken.rights)
        quiet = 0.0 if event.media else quiet_s(self._ports.config(), event.address.channel, len(spoken.words))
        if (found := self._bursts.open(key, kind)) is not None and quiet > 0:
            await self._adopt(spoken, found.items[0])
            if self._bursts.join(key, found, spoken, quiet):
                return await asyncio.shield(found.result)
        burst = self._bursts.lead(key, kind, spoken, quiet)
        try:
            await self._adopt(spoken, spoken)
            async with self._bursts.enter(key, burst):
                going = await self._submit(await self._bursts.settle(key, burst))
        except BaseException as error:
            self._bursts.leave(key, burst)
            abandon(burst, error)
            raise
        try:
            outcome = await self._answered(going)
        except asyncio.CancelledError:
            burst.result.cancel()
            raise
        burst.result.set_result(outcome)
        return outcome

    async def _adopt(self, spoken: Spoken, leader: Spoken) -> None:
        """From here on a restart goes on with it, and the next message of its chat may be taken up."""
        route = leader.routes[0]
        run_id, inbox = ask.run_id(leader, route), self._ports.inbox
        await self._starts.in_place(lambda: inbox.adopt(spoken.row.id, run_id, route.key))

    async def _submit(self, spoken: Sequence[Spoken]) -> Sequence[Going] | Outcome:
        """Hand the turn to each of its agents. Where they wait for each other it comes to its end here."""
        first, rows = spoken[0], [each.row.id for each in spoken]
        if self._is_stopped(spoken[-1]):
            for row in rows:
                await self._ports.inbox.done(row, "stopped")
            return []
        spoken = [await self._starts.attached(each) for each in spoken]
        place = "\x1f".join(lane(first.event.address))
        before = await self._histories.peek(place) if first.judged.group is not None else ()
        spoken = self._starts.after(before, spoken) if before else spoken
        text = ask.text_of(spoken, before)
        crowd = self.routes.crowd(spot(first.event))

        async def begin(agent: AgentId, number: int, words: str) -> Going:
            route = self.routes.of(spot(first.event), agent)
            begun = await self._starts.begin(spoken, route, words or text, number)
            await self._histories.clear(place)
            return begun

        if not crowd.plain:
            return await self._in_rounds(crowd, spoken, begin)
        going = [await self._starts.begin(spoken, route, text) for route in first.routes]
        if before:
            await self._histories.clear(place)
        return going

    async def _in_rounds(self, crowd: Crowd, spoken: Sequence[Spoken], begin: Begin) -> Outcome:
        why = await self._crowds.talk(crowd, [route.agent for route in spoken[0].routes], begin)
        if why != KEPT:
            await self.answers.close([each.row.id for each in spoken], why)
        return Outcome("dispatch", dispatched=True, why=why)

    async def _answered(self, going: Sequence[Going] | Outcome) -> Outcome:
        """Wait for the answers and write them out; the rows are done with the last."""
        if isinstance(going, Outcome):
            return going
        if not going:
            return Outcome("dispatch", why="stopped")
        return Outcome("dispatch", dispatched=True, why=await self.answers.all(going))

    async def _activation(self, event: Inbound) -> object:
        session = await self._ports.sessions.get(self.routes.find(spot(event)).key)
        return session.extra.get("groupActivation") if session else None

    async def resume(
        self, rows: Sequence[InboxRow], found: Found, tries: int = 0, begun: Callable[[], None] = lambda: None
    ) -> Outcome:
        """Go on with a turn that a restart found: the same run again, behind what it did, or only its answer.

        `rows` are the messages that made it, oldest first; `begun` is called when its run has its place in line. When
        it ends with AGAIN or STUCK it is to be called again in a while; `tries` counts how often it was.
        """
        try:
            return await self._resumed(rows, found, begun)
        except GarraError as error:
            text, retry = error.message, error.retryable
        except Exception:
            log.exception("message %s met a fault", rows[0].id)
            text, retry = FAULT, True
        return Outcome("dispatch", why=AGAIN) if retry and tries < TRIES else await self._explained(rows, text)

    async def _resumed(self, rows: Sequence[InboxRow], found: Found, begun: Callable[[], None]) -> Outcome:
        spoken: list[Spoken] = []
        for row in rows:
            assert isinstance(row.event, Inbound)
            judged = await self.gate.judge(row.event)
            if not isinstance(judged.verdict, Dispatch):
                await self._ports.inbox.done(row.id, "no longer admitted")
                continue
            routes = self.routes.all(spot(row.event), judged.text)
            if len(routes) == 1:
                routes = (replace(routes[0], key=found.key, agent=agent_of(found.key, routes[0].agent)),)
            one = Spoken(row, row.event, judged, judged.verdict.admitted, routes, judged.text)
            spoken.append(await self._starts.attached(chores.uncommanded(self._ports, one)))
        if not spoken:
            return Outcome("drop", why="no longer admitted")
        first, crowd = spoken[0], self.routes.crowd(spot(spoken[0].event))

        async def again(agent: AgentId, number: int, words: str) -> Going | End:
            route = self.routes.of(spot(first.event), agent)
            result = await self._again(spoken, route, found, number=number, words=words)
            begun()
            return result

        async with self._bursts.enter(lane(first.event.address)):
            if not crowd.plain:
                return await self._in_rounds(crowd, spoken, again)
            ends = [await self._again(spoken, route, found) for route in first.routes]
        begun()
        if going := [each for each in ends if isinstance(each, Going)]:
            return await self._answered(going)
        why = next(end.why for end in ends if isinstance(end, End))
        for one in spoken:
            await self._ports.inbox.done(one.row.id, why)
        return Outcome("dispatch", dispatched=True, why=why)

    async def _again(
        self, spoken: Sequence[Spoken], route: Route, found: Found, *, number: int = 1, words: str = ""
    ) -> Going | End:
        """One agent's turn: gone on with, or, where only its answer was not written out, that answer."""
        ports, first, own = self._ports, spoken[0], found
        run_id = ask.run_id(first, route, number)
        if route.key != found.key or number > 1:
            transcript = await ports.sessions.transcript(route.key)
            own = standing(transcript.messages(), route.key, [run_id])[0]
        if not own.over:
            asked = own.text or words or found.text or ask.text_of(spoken, ())
            return await self._starts.begin(spoken, route, asked, number)
        asked_in = await self._starts.asked(spoken[-1], route)
        drafts = numbered([each for text in own.answer for each in ports.voice.drafts(run_id, asked_in, text)])
        if drafts and len(first.routes) == 1 and self.routes.crowd(spot(first.event)).plain:
            await ports.outbox.put(drafts, inbox_id=first.row.id, also=[each.row.id for each in spoken[1:]])
        elif drafts:
            await ports.outbox.put(drafts)
        return End("answered" if own.answer else "silence", "\n\n".join(own.answer))

    async def _failed(self, row: InboxRow, text: str, *, retry: bool) -> Outcome:
        """It could not be carried to an answer: again in a while, or one line that says so."""
        if not retry or row.tries >= TRIES:
            return await self._explained([row], text)
        try:
            await self._ports.inbox.release(row.id, float(2**row.tries))
        except GarraError as error:
            return stuck(row, error)
        return Outcome("dispatch", why=AGAIN)

    async def _explained(self, rows: Sequence[InboxRow], text: str) -> Outcome:
        """One line for all of `rows`, which are done with it."""
        row, event = rows[0], rows[0].event
        try:
            if isinstance(event, Inbound):
                drafts = self._ports.voice.drafts(f"{row.id}:failed", Asked(event.address, event.id), text)
                also = [each.id for each in rows[1:]]
                await self._ports.outbox.put(drafts, inbox_id=row.id, also=also, why="failed")
        except GarraError as error:
            return stuck(row, error)
        return Outcome("dispatch", why="failed")
