"""One connection: silence, pace, and questions that get no answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from garra.builtin.channels.irc.line import Line
from garra.builtin.channels.irc.wire import BURST, Wire
from garra.core.errors import Unavailable
from garra.sdk.channel import LinkLost
from garra.testing.clock import ManualClock, settle


@dataclass
class Script:
    """A stream that says what it is told to; an exception is a fault."""

    says: list[bytes | Exception]
    told: list[bytes] = field(default_factory=list)
    deaf: bool = False

    async def read(self, most: int = 1 << 16, timeout: float | None = None) -> bytes:
        said = self.says.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    async def write(self, data: bytes) -> None:
        if self.deaf:
            raise Unavailable("broken pipe", details={"kind": "cut"})
        self.told.append(data)

    async def close(self) -> None:
        self.deaf = True


def never(line: Line) -> str | None:
    return None


def quiet() -> Exception:
    return Unavailable("nothing", details={"kind": "timeout"})


async def test_lines_come_in_any_pieces_and_pings_are_answered() -> None:
    script = Script([b"PING :a", b" b\r\n\r\n:s 001 me :", b"hi\nX"])
    wire = Wire(script, ManualClock())
    assert await wire.batch() == [Line("PING", ("a b",))]
    assert await wire.batch() == [Line("001", ("me", "hi"), "s")]
    assert script.told == [b"PONG :a b\r\n"]


async def test_silence_is_asked_about_once() -> None:
    script = Script([quiet(), b"PONG x\r\n", quiet(), quiet()])
    wire = Wire(script, ManualClock())
    assert await wire.batch() == [Line("PONG", ("x",))]
    with pytest.raises(LinkLost):
        await wire.batch()
    assert script.told == [b"PING :are-you-there\r\n"] * 2


@pytest.mark.parametrize("says", [b"", b"x" * 70_000, Unavailable("cut", details={"kind": "cut"})])
async def test_ends(says: bytes | Exception) -> None:
    with pytest.raises(LinkLost):
        await Wire(Script([says]), ManualClock()).batch()


async def test_a_burst_then_a_line_a_second() -> None:
    script, clock = Script([]), ManualClock()
    wire = Wire(script, clock)
    writing = [asyncio.ensure_future(wire.write(b"%d\r\n" % number)) for number in range(10)]
    await settle()
    assert len(script.told) == BURST
    for more in range(1, 5):
        await clock.advance(1.0)
        assert len(script.told) == BURST + more
    await asyncio.gather(*writing)
    assert script.told == [b"%d\r\n" % number for number in range(10)]


async def test_whoever_asks_is_told_that_it_ended() -> None:
    script = Script([])
    wire = Wire(script, ManualClock())
    asking = asyncio.ensure_future(wire.ask([b"WHOIS :x\r\n"], never))
    await settle()
    await wire.end(LinkLost("gone"))
    with pytest.raises(LinkLost):
        await asking
    with pytest.raises(LinkLost):
        await wire.write(b"more\r\n")
    script.deaf, other = True, Wire(script, ManualClock())
    with pytest.raises(LinkLost, match="broken pipe"):
        await other.write(b"more\r\n")
    with pytest.raises(TimeoutError):
        await Wire(Script([]), ManualClock()).ask([], never, 0.01)
