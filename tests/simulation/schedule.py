"""One schedule from one seed: what happens when, and what must hold at its end."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from random import Random

from garra.domains.delivery.draft import OutboxRow
from garra.domains.delivery.inbox import InboxRow
from garra.domains.delivery.ledger import Query
from garra.testing.clock import ManualClock
from tests.simulation.process import Process
from tests.simulation.world import Disk, Plan, Platform, blank

BUSY_S = 20.0
"""People write, processes die, and everything has faults, this long."""

PATIENCE_S = 3_000.0
"""So long after the last fault everything must be at its end."""


class Broken(AssertionError):
    """A schedule that broke a promise."""


@dataclass(frozen=True)
class Outcome:
    """What was seen of a schedule; `unsure` counts the answers whose arrival nobody knows."""

    plan: Plan
    answers: int
    unsure: int


@functools.cache
def _blank() -> bytes:
    return blank()


def run(seed: int, platform: type[Platform] = Platform) -> Outcome:
    """Raises Broken, which names the seed and its plan."""
    random = Random(seed)
    plan = Plan.of(random)
    try:
        return asyncio.run(_schedule(random, plan, platform))
    except AssertionError as fault:
        raise Broken(f"seed {seed}: {fault}\n{plan}") from fault


async def _schedule(random: Random, plan: Plan, network: type[Platform]) -> Outcome:
    clock = ManualClock()
    platform, disk = network(clock, random, plan), Disk(_blank())
    process = Process(disk, platform, random)
    process.start()
    said = [(random.random() * BUSY_S * 0.7, "say") for _ in range(plan.messages)]
    kills = [(random.random() * BUSY_S, "kill") for _ in range(plan.kills)]
    for at, what in sorted(said + kills):
        await clock.advance(max(0.0, at - clock.monotonic()))
        if what == "say":
            chat = f"c{random.randrange(plan.chats)}"
            platform.say(chat, random.choice(("", "", "t1", "t2")), f"q{len(platform.updates)}")
            continue
        await process.kill(power_cut=random.random() < plan.cuts)
        await clock.advance(random.choice((0.0, random.random() * 5)))
        process = Process(disk, platform, random)
        process.start()
    await clock.advance(max(0.0, BUSY_S - clock.monotonic()))
    platform.healed = process.store.healed = True
    await _finish(clock, platform, process)
    try:
        return await _judge(platform, process)
    finally:
        await process.kill(power_cut=False)


async def _finish(clock: ManualClock, platform: Platform, process: Process) -> None:
    """Give it time until nothing is open any more."""
    end = clock.monotonic() + PATIENCE_S
    while clock.monotonic() < end:
        await clock.advance(5.0)
        rows = await process.ledger.rows(Query(limit=1000))
        if platform.cursor == len(platform.updates) and all(_closed(row) for row in rows):
            return
    raise Broken(f"not at its end after {PATIENCE_S} s")


def _closed(row: InboxRow | OutboxRow) -> bool:
    return row.state in ("done", "dead", "sent", "unsure")


async def _judge(platform: Platform, process: Process) -> Outcome:
    came = [row for row in await process.ledger.rows(Query("in", limit=1000)) if isinstance(row, InboxRow)]
    went = [row for row in await process.ledger.rows(Query("out", limit=1000)) if isinstance(row, OutboxRow)]
    answers = [row for row in went if row.draft.purpose == "reply"]
    _every_message_is_answered_once(platform, came, answers)
    for row in went:
        _an_answer_is_shown_once(platform, row)
    _chats_are_in_order(platform, came, went)
    told = {row.key.split(":")[1] for row in went if row.draft.purpose == "notice"}
    unsure = [row for row in answers if row.state == "unsure"]
    if unsure and not told:
        raise Broken(f"{[row.key for row in unsure]} are unsure, and the owner was not told")
    if platform.early and not platform.plan.kills:
        raise Broken(f"sent before the platform's time: {platform.early}")
    for message in came:
        passed = {station.station for station in await process.timeline.timeline(message.id)}
        if not {"received", "adopted", "model", "written", "done"} <= passed:
            raise Broken(f"{message.id} has a story with gaps: {sorted(passed)}")
    return Outcome(platform.plan, len(answers), len(unsure))


def _every_message_is_answered_once(platform: Platform, came: list[InboxRow], answers: list[OutboxRow]) -> None:
    if sorted(row.event.id for row in came) != sorted(event.id for event in platform.updates):
        raise Broken("a message was lost or taken twice")
    if any(row.state != "done" for row in came):
        raise Broken(f"not answered: {[(row.event.id, row.state, row.why) for row in came if row.state != 'done']}")
    if sorted(row.key for row in answers) != sorted(f"out:{row.id}" for row in came):
        raise Broken("an answer is missing, or there are two")


def _an_answer_is_shown_once(platform: Platform, row: OutboxRow) -> None:
    shown = [each for each in platform.shown if each.key == row.key]
    if len(shown) > 1:
        raise Broken(f"{row.key} was shown {len(shown)} times ({row.state})")
    if row.state == "dead" or (row.state == "unsure" and platform.plan.idempotent):
        raise Broken(f"{row.key} is {row.state}: {row.reason}")
    if row.state == "sent" and (len(shown) != 1 or shown[0].id != row.platform_id):
        raise Broken(f"{row.key} is said to be sent and is not there")
    for each in shown:
        if (each.chat, each.thread) != row.lane or each.text.removeprefix("<i>") != row.draft.text:
            raise Broken(f"{row.key} went to {each.chat}/{each.thread}")


def _chats_are_in_order(platform: Platform, came: list[InboxRow], went: list[OutboxRow]) -> None:
    place = {row.key: row.place for row in went}
    seq = {f"out:{row.id}": row.seq for row in came}
    lanes: dict[tuple[str, str], list[str]] = {}
    for each in platform.shown:
        lanes.setdefault((each.chat, each.thread), []).append(each.key)
    for lane, keys in lanes.items():
        if [place[key] for key in keys] != sorted(place[key] for key in keys):
            raise Broken(f"{lane} got its messages in another order than they were written")
        answers = [seq[key] for key in keys if key in seq]
        if platform.plan.mode == "followup" and answers != sorted(answers):
            raise Broken(f"{lane} got its answers in another order than its messages came")
