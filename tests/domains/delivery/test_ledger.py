"""What the owner sees of both boxes, and what he does with single messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.errors import Conflict, NotFound, UserError
from garra.domains.delivery.desk import Desk, Running, Wish, parsed
from garra.domains.delivery.draft import Draft, Form
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.ledger import Ledger, Query
from garra.domains.delivery.media import MediaRoot
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.timeline import Timeline
from garra.io.store.db import Database
from garra.sdk.channel import Address, File, Limits, SendFailed
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, clock, database, draft, inbound


class House:
    """Everything of delivery on one database."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.time: ManualClock = clock()
        self.inbox, self.outbox = Inbox(db, self.time), Outbox(db, self.time)
        self.timeline = Timeline(db, self.time)
        self.ledger = Ledger(db, self.inbox, self.outbox, self.timeline)
        self.running = [Running("test", "main", Limits(text=100, file_out=1_000_000))]
        media = MediaRoot(folder / "media", self.time)
        self.desk = Desk(
            self.inbox,
            self.outbox,
            self.timeline,
            self.ledger,
            media,
            lambda: self.running,
            self.drafting,
            lambda: ("test", "matrix"),
        )

    def drafting(self, key: str, to: Address, text: str) -> Sequence[Draft]:
        return [Draft(f"{key}:{n}", to, (Form("plain", part),), position=n) for n, part in enumerate(text.split("|"))]

    async def answer(self) -> str:
        """One message in, taken its whole way, and answered."""
        row_id = (await self.inbox.accept(inbound(address=address(thread="5")))).row_id
        await self.time.advance(1)
        await self.timeline.note(row_id, "admitted", "by allowFrom")
        await self.inbox.claim(row_id)
        await self.inbox.adopt(row_id, "run-1", "agent:main:main")
        await self.timeline.note_all((row_id,), "model", "fake/fake")
        await self.outbox.put([draft("out:run-1:0", address=address(thread="5"))], inbox_id=row_id)
        await self.time.advance(1)
        return row_id

    async def send(self, fault: SendFailed | None = None) -> None:
        for row in await self.outbox.claim(await self.outbox.heads("test", "main")):
            await (self.outbox.failed(row, fault) if fault else self.outbox.sent(row, "77"))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    db = database(tmp_path)
    await db.open()
    yield House(db, tmp_path)
    await db.close()


@pytest.mark.req("MSG-14")
async def test_a_message_has_one_story_from_its_coming_to_the_platforms_word(house: House) -> None:
    row_id = await house.answer()
    await house.send()
    row = await house.ledger.find(row_id)
    story = [(station.station, station.detail) for station in await house.ledger.story(row)]
    assert story == [
        ("received", ""),
        ("admitted", "by allowFrom"),
        ("adopted", "run-1"),
        ("model", "fake/fake"),
        ("written", "reply"),
        ("done", "answered"),
        ("sending", ""),
        ("sent", "77"),
    ]
    assert all(station.words != station.station for station in await house.ledger.story(row))
    assert [answer.platform_id for answer in await house.ledger.answers(row)] == ["77"]
    only = await house.ledger.find("out:run-1:0")
    assert [station.station for station in await house.ledger.story(only)] == ["written", "sending", "sent"]
    assert await house.ledger.answers(only) == []


async def test_a_failed_message_tells_why_in_words(house: House) -> None:
    await house.answer()
    await house.send(SendFailed("passing", "502 bad gateway"))
    await house.time.advance(2)
    await house.send(SendFailed("unsure", "the connection was cut"))
    row = await house.ledger.find("out:run-1:0")
    story = [(station.station, station.detail) for station in await house.ledger.story(row)]
    assert story[1:] == [
        ("sending", ""),
        ("later", "502 bad gateway"),
        ("sending", ""),
        ("unsure", "the connection was cut"),
    ]


async def test_lists_are_newest_first_and_narrowed(house: House) -> None:
    row_id = await house.answer()
    await house.inbox.accept(inbound("2", chat="8"))
    rows = await house.ledger.rows(Query())
    assert [row.id if isinstance(row, InboxRow) else row.key for row in rows][1:] == ["out:run-1:0", row_id]
    assert len(await house.ledger.rows(Query(direction="in"))) == 2
    assert len(await house.ledger.rows(Query(direction="out", state="pending"))) == 1
    assert await house.ledger.rows(Query(channel="test", account="main", chat="8", state="done")) == []
    assert len(await house.ledger.rows(Query(limit=1))) == 1


async def test_a_message_is_found_by_a_beginning_that_only_it_has(house: House) -> None:
    row_id = await house.answer()
    assert (await house.ledger.find(row_id[:-3])).state == "done"
    await house.outbox.put([draft("out:run-1:1")])
    with pytest.raises(UserError, match="say more of it"):
        await house.ledger.find("out:run-1:")
    for nothing in ("", "zzz", "%"):
        with pytest.raises(NotFound):
            await house.ledger.find(nothing)


