"""The recordings of one message: turned into words where somebody can, else one line that says why not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Protocol

from garra.core import outside
from garra.domains.delivery.media import Kept
from garra.domains.hearing.ask import Recording
from garra.domains.hearing.choice import Place
from garra.domains.hearing.ears import NOBODY, Heard
from garra.sdk.channel import Inbound, Media


class Ears(Protocol):
    """What turns recordings into words; see `domains.hearing.ears`."""

    def most(self) -> int: ...

    async def recall(self, key: str) -> Heard | None: ...

    async def hear(self, key: str, recording: Recording, place: Place) -> Heard: ...


class Deaf:
    """Ears where nothing hears."""

    def most(self) -> int:
        return 1

    async def recall(self, key: str) -> Heard | None:
        return None

    async def hear(self, key: str, recording: Recording, place: Place) -> Heard:
        return Heard(why=NOBODY)


class Hearing:
    """One message's recordings, in their order. `stations` is what the message's story tells of them.

    The words are those of the message's sender and stand where theirs stand; none of them is taken for a command.
    """

    def __init__(self, ears: Ears, event: Inbound, session: str) -> None:
        self._ears, self._event = ears, event
        self._place = Place(event.address.channel, event.address.kind, session)
        self._asked = 0
        self.stations: list[tuple[str, str]] = []

    async def recall(self, media: Media) -> str:
        """What was heard before a restart, as the turn reads it; empty where nothing was."""
        if not audible(media):
            return ""
        found = await self._ears.recall(self._key(media))
        if found is None:
            return ""
        self._asked += 1
        return self._told(media, found)

    async def hear(self, media: Media, kept: Kept, path: Path) -> str:
        """What the turn reads of a recording that is there. Raises Unavailable where the store refuses."""
        if self._asked >= self._ears.most():
            return self._told(media, Heard(why=f"only {self._ears.most()} of a message can be heard"))
        self._asked += 1
        recording = Recording(path, kept.mime, kept.name, kept.size)
        return self._told(media, await self._ears.hear(self._key(media), recording, self._place))

    def _told(self, media: Media, heard: Heard) -> str:
        if not heard.by:
            self.stations.append(("unheard", heard.why))
            return f"[{named(media)}{_length(media)}: {heard.why}; ask its sender for the words]"
        before = "as before, " if heard.again else ""
        self.stations.append(("heard", f"{before}by {heard.by}, {len(heard.words)} characters"))
        if not heard.words:
            return f"[{named(media)}{_length(media)}: there is no speech in it]"
        return f"[{named(media).removeprefix('attached ')}, transcribed]\n{heard.words}"

    def _key(self, media: Media) -> str:
        """The name of one recording of one message, the same after a restart."""
        event, address = self._event, self._event.address
        parts = (address.channel, address.account, address.chat, address.thread, event.id, media.ref)
        return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()


def audible(media: Media | Kept) -> bool:
    """Whether it is a recording."""
    return media.kind in ("voice", "audio") or (media.kind == "file" and media.mime.startswith("audio/"))


def named(media: Media) -> str:
    """An attachment in words."""
    kind = {"voice": "voice message", "audio": "audio file", "image": "picture"}.get(media.kind, media.kind)
    return f"attached {kind} {outside.name(media.name)}".rstrip()


def _length(media: Media) -> str:
    return "" if media.seconds is None else f", {media.seconds // 60}:{media.seconds % 60:02}"
