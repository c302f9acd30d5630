"""Links: each lives, fails, is watched and comes back by itself."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from garra.core.errors import NotFound, Unavailable, UserError
from garra.domains.delivery.accounts import LinkKey, Setup
from garra.domains.delivery.link import Doors, LinkStatus, Patience
from garra.domains.delivery.links import Links
from garra.io.tasks import Tasks
from garra.sdk.channel import (
    Account,
    Address,
    Identity,
    Inbound,
    Limits,
    LinkLost,
    LinkRefused,
    Outbound,
    Pulse,
    Receive,
    Sender,
)
from garra.testing.clock import ManualClock, settle

Script = Callable[["Toy", Receive, Pulse], Awaitable[None]]


@dataclass
class Toy:
    """A channel that does what its script says."""

    script: Script
    limits: Limits = field(default_factory=lambda: Limits(100, beat_s=25.0))

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        await self.script(self, receive, pulse)

    async def send(self, message: Outbound) -> str:
        return "1"

    def inspect(self) -> dict[str, Any]:
        return {"toy": True}


@dataclass
class House:
    """A set of links with a script for each start of each account."""

    clock: ManualClock = field(default_factory=ManualClock)
    scripts: dict[str, list[Script]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    heard: list[Inbound] = field(default_factory=list)
    ups: list[tuple[str, bool]] = field(default_factory=list)

    def open(self, tasks: Tasks, patience: Patience | None = None) -> Links:
        doors = Doors(
            self.make, lambda _: self.receive, lambda _, line: self.told.append(line), self.clock, tasks, lambda: 0.5
        )
        self.links = Links(doors, patience)
        self.links.subscribe(lambda key, up: self.ups.append((key.account, up)))
        return self.links

    def make(self, setup: Setup) -> Toy:
        self.made.append(setup.account.id)
        listed = self.scripts[setup.account.id]
        return Toy(listed.pop(0) if len(listed) > 1 else listed[0])

    async def receive(self, event: Any) -> None:
        self.heard.append(event)

    def status(self, account: str = "default") -> LinkStatus:
        return next(one for one in self.links.status() if one.key.account == account)

    async def pass_(self, seconds: float, step: float = 5.0) -> None:
        for _ in range(int(seconds / step)):
            await self.clock.advance(step)


@pytest.fixture
async def tasks() -> AsyncIterator[Tasks]:
    async with Tasks() as tasks:
        yield tasks


def setup(account: str = "default", **more: Any) -> Setup:
    return Setup("toy", Account(account, more))


async def healthy(toy: Toy, receive: Receive, pulse: Pulse) -> None:
    """Polls every 20 s, for ever."""
    pulse.connected(Identity("7", "toy"))
    while True:
        pulse.alive()
        await CLOCK.sleep(20)


async def hung(toy: Toy, receive: Receive, pulse: Pulse) -> None:
    """Connects, completes one poll, and never another."""
    pulse.connected(Identity("7", "toy"))
    pulse.alive()
    await asyncio.Event().wait()


async def down(toy: Toy, receive: Receive, pulse: Pulse) -> None:
    raise LinkLost("no route")


async def unstored(toy: Toy, receive: Receive, pulse: Pulse) -> None:
    raise Unavailable("cannot use state.db: the disk is full")


async def broken(toy: Toy, receive: Receive, pulse: Pulse) -> None:
    raise ZeroDivisionError("a fault of ours")


async def denied(toy: Toy, receive: Receive, pulse: Pulse) -> None:
    raise LinkRefused("the token is no good")


CLOCK = ManualClock()


@pytest.fixture
def house() -> House:
    global CLOCK  # the scripts' clock
    CLOCK = ManualClock()
    return House(CLOCK)


async def test_a_link_starts_and_tells_how_it_is(house: House, tasks: Tasks) -> None:
    house.scripts["default"] = [healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(60)
    status = house.status()
    assert (status.state, status.attempts, status.fault) == ("connected", 0, "")
    assert status.me == Identity("7", "toy")
    assert links.up(LinkKey("toy", "default"))
    assert house.ups == [("default", True)]
    await links.close()
    assert house.status().state == "stopped"
    assert not links.up(LinkKey("toy", "default"))


@pytest.mark.req("CH-19")
async def test_looking_at_an_account_starts_nothing(house: House, tasks: Tasks) -> None:
    house.scripts["off"] = [healthy]
    links = house.open(tasks)
    await links.apply([Setup("toy", Account("off"), enabled=False)])
    assert links.inspect("toy", "off") == {"toy": True}
    assert house.status("off").state == "stopped"
    with pytest.raises(NotFound):
        links.inspect("toy", "nobody")


async def test_a_stalled_link_is_never_called_well_and_is_made_anew(house: House, tasks: Tasks) -> None:
    house.scripts["default"] = [hung, healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(40)
    silent = house.status()
    assert silent.state == "stalled"
    assert silent.since_ms == silent.alive_ms
    await house.pass_(40)
    assert house.made == ["default"]
    await house.pass_(15)
    assert house.made == ["default", "default"]
    assert house.status().state == "connected"


async def test_a_stall_touches_no_other_link(house: House, tasks: Tasks) -> None:
    house.scripts = {"default": [hung, healthy], "other": [healthy]}
    links = house.open(tasks)
    await links.apply([setup(), setup("other")])
    await settle()
    other = links.channel(LinkKey("toy", "other"))
    await house.pass_(200)
    assert links.channel(LinkKey("toy", "other")) is other
    assert house.made == ["default", "other", "default"]


async def test_only_polls_feed_the_watchdog(house: House, tasks: Tasks) -> None:
    async def chatty(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        pulse.alive()
        while True:
            pulse.note("sending works")
            pulse.connected(Identity("7"))
            await CLOCK.sleep(10)

    house.scripts["default"] = [chatty, healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(100)
    assert len(house.made) == 2


async def test_a_slow_first_poll_is_no_stall(house: House, tasks: Tasks) -> None:
    async def slow(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        await CLOCK.sleep(120)
        await healthy(toy, receive, pulse)

    house.scripts["default"] = [slow]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(115)
    assert house.status().state == "starting"
    await house.pass_(30)
    assert house.made == ["default"]
    assert house.status().state == "connected"


async def test_a_start_that_never_ends_is_given_up(house: House, tasks: Tasks) -> None:
    async def never(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        await asyncio.Event().wait()

    house.scripts["default"] = [never, healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(310)
    assert len(house.made) == 2


async def test_passing_faults_are_waited_out_for_ever(house: House, tasks: Tasks) -> None:
    house.scripts["default"] = [down]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(3 * 3600, step=30)
    status = house.status()
    assert status.state == "waiting"
    assert status.attempts > 100
    assert status.next_ms is not None
    house.scripts["default"] = [healthy]
    await house.pass_(75)
    assert house.status().state == "connected"
    assert len([line for line in house.told if "no connection" in line]) == 1
    assert house.told[-1] == "toy/default is connected again."


async def test_waits_grow(house: House, tasks: Tasks) -> None:
    started: list[float] = []

    async def fails(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        started.append(CLOCK.monotonic())
        raise LinkLost("no route")

    house.scripts["default"] = [fails]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(300, step=1)
    waits = [later - sooner for sooner, later in itertools.pairwise(started)]
    assert waits[:8] == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_a_platform_that_says_when_is_obeyed(house: House, tasks: Tasks) -> None:
    async def busy(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        raise LinkLost("too many requests", details={"retryAfterS": 50})

    house.scripts["default"] = [busy, healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(45)
    assert len(house.made) == 1
    await house.pass_(10)
    assert len(house.made) == 2


async def test_a_refused_credential_stops_and_the_owner_is_told(house: House, tasks: Tasks) -> None:
    house.scripts = {"default": [denied], "other": [healthy]}
    links = house.open(tasks)
    await links.apply([setup(), setup("other")])
    await house.pass_(600, step=60)
    assert house.made.count("default") == 1
    assert house.status().state == "refused"
    assert house.status("other").state in {"connected", "stalled"}
    assert house.told == ["toy/default is stopped: the token is no good"]


async def test_a_fault_of_a_channel_stays_in_it(house: House, tasks: Tasks, caplog: pytest.LogCaptureFixture) -> None:
    house.scripts = {"default": [broken, broken, healthy], "other": [healthy]}
    links = house.open(tasks)
    with caplog.at_level(logging.CRITICAL):
        await links.apply([setup(), setup("other")])
        await house.pass_(20)
    assert house.status().state == "connected"
    assert house.status("other").state == "connected"
    assert house.made.count("other") == 1


async def test_a_long_fault_is_told_in_whole_sentences_and_logged_once(
    house: House, tasks: Tasks, caplog: pytest.LogCaptureFixture
) -> None:
    async def unknown(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        raise LinkLost("Name or service not known")

    house.scripts["default"] = [unknown] * 6
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(60)
    assert house.told[0] == "toy/default has no connection: Name or service not known. It goes on trying."
    assert sum("Name or service not known" in record.message for record in caplog.records) == 5


async def test_what_comes_in_is_handed_on(house: House, tasks: Tasks) -> None:
    event = Inbound("1", "message", Address("toy", "default", "5", "direct"), Sender("5"), "hi")

    async def says(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        await receive(event)
        await healthy(toy, receive, pulse)

    house.scripts["default"] = [says]
    links = house.open(tasks)
    await links.apply([setup()])
    await settle()
    assert house.heard == [event]
    assert house.status().inbound_ms is not None


@pytest.mark.req("CH-19")
async def test_configuration_decides_what_runs(house: House, tasks: Tasks) -> None:
    house.scripts = {"default": [healthy], "other": [healthy]}
    links = house.open(tasks)
    await links.apply([setup(), setup("other")])
    await house.pass_(10)
    await links.apply([setup(), setup("other", token="new")])
    await house.pass_(10)
    assert house.made == ["default", "other", "other"]
    await links.apply([setup(), setup("other", token="new", allowFrom=["7"])])
    await house.pass_(10)
    assert len(house.made) == 3  # who may write is the host's affair: the link stays
    await links.apply([setup()])
    assert links.accounts() == [LinkKey("toy", "default")]
    assert ("other", False) in house.ups


async def test_stopped_by_hand_it_stays_so(house: House, tasks: Tasks) -> None:
    house.scripts["default"] = [healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(10)
    assert (await links.stop("toy")).state == "stopped"
    await links.apply([setup()])
    await house.pass_(10)
    assert house.status().state == "stopped"
    assert links.held(LinkKey("toy", "default"))
    links.start("toy")
    await house.pass_(10)
    assert house.status().state == "connected"


async def test_what_cannot_run_says_why(house: House, tasks: Tasks) -> None:
    house.scripts["default"] = [healthy]
    links = house.open(tasks)
    await links.apply([Setup("toy", Account("default"), fault="channels.toy.token: wanted text")])
    await settle()
    assert house.made == []
    assert house.status().fault == "channels.toy.token: wanted text"
    with pytest.raises(UserError, match="wanted text"):
        links.start("toy")


async def test_late_words_of_an_ended_run_do_not_count(house: House, tasks: Tasks) -> None:
    kept: list[Pulse] = []

    async def leaves(toy: Toy, receive: Receive, pulse: Pulse) -> None:
        kept.append(pulse)
        raise LinkLost("gone")

    house.scripts["default"] = [leaves]
    links = house.open(tasks)
    await links.apply([setup()])
    await settle()
    kept[0].alive()
    kept[0].connected(Identity("9"))
    assert house.status().state == "waiting"
    assert not links.up(LinkKey("toy", "default"))


async def test_a_store_that_refuses_is_told_as_such_and_no_fault_of_ours(
    tasks: Tasks, house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.scripts["default"] = [unstored, healthy]
    links = house.open(tasks)
    await links.apply([setup()])
    await house.pass_(0.1, 0.1)
    assert (house.status().state, house.status().fault) == ("waiting", "cannot use state.db: the disk is full")
    assert not [record for record in caplog.records if record.exc_info]
    await house.pass_(5)
    assert house.status().state == "connected"
