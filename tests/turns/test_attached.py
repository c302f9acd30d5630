"""What came with a message, on its way to the model."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core import outside
from garra.core.taint import Mark
from garra.domains.delivery.handles import SPACE, Handles
from garra.domains.delivery.media import MediaRoot
from garra.domains.hearing.ask import Recording
from garra.domains.hearing.choice import Place
from garra.domains.hearing.ears import Heard
from garra.io.store.shelf import Shelf
from garra.sdk.channel import (
    Address,
    Channel,
    Inbound,
    Limits,
    Media,
    MediaKind,
    Outbound,
    Pulse,
    Receive,
    Sender,
    SendFailed,
)
from garra.testing.clock import ManualClock
from garra.turns.attached import Fetched
from garra.turns.parts import Gathered
from tests.stored import stored

HERE = Address("test", "default", "c", "direct")


class Files:
    """A channel with files by name."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.limits = Limits(text=1_000, file_in=1_000_000)
        self._files = files

    async def run(self, receive: Receive, pulse: Pulse) -> None: ...

    async def send(self, message: Outbound) -> str:
        return ""

    async def fetch(self, media: Media, limit: int) -> AsyncIterator[bytes]:
        if media.ref not in self._files:
            raise SendFailed("gone", "it is not there any more")
        yield self._files[media.ref]


async def gathered(tmp_path: Path, channel: Channel | None, *media: Media) -> Gathered:
    event = Inbound("1", "message", HERE, Sender("7"), media=media)
    return await Fetched(MediaRoot(tmp_path, ManualClock()), lambda _: channel).gather(event)


def one(kind: MediaKind, name: str, mime: str, ref: str = "f") -> Media:
    return Media(kind, ref, name, mime)


async def test_a_picture_is_seen(tmp_path: Path) -> None:
    found = await gathered(tmp_path, Files({"f": b"\x89PNG"}), one("image", "a.png", "image/png"))
    assert [(image.media_type, base64.b64decode(image.data)) for image in found.images] == [("image/png", b"\x89PNG")]
    assert not found.lines
    assert [path.read_bytes() for path in tmp_path.rglob("*.png")] == [b"\x89PNG"]


@pytest.mark.parametrize(
    ("data", "told", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/png", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/jpeg", "image/webp"),
        (b"GIF89a", "image/gif", "image/gif"),
        (b"<svg/>", "image/png", ""),
        (b"", "image/jpeg", ""),
    ],
)
async def test_a_picture_is_what_its_bytes_say(tmp_path: Path, data: bytes, told: str, kind: str) -> None:
    found = await gathered(tmp_path, Files({"f": data}), one("file", "a.png", told))
    assert [image.media_type for image in found.images] == ([kind] if kind else [])
    assert [("no picture" in line) for line in found.lines] == ([] if kind else [True])


async def test_words_stand_in_a_fence_that_they_cannot_close(tmp_path: Path) -> None:
    found = await gathered(tmp_path, Files({"f": b"a ```` b"}), one("file", "n.md", "text/markdown"))
    assert found.lines == (f"[attached file]\n{outside.wrap('a ```` b', Mark('file', 'n.md'))}",)


@pytest.mark.parametrize(
    ("data", "media", "said"),
    [
        (b"\xff\xfe", one("file", "n.txt", "text/plain"), "it is no text"),
        (b"x" * 70_000, one("file", "n.txt", "text/plain"), "n.txt, text/plain, 68 KB"),
        (b"zip", one("file", "a.zip", "application/zip"), "a.zip, application/zip"),
        (b"ogg", one("voice", "", "audio/ogg"), "voice message: nothing here can hear it"),
        (b"x" * 1_000_001, one("file", "big.bin", ""), "could not be fetched"),
        (b"x", one("file", "gone.txt", "text/plain", "other"), "it is not there any more"),
    ],
)
async def test_what_the_model_cannot_have_is_one_line(tmp_path: Path, data: bytes, media: Media, said: str) -> None:
    found = await gathered(tmp_path, Files({"f": data}), media)
    assert not found.images
    assert len(found.lines) == 1
    assert said in found.lines[0]


