"""A chunked body ends where its last chunk does, however its bytes come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.chunked import LINE, Chunked, passed

WHOLE = b"5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nA: b\r\n\r\n"


def chunked(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces if each) + b"0\r\n\r\n"


def told(data: bytes, cuts: list[int]) -> tuple[str, int]:
    body, count = Chunked(), 0
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        body, taken = passed(body, data[start:end])
        count += taken
        if taken < end - start:
            break
    return body.where, count


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 1_000), max_size=12))
def test_it_ends_where_it_ends(pieces: list[bytes], cuts: list[int]) -> None:
    body = chunked(pieces)
    assert told(body, cuts) == ("over", len(body))
    assert told(body + b"GET / HTTP/1.1\r\n", [len(body), *cuts]) == ("over", len(body))


@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=6))
def test_nothing_breaks_it(data: bytes, cuts: list[int]) -> None:
    where, count = told(data, cuts)
    assert count <= len(data)
    assert where in ("size", "data", "gap", "trailer", "over", "wrong")


def test_sizes_extensions_and_trailers() -> None:
    assert told(WHOLE, []) == told(WHOLE, list(range(len(WHOLE)))) == ("over", len(WHOLE))
    assert passed(Chunked(), b"5\r\nhel")[0] == Chunked("data", 2)


@pytest.mark.parametrize(
    "data",
    [b"5\nhello", b"-1\r\n", b"0x5\r\nhello", b"\r\n", b"5\r\nhelloX\r\n", b"1" * 16 + b"\r\n", b"5" + b" " * LINE * 2,
     b"0\r\n" + b"a: b\r\n" * LINE, b"0\r\na: b\n"],
)  # fmt: skip
def test_what_servers_read_in_two_ways_is_wrong(data: bytes) -> None:
    where, count = told(data, [])
    assert where == "wrong"
    assert count < len(data)
