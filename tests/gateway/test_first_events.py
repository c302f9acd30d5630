"""What a client that reads late sees: it has dealt with an answer before it hears what follows from it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from garra.gateway.socket import FENCE_S
from tests.gateway.house import params
from tests.gateway.standing import Standing, standing

KEY = "agent:main:t"
SEND = {"sessionKey": KEY, "message": "say hi", "idempotencyKey": "k1"}


class Late:
    """A client that takes all there is at once, as a busy one does; it answers pings, or is `deaf` to them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, url: str, *, deaf: bool) -> None:
        self._reader, self._writer = reader, writer
        self._wire = ClientProtocol(parse_uri(url))
        self.deaf = deaf
        self._wire.send_request(self._wire.connect())
        self._write()

    def _write(self) -> None:
        self._writer.write(b"".join(self._wire.data_to_send()))

    async def take(self, patience: float = 5) -> list[dict[str, Any]]:
        """The messages of one read; pings are answered after it."""
        self._wire.receive_data(await asyncio.wait_for(self._reader.read(1 << 20), patience))
        got = [event for event in self._wire.events_received() if isinstance(event, Frame)]
        answers = self._wire.data_to_send()
        if not self.deaf:
            self._writer.write(b"".join(answers))
        return [json.loads(bytes(frame.data)) for frame in got if frame.opcode is Opcode.TEXT]

    def ask(self, method: str, params: dict[str, Any]) -> None:
        frame = {"type": "req", "id": method, "method": method, "params": params}
        self._wire.send_text(json.dumps(frame).encode())
        self._write()

    async def until(self, request_id: str) -> None:
        """Read until a request is answered."""
        while not any(frame.get("id") == request_id for frame in await self.take()):
            pass

    async def final(self) -> list[dict[str, Any]]:
        """All that comes up to the event that ends a run."""
        heard: list[dict[str, Any]] = []
        while not any(frame["payload"].get("state") == "final" for frame in heard if frame.get("event") == "chat"):
            heard += await self.take()
        return heard


@asynccontextmanager
async def late(gateway: Standing, *, deaf: bool = False) -> AsyncIterator[Late]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    client = Late(reader, writer, gateway.url, deaf=deaf)
    try:
        while not any(frame.get("event") == "connect.challenge" for frame in await client.take()):
            pass
        client.ask("connect", params())
        await client.until("connect")
        client.ask("health", {})
        await client.until("health")
        yield client
    finally:
        writer.close()
        await writer.wait_closed()


async def ended(gateway: Standing, run_id: str) -> None:
    async with asyncio.timeout(20):
        while (run := gateway.host.runs.find(run_id)) is None or run.state != "ended":  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)


def kinds(frames: list[dict[str, Any]]) -> list[str]:
    """What is told of the run, in short."""
    own = [frame["payload"] for frame in frames if frame.get("event") in ("chat", "agent")]
    return [str(row.get("state") or row["data"].get("phase") or row["stream"]) for row in own]


async def test_the_answer_is_dealt_with_before_the_run_is_heard_of(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, late(gateway) as client:
        for number in range(3):
            client.ask("chat.send", {**SEND, "idempotencyKey": f"k{number}"})
            await ended(gateway, f"k{number}")  # before the client has read a word
            first = await client.take()
            assert [frame["id"] for frame in first if frame["type"] == "res"] == ["chat.send"]
            assert kinds(first) == []
            heard = kinds(await client.final())
            assert heard.index("start") < heard.index("delta") < heard.index("final")


async def test_who_answers_no_pings_is_not_kept_waiting(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, late(gateway, deaf=True) as client:
        client.ask("chat.send", SEND)
        await ended(gateway, "k1")
        assert kinds(await client.take())[-1] == "final"


async def test_who_falls_silent_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, late(gateway) as client:
        client.deaf = True
        client.ask("chat.send", SEND)
        await ended(gateway, "k1")
        assert kinds(await client.take()) == []
        async with asyncio.timeout(2 * FENCE_S):
            while not (heard := kinds(await client.take(2 * FENCE_S))):
                pass
        assert heard[-1] == "final"


async def test_numbers_and_order_hold_across_the_wait(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, late(gateway) as client:
        client.ask("chat.send", SEND)
        client.ask("health", {})
        await ended(gateway, "k1")
        heard = await client.final()
        assert [frame["id"] for frame in heard if frame["type"] == "res"].count("chat.send") == 1
        numbers = [frame["seq"] for frame in heard if "seq" in frame]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


async def test_another_connection_does_not_wait(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, late(gateway) as client, gateway.guest() as other:
        client.ask("chat.send", SEND)
        await other.next(lambda frame: frame.get("event") == "chat" and frame["payload"]["state"] == "final")
        assert kinds(await client.take()) == []


async def test_a_page_of_history_is_not_older_than_the_end_that_was_told_before(tmp_path: Path) -> None:
    """A run that ends while a page is made: who hears of its end first is not told afterwards that it goes on."""
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        async with standing(tmp_path) as gateway, gateway.guest() as guest:
            await guest.call("chat.send", {**SEND, "message": "go say hi"})
            pool.submit(free.wait)
            history = await guest.ask("chat.history", {"sessionKey": KEY})
            await guest.call("health")
            gateway.acting.release.set()
            await guest.next(lambda f: f.get("event") == "chat" and f["payload"]["state"] == "final")
            free.set()
            page = (await guest.answer(history))["payload"]
            assert "inFlightRun" not in page
            assert [row["role"] for row in page["messages"]] == ["user", "assistant"]
