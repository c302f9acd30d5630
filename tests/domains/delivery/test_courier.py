"""One account's messages go out once, in order, at its pace, and only while its link is up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest

from garra.core.errors import Unavailable
from garra.domains.delivery.courier import Courier, Route
from garra.domains.delivery.draft import Form
from garra.domains.delivery.media import rewriting
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.pace import Pace
from garra.io.store.db import Connection, Database
from garra.io.tasks import Tasks
from garra.sdk.channel import File, Limits, Outbound, Pulse, Receive, SendFailed
from garra.testing.clock import ManualClock
from tests.domains.delivery.parts import address, clock, database, draft

T = TypeVar("T")
LIFTED = Limits(text=4096, per_second=0)


@dataclass
class Wire:
    """A platform that writes down what it got. `plan` says how each send of a text ends, in turn."""

    limits: Limits = LIFTED
    got: list[tuple[float, Outbound]] = field(default_factory=list)
    plan: dict[str, list[BaseException]] = field(default_factory=dict)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    now: Callable[[], float] = float

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        """Nothing comes in."""

    async def send(self, message: Outbound) -> str:
        self.got.append((self.now(), message))
        if gate := self.gates.get(message.text):
            await gate.wait()
        if faults := self.plan.get(message.text):
            raise faults.pop(0)
        return f"p{len(self.got)}"

    @property
    def texts(self) -> list[str]:
        return [message.text for _, message in self.got]


@dataclass
class Place:
    """A courier on a real database, under a clock that is moved by hand."""

    time: ManualClock
    box: Outbox
    wire: Wire
    courier: Courier
    tasks: Tasks
    refused: list[str]
    db: Database

    async def until(self, done: Callable[[], Any]) -> None:
        for _ in range(2000):
            if done():
                return
            await asyncio.sleep(0.001)
        raise AssertionError(f"it did not come to that; sent {self.wire.texts}")

    async def quiet(self) -> None:
        """Time for the database's threads, without any for the clock."""
        for _ in range(20):
            await asyncio.sleep(0.001)

    async def pass_time(self, seconds: float, step: float = 0.25) -> None:
        for _ in range(round(seconds / step)):
            await self.quiet()
            await self.time.advance(step)
        await self.quiet()

    async def state(self, key: str) -> str:
        return (await self.box.get(key)).state


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[..., Place]]:
    db, tasks, time = database(tmp_path), Tasks(), clock()
    await db.open()
    box = Outbox(db, time)

    def build(limits: Limits = LIFTED, pace: Pace | None = None, account: str = "main", **more: Any) -> Place:
        refused: list[str] = []
        wire: Wire = more.pop("wire", None) or Wire(limits)
        wire.now = time.monotonic
        pace = pace or Pace(limits, time)
        route = Route("test", account, box, pace, time, tasks, refused=refused.append, **more)
        courier = Courier(wire, route)
        tasks(courier.run(), "courier")
        return Place(time, box, wire, courier, tasks, refused, db)

    yield build
    await tasks.close()
    await db.close()


async def test_messages_of_a_chat_go_in_order_and_are_confirmed(make: Callable[..., Place]) -> None:
    place = make()
    place.courier.up()
    await place.box.put([draft(f"k{n}", str(n), position=n) for n in range(5)])
    await place.until(lambda: len(place.wire.got) == 5 and not place.courier.sending)
    assert place.wire.texts == ["0", "1", "2", "3", "4"]
    row = await place.box.get("k3")
    assert (row.state, row.platform_id) == ("sent", "p4")
    assert {message.key for _, message in place.wire.got} == {f"k{n}" for n in range(5)}


async def test_a_chat_that_hangs_holds_up_no_other(make: Callable[..., Place]) -> None:
    place = make()
    place.courier.up()
    place.wire.gates["hang"] = asyncio.Event()
    await place.box.put([draft("h", "hang"), draft("h2", "behind", position=1)])
    await place.box.put([draft(f"k{n}", f"{n}", chat=f"c{n}") for n in range(10)])
    await place.until(lambda: len(place.wire.got) == 11)
    assert "behind" not in place.wire.texts
    place.wire.gates["hang"].set()
    await place.until(lambda: place.wire.texts[-1] == "behind")


async def test_nothing_goes_and_no_try_is_burned_while_the_link_is_down(make: Callable[..., Place]) -> None:
    place = make()
    await place.box.put([draft("a")])
    await place.pass_time(5)
    row = await place.box.get("a")
    assert (place.wire.got, row.state, row.tries) == ([], "pending", 0)
    place.courier.up()
    await place.until(lambda: place.wire.texts == ["hi"])


