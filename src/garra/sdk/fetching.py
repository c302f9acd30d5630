"""What channels share that fetch attachments."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping

from garra.core.errors import Unavailable
from garra.sdk.channel import Media, SendFailed
from garra.sdk.ports import DIRECT, Body, Http, Via

WAIT_S = 60.0


def room(media: Media, *limits: int) -> int:
    """The bytes an attachment may have: the least of `limits`. Raises SendFailed (`too_large`) where it has more."""
    most = min(limits)
    if media.size is not None and media.size > most:
        raise SendFailed("too_large", f"the file is over {most >> 20} MB")
    return most


async def fetched(
    http: Http,
    url: str,
    limit: int,
    *,
    refused: Callable[[Body], Exception | None],
    lost: Callable[[Unavailable], Exception],
    headers: Mapping[str, str] | None = None,
    via: Via = DIRECT,
) -> AsyncIterator[bytes]:
    """The bytes at an address, `limit` at most. Raises what `refused` makes of an answer that is no file, what `lost`
    makes of a connection that broke, and SendFailed (`too_large`).
    """
    try:
        async with http.stream("GET", url, headers=headers, timeout=WAIT_S, via=via) as answer:
            if (wrong := refused(answer)) is not None:
                raise wrong
            async for chunk in bounded(answer.chunks(), limit):
                yield chunk
    except Unavailable as fault:
        raise lost(fault) from None


async def bounded(chunks: AsyncIterator[bytes], limit: int, name: str = "the file") -> AsyncIterator[bytes]:
    """`chunks`, which are `limit` bytes in all at most. Raises SendFailed (`too_large`) for the one that is over."""
    got = 0
    async for chunk in chunks:
        got += len(chunk)
        if got > limit:
            raise SendFailed("too_large", f"{name} is over {limit / (1 << 20):.0f} MB")
        yield chunk
