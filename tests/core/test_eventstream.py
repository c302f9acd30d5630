"""Amazon's event stream, however it is cut."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest

from garra.core.eventstream import BROKEN, LARGEST, split
from garra.core.sse import Event


def header(name: str, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


def text(name: str, value: str) -> bytes:
    return header(name, 7, struct.pack(">H", len(value)) + value.encode())


def frame(head: bytes, payload: bytes = b"{}") -> bytes:
    start = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    whole = start + struct.pack(">I", crc32(start)) + head + payload
    return whole + struct.pack(">I", crc32(whole))


SAID = frame(text(":event-type", "contentBlockDelta") + text(":message-type", "event"), b'{"a":1}')


def test_whole_frames_come_out_and_the_rest_waits() -> None:
    data = SAID + SAID
    for cut in range(len(data)):
        events, rest = split(data[:cut])
        more, left = split(rest + data[cut:])
        assert [*events, *more] == [Event("contentBlockDelta", b'{"a":1}')] * 2
        assert left == b""


def test_faults_have_a_mark() -> None:
    assert split(frame(text(":exception-type", "throttlingException")))[0][0].name == "!throttlingException"
    assert split(frame(text(":error-code", "InternalError")))[0][0].name == "!InternalError"
    assert split(frame(b""))[0] == [Event("", b"{}")]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (0, b""),
        (1, b""),
        (2, b"x"),
        (3, b"xx"),
        (4, b"x" * 4),
        (5, b"x" * 8),
        (6, b"\0\1x"),
        (8, b"x" * 8),
        (9, b"x" * 16),
    ],
)
def test_headers_of_every_kind_are_passed_over(kind: int, value: bytes) -> None:
    head = header("other", kind, value) + text(":event-type", "metadata")
    assert split(frame(head))[0] == [Event("metadata", b"{}")]


def test_headers_that_make_no_sense_end_them() -> None:
    assert split(frame(header("x", 99, b"") + text(":event-type", "metadata")))[0] == [Event("", b"{}")]
    assert split(frame(b"\x05abc"))[0] == [Event("", b"{}")]


@pytest.mark.parametrize("at", [0, 5, 9, 20, -1])
def test_bytes_that_are_no_frame_are_told(at: int) -> None:
    broken = bytearray(SAID)
    broken[at] ^= 1
    assert split(SAID + bytes(broken)) == ([Event("contentBlockDelta", b'{"a":1}'), Event(BROKEN, b"{}")], b"")


@pytest.mark.parametrize(("total", "head"), [(LARGEST + 1, 0), (15, 0), (40, 60)])
def test_sizes_that_cannot_be_are_told(total: int, head: int) -> None:
    start = struct.pack(">II", total, head)
    assert split(start + struct.pack(">I", crc32(start)))[0] == [Event(BROKEN, b"{}")]
