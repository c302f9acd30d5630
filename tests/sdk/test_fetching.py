"""An attachment is read up to its limit."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from garra.sdk.channel import Media, SendFailed
from garra.sdk.fetching import bounded, room


async def chunks(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


async def test_up_to_the_limit_all_is_there() -> None:
    assert [len(chunk) async for chunk in bounded(chunks(3, 4, 3), 10)] == [3, 4, 3]


async def test_what_is_over_is_not_given() -> None:
    over = bounded(chunks(3 << 20, 1, 1), 3 << 20, "a.zip")
    assert len(await anext(over)) == 3 << 20
    with pytest.raises(SendFailed, match=r"a\.zip is over 3 MB") as failed:
        await anext(over)
    assert failed.value.fault == "too_large"


def test_the_least_limit_counts() -> None:
    assert room(Media("file", "r"), 5, 3) == 3
    assert room(Media("file", "r", size=3), 5, 3) == 3
    with pytest.raises(SendFailed, match="the file is over 2 MB") as failed:
        room(Media("file", "r", size=(2 << 20) + 1), 5 << 20, 2 << 20)
    assert failed.value.fault == "too_large"
