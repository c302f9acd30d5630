"""The channel beside a real HTTP server: calls in and out, refusals, files, secrets that change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from garra.builtin.channels.webhook.channel import Webhook
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import Account, Address, Inbound, LinkRefused, Media, Ports, SendFailed
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.webhook import SECRET, Fail, Peer, message, signed

OLD = "whsec_" + "QUJD" * 8
CLOCK = SystemClock()
ANN = Address("webhook", "default", "ann", "direct")


@dataclass
class Place:
    peer: Peer
    ports: Ports

    def channel(self, **more: Any) -> Webhook:
        own = {"secret": Secret(SECRET), "url": f"{self.peer.url}/in", "allowPrivateNetwork": True, **more}
        return Webhook(Account("default", own), self.ports)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    door, public, tasks = GuardedHttp(), GuardedHttp(guard=True), Tasks()
    async with Peer() as peer:
        yield Place(peer, Ports(door, CLOCK, tasks, MemoryCursor(), public=public))
    await tasks.close()
    await door.close()
    await public.close()


@asynccontextmanager
async def running(channel: Webhook, heard: Heard) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    await heard.until(lambda h: h.me is not None)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await task


def head(body: bytes, secret: str = SECRET, called: str = "msg_1", late: int = 0) -> dict[str, str]:
    return signed(secret, called, CLOCK.now_ms() // 1000 - late, body)


async def status(channel: Webhook, headers: dict[str, str], body: bytes, method: str = "POST") -> int:
    return (await channel.called(method, headers, body, Heard().receive)).status


async def test_called(place: Place) -> None:
    channel, heard, body = place.channel(), Heard(), message("hello")
    assert await status(channel, head(body), body) == 503  # not up yet: the caller comes again
    async with running(channel, heard):
        told = await channel.called("POST", head(body), body, heard.receive)
        assert (told.status, told.body) == (200, b'{"id": "msg_1"}')
        assert heard.said == ["hello"]
        assert await status(channel, head(body), body, "GET") == 405
        assert await status(channel, {}, body) == 401
        assert await status(channel, head(body, late=301), body) == 401
        assert await status(channel, head(body, OLD), body) == 401
        assert await status(channel, head(body), body + b" ") == 401
        wrong = await channel.called("POST", head(b"{}"), b"{}", heard.receive)
        assert wrong.status == 400
        assert b"chat" in wrong.body
        assert heard.said == ["hello"]
        assert heard.notes[-1] == "a call was refused: it is signed by no secret of this account"
        assert SECRET not in repr(heard.notes)
    assert await status(channel, head(body), body) == 503


async def test_a_head_alone_is_enough_to_refuse(place: Place) -> None:
    channel = place.channel()
    assert channel.screen("POST", head(b"anything")) is None
    assert (refused := channel.screen("POST", {})) is not None
    assert (refused.status, refused.body) == (401, b"")
    assert (turned := channel.screen("PUT", {})) is not None
    assert turned.status == 405


async def test_what_could_not_be_stored_comes_again(place: Place) -> None:
    def refuse(_: Any) -> None:
        raise OSError("disk full")

    channel, heard, body = place.channel(), Heard(before=refuse), message("keep me")
    async with running(channel, heard) as task:
        assert await status(channel, head(body), body) == 503
        with pytest.raises(OSError, match="disk full"):
            await task


async def test_many_at_once_are_kept_in_order_and_no_more_than_can_be(place: Place) -> None:
    gate = asyncio.Event()

    class Slow(Heard):
        async def receive(self, event: Any) -> None:
            await gate.wait()
            await super().receive(event)

    channel, heard = place.channel(), Slow()
    async with running(channel, heard):
        bodies = [message(f"m{number}") for number in range(100)]
        calls = [
            asyncio.ensure_future(status(channel, head(body, called=f"msg_{number}"), body))
            for number, body in enumerate(bodies)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gate.set()
        told = await asyncio.gather(*calls)
    assert set(told) == {200, 503}
    assert heard.said == [f"m{number}" for number, code in enumerate(told) if code == 200]


async def test_a_secret_changes_without_a_gap(place: Place) -> None:
    channel, heard = place.channel(oldSecret=Secret(OLD)), Heard()
    async with running(channel, heard):
        for secret in (OLD, SECRET):
            body = message(secret[-4:])
            assert await status(channel, head(body, secret, secret[-6:]), body) == 200
    for secret in (OLD, SECRET):
        place.peer.secret = secret
        await channel.send(outbound(ANN, "known by either", f"out:{secret[-4:]}"))
    assert len(place.peer.taken) == 2


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"secret": Secret("")}, "no secret"),
        ({"secret": Secret("whsec_c2hvcnQ=")}, "secret holds 5 bytes"),
        ({"oldSecret": Secret("whsec_%%%")}, "oldSecret is not base64"),
        ({"secret": Secret("", missing="variable HOOK is not set")}, "variable HOOK is not set"),
    ],
)
async def test_a_secret_that_is_none(place: Place, own: dict[str, Any], says: str) -> None:
    channel = place.channel(**own)
    with pytest.raises(LinkRefused, match=says):
        await channel.run(Heard().receive, Heard())
    with pytest.raises(SendFailed) as failed:
        await channel.send(outbound(ANN, "x"))
    assert failed.value.fault == "auth"


async def test_sent_with_its_key_and_again_with_the_same(place: Place) -> None:
    channel = place.channel()
    assert channel.limits.idempotent
    place.peer.fails.append(Fail(0))
    with pytest.raises(SendFailed) as failed:
        await channel.send(outbound(ANN, "once", "out:7"))
    assert failed.value.fault == "unsure"
    assert await channel.send(outbound(ANN, "once", "out:7")) == "out:7"
    assert [call.headers["webhook-id"] for call in place.peer.calls] == ["out:7", "out:7"]
    assert place.peer.shown("ann") == ["once"]
    assert not place.channel(idempotent=False).limits.idempotent


async def test_the_receivers_own_id_is_the_messages(place: Place) -> None:
    place.peer.answer = {"id": "theirs-1"}
    assert await place.channel().send(outbound(ANN, "x")) == "theirs-1"


async def test_no_address_and_a_private_one_that_is_not_allowed(place: Place) -> None:
    with pytest.raises(SendFailed, match="no url") as failed:
        await place.channel(url="").send(outbound(ANN, "x"))
    assert failed.value.fault == "refused"
    closed = place.channel(allowPrivateNetwork=False)
    with pytest.raises(
        SendFailed, match=r"not a public address; channels\.webhook\.allowPrivateNetwork=true"
    ) as failed:
        await closed.send(outbound(ANN, "x"))
    assert failed.value.fault == "refused"
    with pytest.raises(SendFailed, match="not a public address"):
        async for _ in closed.fetch(Media("file", f"{place.peer.url}/a"), 10):
            pass
    assert place.peer.calls == []


async def test_files_that_a_call_names(place: Place) -> None:
    channel = place.channel()
    place.peer.files["/a"] = b"x" * 10
    found = b"".join([chunk async for chunk in channel.fetch(Media("file", f"{place.peer.url}/a"), 10)])
    assert found == b"x" * 10
    for ref, limit, fault in (("/a", 9, "too_large"), ("/none", 9, "gone")):
        with pytest.raises(SendFailed) as failed:
            async for _ in channel.fetch(Media("file", place.peer.url + ref), limit):
                pass
        assert failed.value.fault == fault


async def test_each_account_has_a_path_of_its_own(place: Place) -> None:
    paths = [
        Webhook(Account(name, {"secret": Secret(SECRET), **own}), place.ports).path
        for name, own in (("default", {}), ("work", {}), ("default", {"path": "in/"}), ("work", {"path": "/in"}))
    ]
    assert paths == ["/webhook", "/webhook/work", "/in", "/in/work"]


async def test_an_event_says_whose_it_is(place: Place) -> None:
    channel, heard = place.channel(), Heard()
    async with running(channel, heard):
        body = message("x", id="m9", thread="t")
        assert await status(channel, head(body), body) == 200
    event = heard.events[0]
    assert isinstance(event, Inbound)
    assert (event.id, event.sender.id, event.sender.name, event.address.thread) == ("m9", "ann", "Ann", "t")
