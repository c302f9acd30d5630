"""What channels share that fetch attachments."""

from __future__ import annotations

from collections.abc import AsyncIterator

from garra.sdk.channel import SendFailed


async def bounded(chunks: AsyncIterator[bytes], limit: int, name: str = "the file") -> AsyncIterator[bytes]:
    """`chunks`, which are `limit` bytes in all at most. Raises SendFailed (`too_large`) for the one that is over."""
    got = 0
    async for chunk in chunks:
        got += len(chunk)
        if got > limit:
            raise SendFailed("too_large", f"{name} is over {limit / (1 << 20):.0f} MB")
        yield chunk
