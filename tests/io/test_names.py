"""A name's addresses, for a command."""

from __future__ import annotations

import asyncio

from garra.io.names import addresses


async def test_the_addresses_of_a_name() -> None:
    assert "127.0.0.1" in await asyncio.to_thread(addresses, "localhost")
    assert await asyncio.to_thread(addresses, "10.0.0.1") == ["10.0.0.1"]


async def test_what_is_no_name_has_none() -> None:
    for wrong in ("no such host", "a" * 300, "\udcff"):
        assert await asyncio.to_thread(addresses, wrong) == []
