"""Readers that stop reading: what they cost is bounded, others do not notice."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.core import frames
from garra.core.scopes import READ
from garra.gateway.broadcast import passing
from garra.gateway.method import Method
from garra.gateway.peers import Peer
from garra.gateway.socket import DROP_BYTES, EVENT_BYTES
from tests.gateway.house import Guest, Running, guest, knocking, params, running

PIECE = "x" * 100_000


@asynccontextmanager
async def stalled(house: Running) -> AsyncIterator[tuple[Guest, Peer]]:
    """A client with a small window that reads nothing after hello-ok, and its peer."""
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", house.port))
    async with knocking(house, sock=narrow, max_queue=1, close_timeout=0.1) as (who, _):
        hello = await who.call("connect", params())
        who.socket.transport.pause_reading()
        yield who, house.gateway.hub.peers[hello["server"]["connId"]]
        who.socket.transport.resume_reading()


def flood(house: Running, count: int, payload: dict[str, Any]) -> None:
    for _ in range(count):
        house.gateway.hub.publish("chat", payload)


@pytest.mark.req("GW-10")
async def test_a_reader_that_stops_is_cut_and_others_go_on(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as reader, stalled(house) as (slow, peer):
        for number in range(120):
            flood(house, 1, {"state": "final", "text": PIECE, "n": number})
            await reader.event("chat")
            assert peer.socket.buffered <= EVENT_BYTES + 2 * len(PIECE)
        assert peer.state.phase == "closed"
        slow.socket.transport.resume_reading()
        with pytest.raises(Exception, match="slow consumer"):
            while True:
                await slow.socket.recv()
        assert await slow.closed() == (1008, "slow consumer")
        assert await reader.call("echo", {"text": "x"}) == {"text": "x"}


@pytest.mark.req("GW-10")
async def test_what_a_later_event_repeats_is_dropped_and_leaves_a_gap(tmp_path: Path) -> None:
    async with running(tmp_path) as house, stalled(house) as (slow, peer):
        flood(house, 200, {"state": "delta", "text": PIECE})
        assert peer.state.phase == "open"
        assert peer.socket.buffered < DROP_BYTES + 10 * len(PIECE)
        house.gateway.hub.publish("chat", {"state": "final"})
        slow.socket.transport.resume_reading()
        last = await slow.next(lambda frame: frame.get("payload", {}).get("state") == "final")
        numbers = [frame["seq"] for frame in slow.heard if "seq" in frame]
        assert last["seq"] == 201
        assert numbers == sorted(numbers)
        assert len(numbers) < 50


async def test_order_is_kept_through_a_pause(tmp_path: Path) -> None:
    async with running(tmp_path) as house, stalled(house) as (slow, peer):
        for number in range(40):
            house.gateway.hub.publish("chat", {"state": "final", "n": number, "text": PIECE})
        assert peer.socket.buffered  # how much of it the kernel takes is the kernel's affair
        slow.socket.transport.resume_reading()
        heard = [(await slow.event("chat"))["payload"]["n"] for _ in range(40)]
        assert heard == list(range(40))


async def test_a_fence_keeps_its_place_among_what_waits(tmp_path: Path) -> None:
    async with running(tmp_path) as house, stalled(house) as (slow, peer):
        number = 0
        while peer.socket.buffered <= 1 << 17:  # more than a transport takes before it asks for a pause
            house.gateway.hub.publish("chat", {"state": "final", "n": number, "text": PIECE})
            number += 1
            await asyncio.sleep(0.01)
        for _ in range(3):
            peer.fence()
            house.gateway.hub.publish("chat", {"state": "final", "n": number})
            number += 1
        slow.socket.transport.resume_reading()
        heard = [(await slow.event("chat"))["payload"]["n"] for _ in range(number)]
        assert heard == list(range(number))


async def test_a_farewell_takes_along_what_waits_behind_a_fence(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        await who.call("echo", {"text": "x"})
        peer = house.gateway.hub.peers[who.hello["server"]["connId"]]
        peer.fence()
        peer.fence()
        house.gateway.hub.publish("chat", {"state": "final", "n": 1})
        peer.end(1012, "service restart")
        assert (await who.event("chat"))["payload"]["n"] == 1
        assert await who.closed() == (1012, "service restart")


async def test_an_answer_may_be_larger_than_events_may(tmp_path: Path) -> None:
    big = "y" * (EVENT_BYTES + 1000)
    row = Method("big", READ, None, lambda host, caller, params: {"text": big})
    async with running(tmp_path, extra=(row,)) as house, stalled(house) as (slow, peer):
        await slow.ask("big")
        request = await slow.ask("big")
        async with asyncio.timeout(20):
            while peer.socket.buffered <= EVENT_BYTES:  # noqa: ASYNC110 - the gateway has no event for bytes that wait
                await asyncio.sleep(0.01)
        assert peer.state.phase == "open"
        slow.socket.transport.resume_reading()
        assert (await slow.answer(request))["ok"]


@pytest.mark.req("GW-10")
async def test_answers_that_nobody_reads_are_bounded_too(tmp_path: Path) -> None:
    half = "z" * (frames.BUFFERED_BYTES // 8)
    row = Method("half", READ, None, lambda host, caller, params: {"text": half})
    async with running(tmp_path, extra=(row,)) as house, stalled(house) as (slow, peer):
        for _ in range(10):
            await slow.ask("half")
        async with asyncio.timeout(10):
            while peer.state.phase != "closed":  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.01)
        assert peer.socket.buffered <= frames.BUFFERED_BYTES + (8 << 20)


async def test_pings_of_a_reader_that_stopped_cost_nothing(tmp_path: Path) -> None:
    ping = b"\x89\xfdmask" + b"p" * 125
    async with running(tmp_path) as house, stalled(house) as (slow, peer):
        while peer.socket.buffered <= 1 << 17:  # more than a transport takes before it asks for a pause
            flood(house, 1, {"state": "final", "text": PIECE})
            await asyncio.sleep(0.01)
        before = peer.socket.buffered
        for _ in range(20):
            slow.socket.transport.write(ping * 1000)
        assert await asyncio.wait_for(settled(slow, peer), 10) <= before + 1000
        slow.socket.transport.resume_reading()
        assert await slow.call("echo", {"text": "x"}) == {"text": "x"}


async def settled(slow: Guest, peer: Peer) -> int:
    """Bytes that wait once all that was sent has arrived."""
    while slow.socket.transport.get_write_buffer_size():  # noqa: ASYNC110 - likewise
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    return peer.socket.buffered


async def test_a_message_in_many_small_pieces_costs_what_it_holds(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        text = json.dumps({"type": "req", "id": "p", "method": "echo", "params": {"text": "x" * 20_000}})
        await who.socket.send(list(text))
        assert (await who.answer("p"))["payload"]["text"] == "x" * 20_000


async def test_a_stalled_reader_does_not_hold_up_the_farewell(tmp_path: Path) -> None:
    async with running(tmp_path) as house, stalled(house) as (_, peer):
        flood(house, 20, {"state": "final", "text": PIECE})
        async with asyncio.timeout(10):
            await house.gateway.close()
        assert not peer.socket.open


@pytest.mark.parametrize(
    ("event", "payload", "dropped"),
    [
        ("tick", {"ts": 1}, True),
        ("presence", {}, True),
        ("chat", {"state": "delta"}, True),
        ("chat", {"state": "final"}, False),
        ("agent", {"stream": "assistant"}, True),
        ("agent", {"stream": "tool"}, False),
        ("session.message", {}, False),
        ("chat", "no mapping", False),
    ],
)
def test_which_events_may_be_missed(event: str, payload: Any, dropped: bool) -> None:
    assert passing(event, payload) is dropped


async def test_what_is_said_in_one_go_arrives_in_order_and_before_the_farewell(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as reader:
        [peer] = house.gateway.hub.peers.values()
        for text in (*["small"] * 60, PIECE, "small", PIECE, *["y" * 1000] * 40):
            flood(house, 1, {"state": "final", "text": text})
        peer.end(1001, "going")
        numbers = [(await reader.event("chat"))["seq"] for _ in range(103)]
        assert numbers == list(range(numbers[0], numbers[0] + 103))
        assert await reader.closed() == (1001, "going")