async def test_the_owner_retries_and_drops_both_kinds(house: House) -> None:
    row_id = (await house.inbox.accept(inbound())).row_id
    await house.inbox.bury(row_id, "no model")
    assert (await house.ledger.retry(row_id)).state == "pending"
    assert (await house.ledger.drop(row_id)).state == "done"
    await house.outbox.put([draft("a")])
    await house.send(SendFailed("unsure", "cut"))
    assert (await house.ledger.retry("a")).state == "pending"
    await house.send()
    with pytest.raises(Conflict, match="is sent"):
        await house.ledger.drop("a")


@pytest.mark.req("MSG-02")
async def test_what_is_not_finished_is_counted_by_account(house: House) -> None:
    await house.answer()
    await house.send(SendFailed("unsure", "cut"))
    await house.inbox.accept(inbound("2"))
    assert await house.ledger.counts() == {("test", "main"): {"in.pending": 1, "out.unsure": 1}}


async def test_what_is_finished_and_old_goes_with_its_story(house: House) -> None:
    row_id = await house.answer()
    await house.send()
    await house.outbox.put([draft("dead")])
    await house.outbox.bury("dead", "gone")
    open_id = (await house.inbox.accept(inbound("9", chat="9"))).row_id
    day = 86_400_000
    assert await house.ledger.sweep(house.time.now_ms() + 29 * day) == 0
    assert await house.ledger.sweep(house.time.now_ms() + 31 * day) == 2
    assert await house.timeline.timeline(row_id) == []
    assert await house.ledger.sweep(house.time.now_ms() + 91 * day) == 1
    assert (await house.ledger.find(open_id)).state == "pending"


async def test_a_wish_is_sent_once_for_its_key_and_waits_for_the_platform(house: House) -> None:
    wish = Wish("k1", "test:7", "one|two", reply_to="3", silent=True)
    sent = await house.desk.send(wish, 0.01)
    assert (sent.state, sent.message_id) == ("pending", "")
    rows = [await house.outbox.get(f"send:k1:{n}") for n in (0, 1)]
    assert [row.outbound().reply_to for row in rows] == ["3", ""]
    assert rows[0].outbound().silent
    await house.send()
    await house.send()
    again = await house.desk.send(wish, 0.01)
    assert (again.state, again.message_id) == ("sent", "77")
    assert await house.outbox.heads("test", "main") == []


async def test_a_link_that_is_down_is_not_waited_for_long(house: House) -> None:
    house.running = [Running("test", "main", Limits(text=100), up=False)]
    async with asyncio.timeout(10):
        sent = await house.desk.send(Wish("k1", "test:7", "one"), 3600)
    assert sent.state == "pending"
    assert house.desk.waits_for(sent.rows[0]) == "test/main has no connection now; see garra channels status"
    house.running = [Running("test", "main", Limits(text=100))]
    assert house.desk.waits_for(sent.rows[0]) == ""


async def test_a_wish_leads_where_its_chat_last_wrote_from(house: House) -> None:
    where = replace(address("g1", "5"), kind="group", guild="G", roles=("admin",))
    await house.inbox.accept(inbound(address=where))
    _, found = await house.desk.target(Wish("k", "g1", "x"))
    assert found == replace(where, thread="", roles=())
    _, topic = await house.desk.target(Wish("k", "test:-100:topic:9", "x"))
    assert (topic.chat, topic.kind, topic.thread) == ("-100", "group", "9")


async def test_a_wish_that_leads_nowhere_says_what_to_write(house: House) -> None:
    house.running.append(Running("irc", "main", Limits(text=1)))
    for wish, words in (
        (Wish("k", "7", "x"), "which channel"),
        (Wish("k", "test:7", "x", channel="irc"), "is a chat of test, not of irc"),
        (Wish("k", "7", "x", channel="xmpp"), r"there is no xmpp account that can send \(those that can: irc, test\)"),
        (Wish("k", "7", "x", channel="irc", account="b"), "there is no irc account b"),
        (Wish("k", "matrix:@ann:example.org", "x"), "there is no matrix account that can send"),
        (Wish("k", "Matrix:1", "x", channel="irc"), "is a chat of matrix, not of irc"),
        (Wish("k", "test:", "x"), "to whom"),
        (Wish("k", "test:7", "  "), "nothing to send"),
    ):
        with pytest.raises((UserError, NotFound), match=words):
            await house.desk.send(wish, 0.01)


@pytest.mark.req("ONE-14")
async def test_files_go_along_and_too_large_ones_become_a_line(house: House) -> None:
    small, large = File("file", "a", "a.txt", "", 10), File("file", "b", "b.zip", "", 2_000_000)
    await house.desk.send(Wish("k", "test:7", "", files=(small, large)), 0.01)
    (row,) = await house.outbox.claim(await house.outbox.heads("test", "main"))
    assert row.outbound().files == (small,)
    assert row.outbound().text.startswith("b.zip (2.0 MB) is over the limit of 1.0 MB here")


def test_targets_in_their_writings() -> None:
    assert parsed("telegram:1", ["telegram"]) == ("telegram", "1", "")
    assert parsed("1:topic:2", ["telegram"]) == ("", "1", "2")
    assert parsed("!room:server.org", ["matrix"]) == ("", "!room:server.org", "")
    assert parsed("matrix:!room:server.org", ["matrix"]) == ("matrix", "!room:server.org", "")
