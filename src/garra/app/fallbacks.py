"""A person hears when another model answers than the one that is meant, and when that is over; once, not every turn."""

from __future__ import annotations

import logging
from collections.abc import Callable

from garra.app.channels import Channels
from garra.app.house import House
from garra.core.errors import GarraError
from garra.core.events import RunEnded, RunEvent
from garra.gateway.host import Host
from garra.runs import notices
from garra.runs.run import Run
from garra.sdk.ports import Spawn

log = logging.getLogger(__name__)

Tell = Callable[[Run, str], None]


def follow(house: House, spawn: Spawn, tell: Tell) -> Callable[[], None]:
    """Look at each run that ended well; gives what ends it. `tell` must not block."""

    def heard(event: RunEvent) -> None:
        body = event.body
        if not isinstance(body, RunEnded) or body.ending != "ok":
            return
        run = house.runs.find(event.run_id)
        if run is None or not run.trace.answers:
            return
        trace = run.trace
        active = f"{trace.provider}/{trace.model}"
        if active != trace.requested or run.session_key in switched:
            spawn(look(run, active), "model fallback")

    async def look(run: Run, active: str) -> None:
        try:
            session = await house.sessions.need(run.session_key)
            found = notices.notice(session.extra, run.trace.requested, active, run.trace.attempts)
            if found is None:
                return
            await house.sessions.record(run.session_key, extra=found.changes)
        except GarraError as error:
            log.warning("that another model answered is not kept: %s", error.message)
            return
        if active == run.trace.requested:
            switched.discard(run.session_key)
        else:
            switched.add(run.session_key)
        if found.text:
            log.info("%s", found.text)
            tell(run, found.text)

    switched: set[str] = set()
    return house.runs.subscribe(heard)


def watch(house: House, host: Host, channels: Channels) -> Callable[[], None]:
    """Tell where the run was asked for; in a group nobody is told."""

    def tell(run: Run, text: str) -> None:
        about, place = run.turn.address, run.turn.place
        if about is None:
            host.show.tell(f"fallback-{host.new_id()}", run.session_key, run.agent_id, text)
        elif place is not None and not place.group:
            house.spawn(say(run, text), "word about a model")

    async def say(run: Run, text: str) -> None:
        if run.turn.address is None:
            return
        try:
            await channels.outbox.put(channels.worded(f"fallback:{run.run_id}", run.turn.address, text))
        except GarraError as error:
            log.warning("that another model answered is not told: %s", error.message)

    return follow(house, house.spawn, tell)
