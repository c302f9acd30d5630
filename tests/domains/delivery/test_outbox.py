"""What is written goes out once, in order, or somebody is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.core.errors import Conflict, NotFound
from garra.core.spool import Again, Dead, Degrade, Doubt, Hold, Split, Unload
from garra.domains.delivery.draft import Form, OutboxRow, plain_draft
from garra.domains.delivery.inbox import Inbox
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.timeline import Timeline
from garra.io.store.db import Database
from garra.sdk.channel import File, SendFailed
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, clock, database, draft, inbound


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
def box(db: Database, time: ManualClock) -> Outbox:
    return Outbox(db, time)


async def sending(box: Outbox, chat: str = "7") -> OutboxRow:
    heads = await box.heads("test", "main")
    return (await box.claim([row for row in heads if row.draft.address.chat == chat]))[0]


async def texts(box: Outbox) -> list[str]:
    """Send everything; what went out, in order."""
    said = []
    while heads := await box.heads("test", "main"):
        for row in await box.claim(heads):
            said.append(row.outbound().text)
            await box.sent(row, "p" + row.key)
    return said


@pytest.mark.req("MSG-14")
async def test_writing_an_answer_finishes_its_message_in_one_durable_transaction(db: Database, box: Outbox) -> None:
    inbox = Inbox(db, clock())
    one, two = [(await inbox.accept(inbound(n))).row_id for n in "12"]
    said: list[str] = []
    await db.write(lambda connection: connection.set_trace_callback(said.append))
    said.clear()
    rows = await box.put([draft("a"), draft("b", position=1)], inbox_id=one, also=[two])
    assert [line for line in said if line.startswith(("PRAGMA", "BEGIN", "COMMIT"))] == [
        "PRAGMA synchronous=FULL",
        "BEGIN IMMEDIATE",
        "COMMIT",
    ]
    assert [(await inbox.get(row_id)).state for row_id in (one, two)] == ["done", "done"]
    assert [row.key for row in rows] == ["a", "b"]
    assert [row.key for row in await box.answers(one)] == ["a", "b"]


async def test_messages_that_one_run_took_along_share_its_answer(db: Database, box: Outbox) -> None:
    inbox, timeline = Inbox(db, clock()), Timeline(db, clock())
    one, two, three = [(await inbox.accept(inbound(n))).row_id for n in "123"]
    for row_id in (one, two):
        await inbox.adopt(row_id, "run-1", "agent:main:main")
    await box.put([draft("a")], inbox_id=one, also=[two])
    assert [row.key for row in await box.answers(two)] == ["a"]
    assert await box.answers(three) == []
    story = [(station.message, station.detail) for station in await timeline.timeline(two)]
    assert ("a", "reply") in story
    assert (two, f"in one answer with {one}") in story


async def test_an_answer_that_cannot_be_written_leaves_its_message_open(db: Database, box: Outbox) -> None:
    inbox = Inbox(db, clock())
    row_id = (await inbox.accept(inbound())).row_id
    with pytest.raises(NotFound):
        await box.put([draft()], inbox_id=row_id, also=["no such row"])
    assert (await inbox.get(row_id)).state == "pending"
    assert await box.heads("test", "main") == []


@pytest.mark.req("CH-20")
async def test_the_same_key_is_written_once(box: Outbox) -> None:
    await box.put([draft("a", "first")])
    row = await sending(box)
    await box.sent(row, "77")
    again = await box.put([draft("a", "second")])
    assert (again[0].state, again[0].platform_id, again[0].draft.text) == ("sent", "77", "first")
    assert await box.heads("test", "main") == []


async def test_a_chat_goes_in_order_and_chats_do_not_wait_for_each_other(box: Outbox) -> None:
    await box.put([draft("b", "2", position=1), draft("a", "1", position=0)])
    await box.put([draft("c", "x", chat="8"), draft("t", "topic", address=address(thread="5"))])
    heads = await box.heads("test", "main")
    assert [row.key for row in heads] == ["a", "c", "t"]
    await box.claim(heads[:1])
    assert [row.key for row in await box.heads("test", "main")] == ["c", "t"]
    assert await box.heads("test", "work") == []
    assert await box.claim(heads[:1]) == []


async def test_a_passing_fault_is_tried_again_later_and_the_chat_waits(box: Outbox, time: ManualClock) -> None:
    await box.put([draft("a"), draft("b", position=1)])
    effect = await box.failed(await sending(box), SendFailed("passing", "no network"))
    assert effect == Again(time.now_ms() + 1000, 1)
    (head,) = await box.heads("test", "main")
    assert (head.key, head.due_at, head.tries, head.reason) == ("a", time.now_ms() + 1000, 1, "no network")


@pytest.mark.req("MSG-02")
async def test_an_unsure_send_is_not_repeated_unless_its_key_is_known(box: Outbox) -> None:
    await box.put([draft("a")])
    assert await box.failed(await sending(box), SendFailed("unsure", "cut")) == Doubt()
    assert (await box.get("a")).state == "unsure"
    await box.put([draft("b")])
    row = await sending(box)
    assert isinstance(await box.failed(row, SendFailed("unsure", "cut"), idempotent=True), Again)
    assert (await box.get("b")).state == "pending"


async def test_a_permanent_fault_is_not_tried_again_and_said(box: Outbox) -> None:
    heard: list[tuple[str, str]] = []
    box.subscribe(lambda row: heard.append((row.state, row.reason)))
    await box.put([draft("a")])
    effect = await box.failed(await sending(box), SendFailed("gone", "403 bot was kicked"))
    assert isinstance(effect, Dead)
    assert heard[-1] == ("dead", "the chat is gone, or the bot is no longer in it: 403 bot was kicked")
    assert await box.heads("test", "main") == []


async def test_markup_that_is_refused_becomes_plainer(box: Outbox) -> None:
    ladder = (Form("html", "<b>hi"), Form("plain", "hi"))
    await box.put([draft("a", forms=ladder)])
    row = await sending(box)
    assert (row.outbound().format, row.outbound().text) == ("html", "<b>hi")
    assert await box.failed(row, SendFailed("format", "bad entities")) == Degrade(1)
    row = await sending(box)
    assert (row.outbound().format, row.outbound().text, row.tries) == ("plain", "hi", 0)
    assert isinstance(await box.failed(row, SendFailed("format", "odd")), Dead)


async def test_text_over_the_limit_is_cut_in_place_again_and_again(box: Outbox) -> None:
    words = " ".join(str(number) for number in range(200))
    await box.put([draft("a", words), draft("z", "end", position=1)])
    said: list[str] = []
    while heads := await box.heads("test", "main"):
        (row,) = await box.claim(heads)
        if len(row.outbound().text) > 100:
            assert await box.failed(row, SendFailed("too_long", "over")) == Split()
        else:
            said.append(row.outbound().text)
            await box.sent(row, "p")
    assert " ".join(said) == words + " end"


@pytest.mark.req("ONE-14")
async def test_files_over_the_limit_become_words(box: Outbox) -> None:
    file = File("file", "out/a.zip", "a.zip", "application/zip", 9_000_000)
    await box.put([draft("a", "here", files=(file,))])
    assert await box.failed(await sending(box), SendFailed("too_large", "413")) == Unload()
    row = await sending(box)
    assert row.outbound().files == ()
    assert row.outbound().text == "here\n\na.zip is too large to be sent here (9000000 bytes)."


async def test_a_bad_credential_holds_the_message_without_a_try(box: Outbox) -> None:
    await box.put([draft("a")])
    assert await box.failed(await sending(box), SendFailed("auth", "401")) == Hold()
    row = await box.get("a")
    assert (row.state, row.tries, row.reason) == ("pending", 0, "401")


async def test_a_restart_doubts_what_was_being_sent(db: Database, box: Outbox, time: ManualClock) -> None:
    await box.put([draft("a"), draft("b", position=1), draft("c", chat="8")])
    await box.claim(await box.heads("test", "main"))
    again = Outbox(db, time)
    unsure = await again.recover("test", "main", idempotent=False)
    assert [(row.key, row.state) for row in unsure] == [("a", "unsure"), ("c", "unsure")]
    assert [row.key for row in await again.heads("test", "main")] == ["b"]
    assert await again.recover("test", "main", idempotent=True) == []
    assert await texts(again) == ["hi", "hi", "hi"]


async def test_a_word_to_the_owner_that_may_have_arrived_is_told_again_after_a_restart(
    db: Database, box: Outbox, time: ManualClock
) -> None:
    await box.put([plain_draft("n", address(), "something went wrong", purpose="notice")])
    await box.claim(await box.heads("test", "main"))
    again = Outbox(db, time)
    assert await again.recover("test", "main", idempotent=False) == []
    assert [row.key for row in await again.heads("test", "main")] == ["n"]


async def test_the_owner_retries_or_drops(box: Outbox) -> None:
    await box.put([plain_draft("a", address(), "hi", purpose="send")])
    with pytest.raises(Conflict):
        await box.retry("a")
    await box.failed(await sending(box), SendFailed("refused", "no"))
    assert (await box.retry("a")).state == "pending"
    assert await texts(box) == ["hi"]
    with pytest.raises(Conflict):
        await box.drop("a")
    await box.put([draft("b")])
    assert (await box.drop("b")).state == "dead"
    await box.put([draft("c")])
    assert (await box.bury("c", "no such account")).reason == "no such account"
    with pytest.raises(NotFound):
        await box.get("none")
