"""What strangers write is stored, whatever it is, and makes nobody somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.domains.delivery.inbox import Inbox
from garra.domains.delivery.storable import UNSTORABLE, decoded, storable
from garra.domains.delivery.timeline import Timeline
from garra.io.store.db import Database
from garra.io.store.shelf import Seen, Shelf
from garra.sdk.channel import Address, Ignored, Inbound, Media, Sender
from tests.domains.delivery.parts import clock, database, inbound

ODD = ("a\ud800", "\udfff", "a\0b", "\ud83d\ude00\udc00")
TEXT = st.text(st.characters(categories=("Cs", "Lu", "Cc", "So")), max_size=5) | st.sampled_from(ODD)
NUMBER = st.integers(-(10**30), 10**30)
MEDIA = st.builds(Media, st.just("file"), TEXT, TEXT, TEXT, NUMBER | st.none(), NUMBER | st.none())
PLACE = st.builds(Address, st.just("x"), st.just("y"), TEXT, st.just("direct"), TEXT, TEXT, TEXT, TEXT, st.tuples(TEXT))
EVENT = st.builds(
    Inbound,
    TEXT,
    st.just("message"),
    PLACE,
    st.builds(Sender, TEXT, TEXT, TEXT),
    text=TEXT,
    timestamp=NUMBER,
    data=TEXT,
    reply_to=TEXT,
    reply_text=TEXT,
    media=st.tuples(MEDIA),
    raw=st.dictionaries(TEXT, TEXT | NUMBER),
)


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    made = database(tmp_path)
    await made.open()
    yield made
    await made.close()


@given(EVENT)
def test_every_event_is_stored_and_read_back(event: Inbound) -> None:
    kept = storable(event)
    assert kept.body.encode()
    assert "\\u0000" not in kept.body
    assert isinstance(kept.event, Inbound)
    back = decoded(kept.body)
    assert replace(back, raw=None) == replace(kept.event, raw=None)
    assert kept.event.sender.id in {"", event.sender.id}


@given(EVENT, EVENT)
def test_two_senders_two_places_and_two_events_never_become_one(one: Inbound, other: Inbound) -> None:
    a, b = storable(one).event, storable(other).event
    assert isinstance(a, Inbound)
    assert isinstance(b, Inbound)
    assert (a.id == b.id) == (one.id == other.id)
    assert (a.address.chat == b.address.chat) == (one.address.chat == other.address.chat)
    if one.sender.id != other.sender.id:
        assert a.sender.id != b.sender.id or a.sender.id == ""


@pytest.mark.parametrize("name", ["u1\ud800", "u1\0", "\ufffd1"])
def test_nobody_is_known_by_an_id_that_is_not_the_one_sent(name: str) -> None:
    for event in (inbound(sender=Sender(name)), inbound(chat=name)):
        found = storable(event).event
        assert isinstance(found, Inbound)
        assert found.sender.id == ""


def test_what_has_no_shape_is_recorded_as_such() -> None:
    wrong: Any = 7
    for event in (inbound(text=wrong), inbound(wrong), replace(inbound(), address=wrong), Ignored("1", wrong, wrong)):
        found = storable(event).event
        assert isinstance(found, Ignored)
        assert (found.reason, found.raw) == (UNSTORABLE, None)


def test_a_raw_event_without_bottom_is_left_out() -> None:
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    assert storable(inbound(raw=deep)).event.raw is None


async def test_the_tables_take_what_is_odd(db: Database) -> None:
    box = Inbox(db, clock())
    for odd in ODD:
        event = inbound(odd, odd, odd, sender=Sender(odd, odd, odd), raw={odd: odd})
        row = await box.get((await box.accept(event, odd)).row_id)
        assert (await box.accept(event, odd)).duplicate
        await box.claim(row.id)
        await box.bury(row.id, odd)
        await box.accept(Ignored(odd, replace(event.address, thread=odd), odd))
        await Timeline(db, clock()).note(row.id, "heard", odd)
        assert cast(Inbound, row.event).sender.id == ""
    assert len(await box.pending()) == 0


async def test_a_shelf_takes_what_is_odd(db: Database) -> None:
    shelf, seen = Shelf(db, "test"), Seen(db, "test")
    for odd in ODD:
        await shelf.set(odd, {"name": odd})
        assert set(await shelf.get(odd)) == {"name"}
        assert await seen.first(odd, now_ms=1, keep_ms=10)
        assert await shelf.remove(odd)
