"""Pictures that are too large for models are made smaller before they are stored, in a process of their own.

A picture that no service takes would fail each turn from then on, so it never enters a history: where it cannot be made
smaller, words stand in its place.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
from collections.abc import Callable
from importlib import invalidate_caches
from importlib.util import find_spec
from typing import Any, Final

from garra.core import pictures
from garra.core.errors import UserError
from garra.core.messages import Image, Message, Text, ToolResult, User
from garra.core.value import replace
from garra.sdk.web import Bounded

log = logging.getLogger(__name__)

SHRINKER: Final = "garra.builtin.tools.media.shrink"
SMALL: Final = 32_768
"""Characters of base64 up to which a provider may judge for itself what is no picture for us."""
MISSING: Final = "Garra cannot make it smaller: `garra plugins install media` brings what that takes"


def installed() -> bool:
    """Blocks: looks in folders."""
    invalidate_caches()
    return find_spec("PIL") is not None


class Pictures:
    """`side` gives the most points a side (`agents.defaults.imageMaxDimensionPx`); 0 sets no limit of its own. `there`
    says whether what makes them smaller is installed.
    """

    def __init__(self, bounded: Bounded, side: Callable[[], int], there: Callable[[], bool] = installed) -> None:
        self._bounded, self._side, self._there = bounded, side, there

    async def message(self, message: User) -> User:
        """What a person said, with pictures that models take."""
        return message if _plain(message) else replace(message, content=await self._content(message))

    async def after(self, _pending: Any, result: ToolResult, _took_ms: int) -> ToolResult:
        """What a tool gave, as a hook of the pipeline."""
        return result if _plain(result) else replace(result, content=await self._content(result))

    async def _content(self, message: Message) -> tuple[Any, ...]:
        return tuple([await self._one(part) if isinstance(part, Image) else part for part in message.content])

    async def _one(self, image: Image) -> Image | Text:
        if not image.media_type.startswith("image/"):
            return image
        size = len(image.data)
        try:
            data = await asyncio.to_thread(base64.b64decode, image.data)
            found = pictures.read(data)
        except (binascii.Error, ValueError) as fault:
            return image if size <= SMALL else Text(f"[a picture is left out: {fault}]")
        if not pictures.large(found, size, self._side()):
            return image
        made, why = await self._made(data)
        if made is not None:
            return made
        told = f"{found.width} × {found.height} points, {len(data) >> 10} KiB"
        if not pictures.hopeless(found, size):
            log.info("a picture of %s is sent as it is: %s", told, why)
            return image
        return Text(f"[a picture of {told} is left out, it is larger than models take. {why}]")

    async def _made(self, data: bytes) -> tuple[Image | None, str]:
        """The picture made smaller, or why it is not."""
        if not await asyncio.to_thread(self._there):
            return None, MISSING
        asked = {"side": self._side() or pictures.HARD_SIDE, "bytes": pictures.HARD_TEXT * 3 // 4}
        try:
            answer = await self._bounded.run(SHRINKER, json.dumps(asked).encode() + b"\n" + data)
        except UserError as fault:
            return None, f"it was not made smaller: {fault.message}"
        head, _, body = answer.partition(b"\n")
        said = json.loads(head)
        if "error" in said:
            return None, f"it was not made smaller: {said['error']}"
        return Image(said["mime"], base64.b64encode(body).decode()), ""


def _plain(message: Message) -> bool:
    return not any(isinstance(part, Image) for part in message.content)
