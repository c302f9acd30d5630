"""What every engine does: the next message of a free lane, in order, and handed out again until one of four words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from garra.domains.delivery.engine import Embedded, Engine, Job
from garra.domains.delivery.inbox import Inbox
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.channel import Ignored
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, inbound

NOBODY_S = 0.05
"""How long a test waits to see that nothing comes."""


@dataclass
class Bench:
    """An engine, and the inbox that feeds it; `again` is what a new process would have."""

    engine: Engine
    inbox: Inbox
    time: ManualClock
    again: Callable[[], Awaitable[Engine]]

    async def say(self, text: str, chat: str = "7", thread: str = "") -> str:
        event = inbound(text, text, address=address(chat, thread))
        return (await self.inbox.accept(event)).row_id

    async def next(self) -> Job:
        return await asyncio.wait_for(self.engine.next(), 5)

    async def nothing(self) -> bool:
        try:
            await asyncio.wait_for(self.engine.next(), NOBODY_S)
        except TimeoutError:
            return True
        return False


@pytest.fixture(params=["embedded"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    db, time, tasks = Database(tmp_path / "state.db"), ManualClock(), Tasks()
    await db.open()
    inbox = Inbox(db, time)
    made: list[Embedded] = []

    async def embedded() -> Engine:
        for old in made:
            old.close()
        made.append(Embedded(Inbox(db, time) if made else inbox, time, tasks))
        return made[-1]

    builders = {"embedded": embedded}
    build = builders[request.param]
    bench = Bench(await build(), inbox, time, build)
    assert await bench.engine.start() == []
    yield bench
    await tasks.close()
    await db.close()


async def test_the_oldest_comes_first(bench: Bench) -> None:
    for number in range(3):
        await bench.say(str(number), chat=f"c{number}")
    assert [(await bench.next()).event.text for _ in range(3)] == ["0", "1", "2"]


async def test_it_waits_for_a_message(bench: Bench) -> None:
    waiting = asyncio.get_running_loop().create_task(bench.next())
    await asyncio.sleep(0.01)
    await bench.say("late")
    assert (await waiting).event.text == "late"


@pytest.mark.req("ONE-03")
async def test_a_lane_is_busy_until_a_word_and_others_go_on(bench: Bench) -> None:
    await bench.say("1")
    await bench.say("2")
    await bench.say("topic", thread="5")
    await bench.say("other", chat="8")
    first = await bench.next()
    assert [(await bench.next()).event.text for _ in range(2)] == ["topic", "other"]
    assert await bench.nothing()
    await bench.engine.done(first, "answered")
    second = await bench.next()
    assert second.event.text == "2"
    assert second.lane == first.lane


async def test_what_a_run_has_adopted_no_longer_holds_its_lane(bench: Bench) -> None:
    await bench.say("long work")
    await bench.say("/stop")
    job = await bench.next()
    row = await bench.engine.adopted(job, "run-1", "agent:main:main")
    assert (row.state, row.run_id) == ("adopted", "run-1")
    assert (await bench.next()).event.text == "/stop"


async def test_a_retry_comes_after_its_delay_and_before_the_rest_of_its_lane(bench: Bench) -> None:
    await bench.say("1")
    await bench.say("2")
    job = await bench.next()
    row = await bench.engine.retry(job, 10.0)
    assert row.tries == 1
    assert await bench.nothing()
    await bench.say("elsewhere", chat="8")
    assert (await bench.next()).event.text == "elsewhere"
    waiting = asyncio.get_running_loop().create_task(bench.next())
    await asyncio.sleep(0.01)
    await bench.time.advance(10.0)
    again = await waiting
    assert (again.event.text, again.row.tries) == ("1", 1)


async def test_a_dead_message_is_told_and_its_lane_goes_on(bench: Bench) -> None:
    heard: list[tuple[str, str]] = []
    bench.inbox.subscribe(lambda row: heard.append((row.state, row.why)))
    await bench.say("1")
    await bench.say("2")
    await bench.engine.dead(await bench.next(), "no model")
    assert ("dead", "no model") in heard
    assert (await bench.next()).event.text == "2"


async def test_an_ignored_event_is_never_handed_out(bench: Bench) -> None:
    await bench.inbox.accept(Ignored("1", address()))
    assert await bench.nothing()


@pytest.mark.req("MSG-02")
async def test_a_new_process_takes_up_what_the_old_one_left(bench: Bench) -> None:
    for text in ("claimed", "waiting"):
        await bench.say(text)
    await bench.say("adopted", chat="8")
    await bench.say("finished", chat="9")
    jobs = {job.event.text: job for job in [await bench.next() for _ in range(3)]}
    await bench.engine.adopted(jobs["adopted"], "run-8", "agent:main:8")
    await bench.engine.done(jobs["finished"], "answered")
    bench.engine = await bench.again()
    adopted = await bench.engine.start()
    assert [(row.run_id, row.session_key) for row in adopted] == [("run-8", "agent:main:8")]
    first = await bench.next()
    assert first.event.text == "claimed"
    assert await bench.nothing()
    await bench.engine.done(first, "answered")
    assert (await bench.next()).event.text == "waiting"


async def test_what_is_dropped_while_it_waits_is_not_handed_out(bench: Bench) -> None:
    dropped = await bench.say("1")
    await bench.say("2")
    await bench.inbox.drop(dropped)
    assert (await bench.next()).event.text == "2"


async def test_a_message_is_handed_to_one_of_many_that_ask(bench: Bench) -> None:
    asking = [asyncio.get_running_loop().create_task(bench.next()) for _ in range(4)]
    await asyncio.sleep(0.01)
    for number in range(4):
        await bench.say(str(number), chat=f"c{number}")
    got = [(await task).event.text for task in asking]
    assert sorted(got) == ["0", "1", "2", "3"]