async def test_the_link_coming_back_ends_every_wait(make: Callable[..., Place]) -> None:
    place = make()
    place.wire.plan["hi"] = [SendFailed("passing", "no network") for _ in range(4)]
    place.courier.up()
    await place.box.put([draft("a")])
    await place.pass_time(8)
    assert len(place.wire.got) == 4
    place.courier.down()
    place.courier.up()
    await place.until(lambda: len(place.wire.got) == 5 and not place.courier.sending)
    assert await place.state("a") == "sent"


@pytest.mark.req("CH-17")
async def test_later_counts_for_every_chat_of_the_credential_and_for_no_other(make: Callable[..., Place]) -> None:
    limits = Limits(text=4096, per_second=30, per_chat_s=1.0)
    one, two = make(limits), make(limits, account="work")
    one.wire.plan["first"] = [SendFailed("passing", "429", retry_after_s=2.0)]
    one.courier.up()
    two.courier.up()
    await one.box.put([draft("a", "first")])
    await one.until(lambda: one.wire.got and not one.courier.sending)
    await one.box.put([draft("b", "other chat", chat="8")])
    await one.box.put([draft("c", "other token", address=address("9", account="work"))])
    await one.pass_time(3)
    assert one.wire.got[0][0] == 0
    assert all(at >= 2.0 for at, _ in one.wire.got[1:])
    assert sorted(one.wire.texts) == ["first", "first", "other chat"]
    assert [at for at, _ in two.wire.got] == [0.0]
    assert (await one.box.get("a")).tries == 0


@pytest.mark.req("ONE-05")
async def test_each_chat_keeps_its_pace(make: Callable[..., Place]) -> None:
    place = make(Limits(text=4096, per_second=30, per_chat_s=1.0))
    place.courier.up()
    await place.box.put([draft(f"k{n}", str(n), position=n) for n in range(3)])
    await place.pass_time(4)
    times = [at for at, _ in place.wire.got]
    assert place.wire.texts == ["0", "1", "2"]
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(times))


async def test_an_unknown_end_is_unsure_and_the_next_message_goes(make: Callable[..., Place]) -> None:
    place = make(send_s=0.05)
    place.wire.plan = {
        "cut": [Unavailable("cut", details={"kind": "cut"})],
        "refused": [Unavailable("no route", details={"kind": "connect"})],
    }
    place.wire.gates["never"] = asyncio.Event()
    place.courier.up()
    await place.box.put([draft("a", "cut"), draft("b", "never", position=1), draft("c", "end", position=2)])
    await place.until(lambda: place.wire.texts[-1:] == ["end"])
    assert [await place.state(key) for key in "ab"] == ["unsure", "unsure"]
    assert (await place.box.get("b")).reason == "the platform did not answer in time"
    await place.box.put([draft("d", "refused")])
    await place.pass_time(2)
    assert await place.state("d") == "sent"


