"""What every channel must do, each over a server that plays its platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from garra.core.characters import certain
from garra.domains.delivery.inbox import Inbox
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.sdk.channel import Channel, Ignored, Inbound, LinkLost, LinkRefused, SendFailed
from garra.testing.channels import Heard, MemoryCursor, outbound
from tests.contracts.channel.platforms import PLATFORMS, Platform

LINKING = [each for each in PLATFORMS if not getattr(each, "called", False)]
"""Those that hold a link of their own, and are not called by their platform."""


@pytest.fixture(params=PLATFORMS)
async def platform(request: pytest.FixtureRequest) -> AsyncIterator[Platform]:
    async with request.param() as platform:
        yield platform


@asynccontextmanager
async def running(platform: Platform, heard: Heard, cursor: MemoryCursor) -> AsyncIterator[asyncio.Task[None]]:
    """A link that runs, and is gone afterwards."""
    channel = platform.channel(cursor)
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost, LinkRefused, OSError):
            await task


@asynccontextmanager
async def sending(platform: Platform) -> AsyncIterator[Channel]:
    """A channel that can send: with its link, where it needs one for that."""
    channel, heard = platform.channel(MemoryCursor()), Heard()
    if not getattr(platform, "linked", False):
        yield channel
        return
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        await heard.until(lambda h: h.me is not None)
        yield channel
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost):
            await task


async def test_it_connects_and_tells_who_it_is(platform: Platform) -> None:
    heard = Heard()
    async with running(platform, heard, MemoryCursor()):
        await heard.until(lambda h: h.me is not None and h.beats > 0)
    assert heard.me is not None
    assert heard.me.id


async def test_a_message_comes_in_whole(platform: Platform) -> None:
    heard = Heard()
    async with running(platform, heard, MemoryCursor()):
        await platform.say("1001", "hello ✓ 你好")
        await heard.until(lambda h: h.said == ["hello ✓ 你好"])
    event = heard.events[0]
    assert isinstance(event, Inbound)
    known_as = getattr(platform, "known_as", str)
    assert (event.event, event.sender.id, event.address.kind) == ("message", known_as("1001"), "direct")
    assert event.address.channel == platform.name
    assert event.id
    assert not event.own


async def test_who_we_are_is_told_before_anything_is_stored(platform: Platform) -> None:
    """An event is known again by who heard it: without that, what comes twice across a crash is answered twice."""

    def before(event: Inbound | Ignored) -> None:
        assert heard.me is not None

    heard, cursor = Heard(before=before), MemoryCursor()
    for text in ("first", "second"):
        heard.me = None
        async with running(platform, heard, cursor):
            await platform.say("1001", text)
            await heard.until(lambda h: h.said[-1:] == [text])  # noqa: B023 - it is awaited here


async def test_order_is_kept(platform: Platform) -> None:
    heard = Heard()
    async with running(platform, heard, MemoryCursor()):
        for number in range(20):
            await platform.say("1001", f"m{number}")
        await heard.until(lambda h: len(h.said) >= 20)
    assert heard.said == [f"m{number}" for number in range(20)]


async def test_nothing_is_confirmed_before_it_is_stored(platform: Platform) -> None:
    def refuse(event: Inbound | Ignored) -> None:
        raise OSError("disk full")

    heard, cursor = Heard(before=refuse), MemoryCursor()
    async with running(platform, heard, cursor) as task:
        await platform.say("1001", "keep me")
        with pytest.raises(OSError):
            await asyncio.wait_for(task, 10)
    again = Heard()
    async with running(platform, again, cursor):
        await again.until(lambda h: h.said == ["keep me"])


async def test_what_was_stored_is_not_asked_for_again(platform: Platform) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(platform, heard, cursor):
        await platform.say("1001", "first")
        await heard.until(lambda h: h.said == ["first"])
        beats = heard.beats
        if not getattr(platform, "called", False):
            await heard.until(lambda h: h.beats > beats or bool(cursor.history))
    again = Heard()
    async with running(platform, again, cursor):
        await platform.say("1001", "second")
        await again.until(lambda h: "second" in h.said)
    assert again.said == ["second"]


async def test_what_it_cannot_use_is_recorded_and_stops_nothing(platform: Platform) -> None:
    heard = Heard()
    async with running(platform, heard, MemoryCursor()):
        await platform.nonsense()
        await platform.say("1001", "after")
        await heard.until(lambda h: h.said == ["after"])
    assert any(isinstance(event, Ignored) and event.reason for event in heard.events)


async def test_no_letter_that_a_stranger_writes_stops_what_comes_after(platform: Platform, tmp_path: Path) -> None:
    heard, database = Heard(), Database(tmp_path / "state.db")
    await database.open()
    inbox = Inbox(database, SystemClock())

    async def receive(event: Inbound | Ignored) -> None:
        await inbox.accept(event)
        await heard.receive(event)

    channel = platform.channel(MemoryCursor())
    task = asyncio.ensure_future(channel.run(receive, heard))
    try:
        await platform.say("1001", "before")
        await heard.until(lambda h: "before" in h.said)
        await platform.poison()
        await platform.say("1001", "after")
        await heard.until(lambda h: "after" in h.said)
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    for row in await inbox.pending():
        assert isinstance(row.event, Inbound)
        assert certain(row.event.sender.id)
    await database.close()


async def test_it_ends_when_cancelled(platform: Platform) -> None:
    heard = Heard()
    async with running(platform, heard, MemoryCursor()) as task:
        await heard.until(lambda h: h.beats > 0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)


@pytest.mark.parametrize("platform", LINKING, indirect=True)
async def test_a_broken_link_is_lost(platform: Platform) -> None:
    platform.break_link()
    async with running(platform, Heard(), MemoryCursor()) as task:
        with pytest.raises(LinkLost):
            await asyncio.wait_for(task, 10)


async def test_a_bad_credential_is_refused(platform: Platform) -> None:
    platform.refuse_credential()
    async with running(platform, Heard(), MemoryCursor()) as task:
        with pytest.raises(LinkRefused) as refused:
            await asyncio.wait_for(task, 10)
    assert platform.secret not in str(refused.value)


async def test_a_message_goes_out_and_its_id_comes_back(platform: Platform) -> None:
    async with sending(platform) as channel:
        first = await channel.send(outbound(platform.address("1001"), "one"))
        second = await channel.send(outbound(platform.address("1001"), "two", "out:2"))
    assert first != second
    assert await platform.shown("1001") == ["one", "two"]


NEEDED = {"passing", "unsure", "refused", "gone"}
"""What every platform can be made to answer; `auth` only where each send shows the credential."""


async def test_each_failure_is_told_apart(platform: Platform) -> None:
    assert platform.faults.keys() >= NEEDED
    for fault, cause in platform.faults.items():
        async with sending(platform) as channel:
            cause()
            with pytest.raises(SendFailed) as failed:
                await channel.send(outbound(platform.address("1001"), f"hello {fault}", f"out:{fault}"))
        assert failed.value.fault == fault
        assert platform.secret not in str(failed.value)


async def test_an_unsure_send_is_not_repeated_by_the_channel(platform: Platform) -> None:
    async with sending(platform) as channel:
        platform.faults["unsure"]()
        with pytest.raises(SendFailed):
            await channel.send(outbound(platform.address("1001"), "once"))
    assert len(await platform.shown("1001")) <= 1


@pytest.mark.req("CH-19")
async def test_it_tells_of_itself_without_network_and_without_secrets(platform: Platform) -> None:
    channel = platform.channel(MemoryCursor())
    await platform.close()
    inspect = getattr(channel, "inspect", None)
    if inspect is None:
        pytest.skip(f"{platform.name} tells nothing")
    told = dict(inspect())
    assert told
    assert platform.secret not in repr(told)


async def test_its_limits_make_sense(platform: Platform) -> None:
    limits = platform.channel(MemoryCursor()).limits
    assert limits.text > 0
    assert limits.formats[-1] == "plain"
    assert limits.per_second > 0