async def test_files_have_names_by_which_tools_find_them(tmp_path: Path) -> None:
    root = MediaRoot(tmp_path / "media", ManualClock())
    files = {"p": b"\x89PNG", "t": b"words", "z": b"zip"}
    media = (
        one("image", "a.png", "image/png", "p"),
        one("file", "n].txt", "text/plain", "t"),
        one("file", "a.zip", "application/zip", "z"),
    )
    async with stored(tmp_path) as db:
        handles = Handles(Shelf(db, SPACE), root)
        event = Inbound("1", "message", HERE, Sender("7"), media=media)
        channel = Files(files)
        found = await Fetched(root, lambda _: channel, handles=handles).gather(event, "one", "two")
        assert len(found.images) == 1
        for line, ref in zip(found.lines, "ptz", strict=True):
            named = re.search(r"media://in/\w+(?=]$)", line.partition("\n")[0])
            assert named is not None, line
            for session in ("one", "two"):
                assert (await handles.read(session, named[0], 100)).data == files[ref]
        assert "words" in found.lines[1]


async def test_an_account_that_is_gone_is_told(tmp_path: Path) -> None:
    found = await gathered(tmp_path, None, one("file", "a.txt", "text/plain"))
    assert found.lines == ("[attached file a.txt cannot be fetched from test]",)


class Listener:
    """Ears that hear what a recording holds, and remember it."""

    def __init__(self, most: int = 1) -> None:
        self.heard: dict[str, Heard] = {}
        self.places: list[Place] = []
        self._most = most

    def most(self) -> int:
        return self._most

    async def recall(self, key: str) -> Heard | None:
        found = self.heard.get(key)
        return replace(found, again=True) if found is not None else None

    async def hear(self, key: str, recording: Recording, place: Place) -> Heard:
        self.places.append(place)
        words = (await asyncio.to_thread(recording.path.read_bytes)).decode()
        self.heard[key] = Heard(words, "an ear")
        return self.heard[key]


async def listened(tmp_path: Path, ears: Listener, files: dict[str, bytes], *media: Media) -> Gathered:
    event = Inbound("1", "message", HERE, Sender("7"), media=media)
    channel = Files(files)
    return await Fetched(MediaRoot(tmp_path, ManualClock()), lambda _: channel, ears).gather(event, "agent:main:main")


async def test_a_recording_is_read_as_its_words(tmp_path: Path) -> None:
    ears = Listener()
    song = one("file", "song.mp3", "audio/mpeg", "g")
    found = await listened(tmp_path, ears, {"f": b"hello", "g": b"la"}, one("voice", "", "audio/ogg"), song)
    said, other = found.lines
    assert said == "[voice message, transcribed]\nhello"
    assert other == "[attached file song.mp3: only 1 of a message can be heard; ask its sender for the words]"
    assert found.stations[0] == ("heard", "by an ear, 5 characters")
    assert found.stations[1][0] == "unheard"
    assert ears.places == [Place("test", "direct", "agent:main:main")]


async def test_what_was_heard_before_is_neither_fetched_nor_heard_again(tmp_path: Path) -> None:
    ears = Listener(most=2)
    voice = one("voice", "", "audio/ogg")
    await listened(tmp_path, ears, {"f": b"hello"}, voice)
    found = await listened(tmp_path, ears, {}, voice)
    assert found.lines == ("[voice message, transcribed]\nhello",)
    assert found.stations == (("heard", "as before, by an ear, 5 characters"),)
    assert len(ears.places) == 1


async def test_a_recording_without_speech_says_how_long_it_is(tmp_path: Path) -> None:
    voice = Media("voice", "f", "", "audio/ogg", 1, 65)
    found = await listened(tmp_path, Listener(), {"f": b""}, voice)
    assert found.lines == ("[attached voice message, 1:05: there is no speech in it]",)
