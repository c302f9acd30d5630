"""What came with a message: fetched within limits, kept in the media root; pictures and short texts reach the model."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from garra.core import outside
from garra.core.errors import GarraError
from garra.core.messages import Image
from garra.core.taint import Mark
from garra.domains.delivery.handles import Handles
from garra.domains.delivery.media import Kept, MediaRoot
from garra.sdk.channel import Address, Channel, Fetches, Inbound, Media, SendFailed
from garra.turns.heard import Deaf, Ears, Hearing, audible, named
from garra.turns.parts import Gathered

PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_STARTS: Final = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
PICTURE_BYTES: Final = 5 << 20
"""Larger ones are refused by the model services."""
TEXT_BYTES: Final = 64 << 10
FETCH_S: Final = 60.0
TEXTUAL: Final = (".txt", ".md", ".csv", ".json", ".log", ".xml", ".yaml", ".yml", ".toml", ".ini", ".py", ".js", ".ts")

log = logging.getLogger(__name__)


class Fetched:
    """As `parts.Attachments`. `channel` gives the channel of a chat, None where its account is gone; `ears` turn
    recordings into words; `handles` names files for the tools of the conversations that a message goes to.
    """

    def __init__(
        self,
        root: MediaRoot,
        channel: Callable[[Address], Channel | None],
        ears: Ears | None = None,
        handles: Handles | None = None,
    ) -> None:
        self._root, self._channel, self._ears, self._handles = root, channel, ears or Deaf(), handles

    async def gather(self, event: Inbound, *keys: str) -> Gathered:
        images: list[Image] = []
        lines: list[str] = []
        hearing = Hearing(self._ears, event, keys[0] if keys else "")
        for media in event.media:
            line = await hearing.recall(media)
            if not line:
                image, line = await self._tried(event.address, media, hearing, keys)
                images += [image] if image else []
            lines += [line] if line else []
        return Gathered(tuple(images), tuple(lines), tuple(hearing.stations))

    async def _tried(
        self, address: Address, media: Media, hearing: Hearing, keys: Sequence[str]
    ) -> tuple[Image | None, str]:
        channel = self._channel(address)
        if channel is None or not hasattr(channel, "fetch"):
            return None, f"[{named(media)} cannot be fetched from {address.channel}]"
        try:
            async with asyncio.timeout(FETCH_S):
                limit = channel.limits.file_in
                chunks = cast(Fetches, channel).fetch(media, limit)
                kept = await self._root.keep(address.channel, media, chunks, limit)
                path = await self._root.path(kept.path)
                found = None if audible(kept) else await _seen(media, kept, path)
        except (GarraError, TimeoutError, OSError) as error:
            log.warning("%s of %s: %s", named(media), address.channel, _why(error))
            return None, f"[{named(media)} could not be fetched: {_why(error)}]"
        if found is None:
            return None, await hearing.hear(media, kept, path)
        image, line = found
        if self._handles is None or not keys:
            return found
        return image, _handled(line or f"[{named(media)}]", await self._handles.give("in", keys, kept))


def _handled(line: str, handle: str) -> str:
    """What is told of a file, with the name by which tools find it: at the end of the first line, in its brackets."""
    head, end, rest = line.partition("\n")
    return f"{head[:-1]}: {handle}]{end}{rest}"


async def _seen(media: Media, kept: Kept, path: Path) -> tuple[Image | None, str]:
    """A picture for the model, or a line in brackets, with the text itself behind it."""
    if kept.mime in PICTURES and kept.size <= PICTURE_BYTES:
        data = await asyncio.to_thread(path.read_bytes)
        if mime := _picture(data):
            return Image(mime, base64.b64encode(data).decode()), ""
        return None, f"[{named(media)}, {_size(kept.size)}: it is no picture that can be read]"
    if _textual(kept) and kept.size <= TEXT_BYTES:
        return None, await asyncio.to_thread(_quoted, path, kept)
    return None, f"[{named(media)}, {kept.mime or 'of an unknown kind'}, {_size(kept.size)}]"


def _picture(data: bytes) -> str:
    """Its kind by its first bytes, whatever its sender called it; empty for none. A model service refuses the whole
    conversation, for good, over one picture that is not what it says.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), "")


def _textual(kept: Kept) -> bool:
    return kept.mime.startswith("text/") or kept.mime == "application/json" or kept.name.lower().endswith(TEXTUAL)


def _quoted(path: Path, kept: Kept) -> str:
    """A file's words, in a part that is marked as somebody's text; what is no text is only named."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        return f"[attached file {outside.name(kept.name)}, {_size(kept.size)}: it is no text]"
    return f"[attached file]\n{outside.wrap(text.rstrip(), Mark('file', kept.name))}"


def _size(size: int) -> str:
    return f"{size / 1024:.0f} KB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MB"


def _why(error: Exception) -> str:
    if isinstance(error, SendFailed | GarraError):
        return error.message
    return "it took too long" if isinstance(error, TimeoutError) else "it could not be stored"
