"""What sub-agents leave their parents: files that the parent's tools then find by a name of its own."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import mimetypes
from typing import Final

from garra.core.errors import GarraError
from garra.core.ids import AgentId, RunId, SessionKey
from garra.core.lineage import Child, Left
from garra.core.reports import Made
from garra.domains.delivery.handles import START, Handles
from garra.domains.delivery.media import MediaRoot
from garra.runs.assemble import Assembler
from garra.sdk.channel import SendFailed

log = logging.getLogger(__name__)

LARGEST: Final = 20 << 20
"""Bytes of one file that is handed on."""


class Leaving:
    """`share` is the `Share` of `runs.subagents`."""

    def __init__(self, assembler: Assembler, media: MediaRoot, handles: Handles) -> None:
        self._assembler, self._media, self._handles = assembler, media, handles

    async def share(self, child: Child, made: Made) -> tuple[Left, ...]:
        """Names that lead to a file in the child's session lead to it in its parent's too; what lies in its folder is
        copied as it is now. What cannot be had is left out.
        """
        known = {each.source for each in child.files}
        tried = [await self._tried(child, place) for place in made.places if place not in known]
        found = [left for left in tried if left is not None]
        for number, picture in enumerate(made.pictures, 1):
            source = f"picture {number} of {len(made.pictures)}"
            if source not in known:
                name = f"picture-{number}.{picture.media_type.rpartition('/')[2] or 'png'}"
                left = await self._copied(child, (name, picture.media_type, source), picture.data)
                found += [left] if left is not None else []
        return tuple(found)

    async def _tried(self, child: Child, place: str) -> Left | None:
        try:
            if place.startswith(START):
                return await self._handles.share(place, child.key, child.home.key)
            data = await self._read(child, place)
        except (GarraError, OSError) as fault:
            log.info("%s of sub-agent %s is not handed on: %s", place[:80], child.run_id, fault)
            return None
        name = place.rstrip("/").rpartition("/")[2]
        mime, _ = await asyncio.to_thread(mimetypes.guess_type, name)
        return await self._copied(child, (name, mime or "application/octet-stream", place), data)

    async def _read(self, child: Child, place: str) -> bytes:
        """A file as the child's own tools would read it."""
        agent = AgentId(child.agent)
        await self._assembler.prepare(agent)
        context = self._assembler.context(agent, SessionKey(child.key), RunId(child.run_id), "subagent")
        return await asyncio.to_thread(context.files.read, place, LARGEST)

    async def _copied(self, child: Child, about: tuple[str, str, str], data: bytes | str) -> Left | None:
        name, mime, source = about
        try:
            raw = base64.b64decode(data, validate=True) if isinstance(data, str) else data
            kept = await self._media.add("subagents", name, raw, mime=mime)
            where = await self._handles.give("tools", (child.home.key,), kept)
        except (GarraError, SendFailed, OSError, binascii.Error) as fault:
            log.info("%s of sub-agent %s is not handed on: %s", name[:80], child.run_id, fault)
            return None
        return Left(kept.name, where, mime, source)
