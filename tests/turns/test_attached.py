"""What came with a message, on its way to the model."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.domains.delivery.media import MediaRoot
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
    assert found.lines == ("[attached file n.md]\n`````\na ```` b\n`````",)


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


async def test_an_account_that_is_gone_is_told(tmp_path: Path) -> None:
    found = await gathered(tmp_path, None, one("file", "a.txt", "text/plain"))
    assert found.lines == ("[attached file a.txt cannot be fetched from test]",)
