"""What is accepted is on the disk, once, and goes through its states."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.errors import Conflict, NotFound
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.io.store.db import Connection, Database
from garra.sdk.channel import Ignored, Inbound, Media, Sender
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, clock, database, inbound


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    made = database(tmp_path)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def time() -> ManualClock:
    return clock()


@pytest.fixture
def box(db: Database, time: ManualClock) -> Inbox:
    return Inbox(db, time)


@pytest.mark.req("MSG-02", "ONE-03")
async def test_accepting_commits_with_synchronous_full_before_it_returns(db: Database, box: Inbox) -> None:
    said: list[str] = []
    await db.write(lambda connection: connection.set_trace_callback(said.append))
    said.clear()
    accepted = await box.accept(inbound())
    order = [line for line in said if line.startswith(("PRAGMA synchronous", "BEGIN", "COMMIT", "INSERT INTO inbox"))]
    assert [line.split(" (")[0] for line in order] == [
        "PRAGMA synchronous=FULL",
        "BEGIN IMMEDIATE",
        "INSERT INTO inbox",
        "COMMIT",
    ]
    level: list[int] = []

    def ask(connection: Connection) -> None:
        level.append(connection.execute("PRAGMA synchronous").fetchone()[0])

    await db.write(ask, durable=True)
    assert level == [2]
    assert not accepted.duplicate


async def test_a_row_keeps_all_that_was_said(box: Inbox) -> None:
    event = inbound(
        text="häl\ud800lo",
        address=replace(address(thread="3"), roles=("a", "b"), guild="g"),
        media=(Media("image", "file-1", size=3),),
        raw={"update_id": 1, "odd": b"bytes"},
    )
    row_id = (await box.accept(event)).row_id
    row = await box.get(row_id)
    assert isinstance(row.event, Inbound)
    assert row.event.text == "häl\ufffdlo"
    assert (row.event.address, row.event.media) == (event.address, event.media)
    assert row.state == "pending"


async def test_a_huge_platform_event_is_not_kept(box: Inbox) -> None:
    row = await box.get((await box.accept(inbound(raw="x" * 100_000))).row_id)
    assert row.event.raw is None


@pytest.mark.req("MSG-04", "CH-20", "ONE-03")
async def test_the_same_event_is_accepted_once(db: Database, box: Inbox, time: ManualClock) -> None:
    heard: list[InboxRow] = []
    box.subscribe(heard.append)
    both = await asyncio.gather(box.accept(inbound()), box.accept(inbound()))
    again = await box.accept(inbound())
    after_restart = await Inbox(db, time).accept(inbound())
    assert sorted(accepted.duplicate for accepted in both) == [False, True]
    assert again.duplicate
    assert after_restart.duplicate
    assert {accepted.row_id for accepted in (*both, again, after_restart)} == {heard[0].id}
    assert len(heard) == 1


async def test_another_chat_account_or_kind_is_another_event(box: Inbox) -> None:
    events = [
        inbound(),
        inbound(chat="8"),
        inbound(address=address(account="work")),
        replace(inbound(), event="edit"),
        inbound("2"),
    ]
    assert not any([(await box.accept(event)).duplicate for event in events])


async def test_another_bot_in_the_same_account_counts_from_one_again(
    db: Database, box: Inbox, time: ManualClock
) -> None:
    first = await box.accept(inbound(), "700000")
    assert not (await box.accept(inbound(), "800000")).duplicate
    assert await box.accept(inbound(), "700000") == replace(first, duplicate=True)
    assert (await Inbox(db, time).accept(inbound(), "800000")).duplicate
    assert (await box.get(first.row_id)).event.id == inbound().id


async def test_memory_of_duplicates_is_bounded_and_the_disk_remembers_more(box: Inbox, time: ManualClock) -> None:
    first = await box.accept(inbound())
    await time.advance(21 * 60)
    assert (await box.accept(inbound())) == replace(first, duplicate=True)


async def test_an_ignored_event_is_recorded_and_nothing_follows(box: Inbox) -> None:
    heard: list[InboxRow] = []
    box.subscribe(heard.append)
    one = await box.accept(Ignored("9", None, "ingest-null"))
    await box.accept(Ignored("9", address(), "other"))
    row = await box.get(one.row_id)
    assert (row.state, row.why, heard) == ("done", "ingest-null", [])
    assert isinstance(row.event, Ignored)


async def test_a_row_goes_its_way(box: Inbox) -> None:
    row_id = (await box.accept(inbound())).row_id
    assert (await box.claim(row_id)).state == "claimed"
    with pytest.raises(Conflict):
        await box.claim(row_id)
    adopted = await box.adopt(row_id, "run-1", "agent:main:main")
    assert (adopted.state, adopted.run_id, adopted.session_key) == ("adopted", "run-1", "agent:main:main")
    with pytest.raises(Conflict):
        await box.drop(row_id)
    assert (await box.done(row_id, "answered")).why == "answered"
    assert (await box.done(row_id, "something else")).why == "answered"
    with pytest.raises(NotFound):
        await box.get("nothing")


async def test_a_restart_finds_what_is_open_in_order(db: Database, box: Inbox, time: ManualClock) -> None:
    ids = [(await box.accept(inbound(str(n)))).row_id for n in range(5)]
    await box.claim(ids[1])
    await box.adopt(ids[2], "r", "k")
    await box.done(ids[3], "silence")
    await box.bury(ids[4], "broken")
    open_rows = await Inbox(db, time).pending()
    assert [(row.id, row.state) for row in open_rows] == [
        (ids[0], "pending"),
        (ids[1], "pending"),
        (ids[2], "adopted"),
    ]


async def test_who_listens_hears_of_new_released_retried_and_dead_rows(box: Inbox, time: ManualClock) -> None:
    heard: list[tuple[str, str]] = []
    end = box.subscribe(lambda row: heard.append((row.state, row.why)))
    row_id = (await box.accept(inbound())).row_id
    await box.claim(row_id)
    released = await box.release(row_id, 2.0)
    assert (released.tries, released.due_at) == (1, time.now_ms() + 2000)
    await box.bury(row_id, "no model")
    await box.retry(row_id)
    end()
    await box.drop(row_id)
    assert heard == [("pending", ""), ("pending", ""), ("dead", "no model"), ("pending", "")]


@pytest.mark.req("CH-21")
async def test_a_full_chat_loses_the_bots_own_first_then_people(db: Database, time: ManualClock) -> None:
    box = Inbox(db, time, pending=3)
    heard: list[InboxRow] = []
    box.subscribe(heard.append)
    own = Sender("bot", is_bot=True)
    ids = [(await box.accept(inbound("1"))).row_id]
    ids += [(await box.accept(inbound("2", sender=own, own=True))).row_id]
    ids += [(await box.accept(inbound(str(n)))).row_id for n in (3, 4, 5)]
    await box.accept(inbound("other", chat="8"))
    dead = [row for row in heard if row.state == "dead"]
    assert [row.id for row in dead] == [ids[1], ids[0]]
    assert "were waiting" in dead[0].why


@pytest.mark.req("MSG-02")
async def test_what_a_run_has_is_on_the_disk_before_the_run_writes_anything(db: Database, box: Inbox) -> None:
    """Its transcript is synced: after a power cut the row must not be another run's."""
    row_id = (await box.accept(inbound())).row_id
    await box.claim(row_id)
    said: list[str] = []
    await db.write(lambda connection: connection.set_trace_callback(said.append))
    said.clear()
    await box.adopt(row_id, "run", "key")
    levels = [line for line in said if line.startswith(("PRAGMA synchronous", "COMMIT"))]
    assert levels == ["PRAGMA synchronous=FULL", "COMMIT"]