async def test_a_channel_that_is_at_fault_leaves_no_chat_stuck(
    make: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = make()
    place.wire.plan["bug"] = [ZeroDivisionError("a secret")]
    place.courier.up()
    await place.box.put([draft("a", "bug"), draft("b", "next", position=1)])
    await place.until(lambda: place.wire.texts[-1:] == ["next"])
    row = await place.box.get("a")
    assert (row.state, row.reason) == ("unsure", "the channel failed: ZeroDivisionError")
    assert "ended with a fault" in caplog.text


async def test_what_will_not_arrive_is_logged_with_its_reason(
    make: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = make()
    place.wire.plan["hi"] = [SendFailed("gone", "404")]
    place.courier.up()
    await place.box.put([draft("a", "hi")])
    await place.until(lambda: "not delivered" in caplog.text)
    assert "test/main: a message was not delivered: 404 (garra messages show a)" in caplog.text


async def test_a_bad_credential_stops_the_account_and_keeps_its_messages(make: Callable[..., Place]) -> None:
    place = make()
    place.wire.plan["hi"] = [SendFailed("auth", "401")]
    place.courier.up()
    await place.box.put([draft("a"), draft("b", "later", chat="8")])
    await place.until(lambda: place.refused)
    await place.pass_time(5)
    assert place.refused == ["401"]
    assert await place.state("a") == "pending"
    place.courier.up()
    await place.until(lambda: "hi" in place.wire.texts[1:])


async def test_a_format_that_is_refused_is_followed_by_the_next_in_place(make: Callable[..., Place]) -> None:
    place = make()
    place.wire.plan["<b>"] = [SendFailed("format", "bad entities")]
    place.courier.up()
    await place.box.put([draft("a", forms=(Form("html", "<b>"), Form("plain", "b"))), draft("z", "z", position=1)])
    await place.until(lambda: len(place.wire.got) == 3)
    assert place.wire.texts == ["<b>", "b", "z"]
    assert place.wire.got[1][1].format == "plain"


@pytest.mark.req("ONE-14")
async def test_a_file_over_the_limit_becomes_a_link(make: Callable[..., Place]) -> None:
    place = make(rewrite=rewriting(50_000_000, lambda file: f"https://sink.example/{file.name}"))
    place.wire.plan["take this"] = [SendFailed("too_large", "413")]
    place.courier.up()
    file = File("video", "out/a.mp4", "a.mp4", "video/mp4", 61_200_000)
    await place.box.put([draft("a", "take this", files=(file,))])
    await place.until(lambda: len(place.wire.got) == 2)
    told = place.wire.got[1][1]
    assert told.text == ("take this\n\na.mp4 (61.2 MB) is over the limit of 50.0 MB here: https://sink.example/a.mp4")
    assert told.files == ()


async def test_closing_waits_for_what_is_with_the_platform(make: Callable[..., Place]) -> None:
    place = make()
    place.wire.gates["hi"] = asyncio.Event()
    place.courier.up()
    await place.box.put([draft("a"), draft("b", "next", position=1)])
    await place.until(lambda: place.wire.got)
    await place.courier.close(0.01)
    assert place.courier.sending == 1
    place.wire.gates["hi"].set()
    await place.courier.close(5)
    assert await place.state("a") == "sent"
    assert await place.state("b") == "pending"


class Refusing:
    """A store whose disk is full for as long as `full` says."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.full = False

    async def write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T:
        if self.full:
            raise Unavailable("the disk is full", retryable=True)
        return await self._db.write(work, durable=durable)

    async def read(self, work: Callable[[Connection], T]) -> T:
        return await self._db.read(work)


async def test_a_disk_that_refuses_is_waited_for_and_nothing_is_sent_twice(make: Callable[..., Place]) -> None:
    place = make()
    disk = Refusing(place.db)
    place.box._db = disk
    place.wire.gates["hi"] = asyncio.Event()
    place.courier.up()
    await place.box.put([draft("a"), draft("b", "next", position=1)])
    await place.until(lambda: place.wire.got)
    disk.full = True
    place.wire.gates["hi"].set()
    await place.pass_time(3)
    disk.full = False
    await place.pass_time(2)
    assert place.wire.texts == ["hi", "next"]
    assert [await place.state(key) for key in "ab"] == ["sent", "sent"]


async def test_a_pace_is_taken_turn_by_turn() -> None:
    time = clock()
    pace = Pace(Limits(text=1, per_second=1), time)
    assert pace.take(address())
    assert not pace.take(address("8"))
    waiting = asyncio.get_running_loop().create_task(pace.turn(address("8")))
    await time.advance(1.0)
    await waiting
    assert time.monotonic() == 1.0


class Editing(Wire):
    """A platform whose messages can be changed."""

    async def edit(self, message_id: str, message: Outbound) -> None:
        self.got.append((self.now(), message))
        if faults := self.plan.get(f"edit {message_id}"):
            raise faults.pop(0)


async def test_an_answer_that_takes_the_place_of_a_message_may_be_tried_again(make: Callable[..., Place]) -> None:
    place = make(wire=Editing())
    place.wire.plan["edit 5"] = [SendFailed("unsure", "cut")]
    place.courier.up()
    await place.box.put([draft("a", edits="5")])
    await place.pass_time(2)
    assert ((await place.box.get("a")).platform_id, len(place.wire.got)) == ("5", 2)


async def test_where_the_message_to_change_is_gone_the_answer_is_sent_anew(make: Callable[..., Place]) -> None:
    place = make(wire=Editing())
    place.wire.plan["edit 5"] = [SendFailed("gone", "message not found")]
    place.courier.up()
    await place.box.put([draft("a", edits="5"), draft("z", "z", position=1)])
    await place.until(lambda: place.wire.texts[-1:] == ["z"])
    assert place.wire.texts == ["hi", "hi", "z"]
    assert (await place.box.get("a")).platform_id == "p2"
