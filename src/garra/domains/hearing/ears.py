"""Recordings become words: asked of one after the other, within limits, and of nobody twice for the same recording."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from garra.config.sections.media import AudioMedia, Media, MediaModel
from garra.core import recordings
from garra.core.errors import GarraError
from garra.core.value import frozen
from garra.domains.hearing.ask import Asking, Fault, Recording
from garra.domains.hearing.choice import Place, allowed, chosen, is_program, label
from garra.domains.hearing.programs import Running
from garra.sdk.ports import Clock

LEAST: Final = 1_024
"""Bytes below which a recording holds nothing that could be heard."""

KEEP_MS: Final = 30 * 86_400_000

NOBODY: Final = "nothing here can hear it"

log = logging.getLogger(__name__)


class Memory(Protocol):
    """What was heard before, on disk."""

    async def get(self, key: str) -> Any: ...

    async def set(self, key: str, value: Any, *, durable: bool = False) -> None: ...

    async def items(self) -> dict[str, Any]: ...

    async def remove(self, key: str) -> bool: ...


class Listening(Protocol):
    """The providers; see `domains.models.audio`."""

    def ready(self) -> Sequence[str]: ...

    def listener(self, provider: str, model: str = "", base_url: str = "") -> Any: ...


@frozen
class Heard:
    """What became of a recording: `words` (empty: no speech in it) and who heard them, or `why` nobody did.

    `again`: it had been heard before, and nobody was asked.
    """

    words: str = ""
    by: str = ""
    why: str = ""
    again: bool = False


@frozen
class Ports:
    """`media` gives `tools.media` as it is in force, `listening` the providers as they are."""

    media: Callable[[], Media]
    listening: Callable[[], Listening]
    asking: Asking
    running: Running
    memory: Memory
    clock: Clock


class Ears:
    """`recall` before a recording is fetched, `hear` once it is there; both by the same key."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._room: tuple[int, asyncio.Semaphore] = (0, asyncio.Semaphore(1))

    def most(self) -> int:
        """How many recordings of one message are heard."""
        picked = self._ports.media().audio.attachments
        return 1 if picked.mode == "first" else picked.max_attachments

    async def recall(self, key: str) -> Heard | None:
        """What was heard under `key` before a restart."""
        found = await self._ports.memory.get(key)
        if not isinstance(found, Mapping):
            return None
        return Heard(str(found.get("words", "")), str(found.get("by", "")), again=True)

    async def hear(self, key: str, recording: Recording, place: Place) -> Heard:
        """The words of `recording`, kept under `key` before they are given back; never raises for a provider's faults.

        Raises Unavailable where the store refuses.
        """
        media = self._ports.media()
        asked = chosen(media, self._ports.listening().ready())
        if not asked:
            return Heard(why=NOBODY)
        if not allowed(media.audio.scope, place):
            return Heard(why="recordings are not heard in this chat")
        if recording.size < LEAST:
            return Heard(why="it is too short to hold a word")
        async with self._within(media.concurrency):
            heard = await self._by_any(asked, media.audio, recording)
        if heard.by:
            kept = {"words": heard.words, "by": heard.by, "at": self._ports.clock.now_ms()}
            await self._ports.memory.set(key, kept, durable=True)
        return heard

    async def forget(self) -> None:
        """Keep nothing that is older than the files are."""
        before = self._ports.clock.now_ms() - KEEP_MS
        for key, found in (await self._ports.memory.items()).items():
            if not isinstance(found, Mapping) or found.get("at", 0) < before:
                await self._ports.memory.remove(key)

    async def _by_any(self, asked: Sequence[MediaModel], audio: AudioMedia, recording: Recording) -> Heard:
        faults: list[str] = []
        for one in asked:
            try:
                text, by = await self._by_one(one, audio, recording)
            except Fault as fault:
                log.warning("a recording could not be heard by %s: %s", label(one), fault.whole)
                faults.append(f"{label(one)}: {fault.message}")
            else:
                return Heard(recordings.words(text, one.max_chars or audio.max_chars), by)
        return Heard(why=f"it could not be turned into words ({'; '.join(faults)})")

    async def _by_one(self, one: MediaModel, audio: AudioMedia, recording: Recording) -> tuple[str, str]:
        """What one of them heard, and its name. Raises Fault."""
        limit = one.max_bytes or audio.max_bytes
        if recording.size > limit:
            raise Fault(f"it is over the limit of {limit / 1_000_000:.1f} MB")
        seconds = one.timeout_seconds or audio.timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                if is_program(one):
                    return await self._ports.running.heard(one, audio, recording), label(one)
                return await self._by_provider(one, audio, recording)
        except TimeoutError:
            raise Fault(f"no answer within {seconds:g} s") from None

    async def _by_provider(self, one: MediaModel, audio: AudioMedia, recording: Recording) -> tuple[str, str]:
        try:
            listener = self._ports.listening().listener(one.provider, one.model, one.base_url)
            headers = {**listener.headers, **_own(one)}
        except GarraError as error:
            raise Fault(error.message) from None
        fields = {"language": one.language or audio.language, "prompt": one.prompt or audio.prompt}
        text = await self._ports.asking.heard(listener, headers, fields, recording)
        return text, f"{listener.provider}/{listener.model}"

    def _within(self, number: int) -> asyncio.Semaphore:
        if self._room[0] != number:
            self._room = (number, asyncio.Semaphore(number))
        return self._room[1]


def _own(one: MediaModel) -> dict[str, str]:
    """The headers that the owner set for it. Raises Fault where a secret in them is missing."""
    for name, value in one.headers.items():
        if value.missing or "${" in value.reveal():
            raise Fault(f"its header {name} names a variable that is not set")
    return {name.lower(): value.reveal() for name, value in one.headers.items()}
