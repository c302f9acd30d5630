"""A chat platform inside the gateway: it says what the measurement asks for and times what comes back.

The measurement connects to `port` and writes one JSON line (an `Asked`); it gets one JSON line back (a `Told`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from garra.core.value import frozen
from garra.sdk.channel import Account, Address, Identity, Inbound, Limits, Outbound, Ports, Pulse, Receive, Sender

CHANNEL = "bench"


@frozen
class Asked:
    """`say`: the texts of each chat. `answer` is in each answer; empty: none is waited for.

    `turns`: a chat's next text is said `pause_s` after the answer, instead of behind the one before. `at_once` chats
    are in hand together, all if 0; they begin `stagger_s` apart. `probe_s`: so often it is looked how late the loop is.
    """

    say: dict[str, list[str]]
    answer: str = "pong"
    turns: bool = False
    pause_s: float = 0.0
    at_once: int = 0
    stagger_s: float = 0.0
    timeout_s: float = 600.0
    probe_s: float = 0.0


@dataclass(slots=True)
class Told:
    """Seconds: of all, of each message until it was stored, from the saying to the answer, and by which the loop came
    late. `wrong` answers.
    """

    wall_s: float = 0.0
    accepted_s: list[float] = field(default_factory=list)
    answered_s: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Network:
    """One account of it, as `garra.sdk.channel.Channel`."""

    limits = Limits(text=1 << 20, per_second=0.0, beat_s=0.0)

    def __init__(self, account: Account, ports: Ports) -> None:
        self._account, self._ports = account, ports
        self._waiting: dict[str, deque[asyncio.Future[tuple[float, str]]]] = {}
        self._numbers = itertools.count(time.time_ns())

    async def run(self, receive: Receive, pulse: Pulse) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = Asked(**json.loads(await reader.readline()))
            told = await self._ask(asked, receive)
            writer.write(json.dumps(asdict(told)).encode() + b"\n")
            await writer.drain()
            writer.close()

        port = int(self._account.settings["port"])
        async with await asyncio.start_server(serve, "127.0.0.1", port, limit=64 << 20) as server:
            pulse.connected(Identity("bot", "Bot", "bot"))
            pulse.alive()
            await server.serve_forever()

    async def send(self, message: Outbound) -> str:
        waiting = self._waiting.get(message.address.chat)
        if waiting:
            waiting.popleft().set_result((time.monotonic(), message.text))
        return str(next(self._numbers))

    async def _ask(self, asked: Asked, receive: Receive) -> Told:
        told, gate = Told(), asyncio.Semaphore(asked.at_once or len(asked.say))
        began = time.monotonic()

        async def one(place: int, chat: str, texts: Sequence[str]) -> None:
            await asyncio.sleep(place * asked.stagger_s)
            async with gate:
                await self._chat(asked, told, chat, texts, receive)

        probe = asyncio.create_task(_late(asked.probe_s, told.late_s))
        try:
            async with asyncio.timeout(asked.timeout_s):
                await asyncio.gather(*(one(at, chat, texts) for at, (chat, texts) in enumerate(asked.say.items())))
        except TimeoutError:
            told.wrong.append(f"no answer in {asked.timeout_s:g} s")
        finally:
            probe.cancel()
        told.wall_s = time.monotonic() - began
        return told

    async def _chat(self, asked: Asked, told: Told, chat: str, texts: Sequence[str], receive: Receive) -> None:
        said: list[tuple[str, float, asyncio.Future[tuple[float, str]]]] = []
        waiting: deque[asyncio.Future[tuple[float, str]]] = deque()
        if asked.answer:
            self._waiting[chat] = waiting
        for text in texts:
            said.append((text, time.monotonic(), asyncio.get_running_loop().create_future()))
            waiting.append(said[-1][2])
            await receive(self._event(chat, text))
            told.accepted_s.append(time.monotonic() - said[-1][1])
            if asked.turns:
                await _answered(asked, told, *said.pop())
                await asyncio.sleep(asked.pause_s)
        for one in said if asked.answer else ():
            await _answered(asked, told, *one)
        self._waiting.pop(chat, None)

    def _event(self, chat: str, text: str) -> Inbound:
        address = Address(CHANNEL, self._account.id, chat, "direct")
        now = int(time.time() * 1000)
        return Inbound(str(next(self._numbers)), "message", address, Sender(chat, chat), text, timestamp=now)


async def _late(every_s: float, late_s: list[float]) -> None:
    while every_s:
        began = time.monotonic()
        await asyncio.sleep(every_s)
        late_s.append(time.monotonic() - began - every_s)


async def _answered(
    asked: Asked, told: Told, text: str, said: float, answer: asyncio.Future[tuple[float, str]]
) -> None:
    at, words = await answer
    told.answered_s.append(at - said)
    if asked.answer not in words or (asked.answer == "pong" and text not in words):
        told.wrong.append(f"{text!r} was answered with {words[:100]!r}")
