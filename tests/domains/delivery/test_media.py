"""The one media root: nothing leaves it, nothing is larger than its limit, old files go."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.errors import NotFound, Unavailable
from garra.domains.delivery.media import NAME_BYTES, MediaRoot, fitted, oversize, safe
from garra.sdk.channel import File, Media, SendFailed
from tests.domains.delivery.parts import clock, draft


async def stream(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def broken() -> AsyncIterator[bytes]:
    yield b"half"
    raise SendFailed("passing", "cut")


@pytest.fixture
def root(tmp_path: Path) -> MediaRoot:
    return MediaRoot(tmp_path / "media", clock())


def files(root: MediaRoot) -> list[str]:
    return sorted(path.relative_to(root.root).as_posix() for path in root.root.rglob("*") if path.is_file())


@pytest.mark.req("CH-22", "ONE-05")
@pytest.mark.parametrize(
    "name",
    ["../../../etc/passwd", "..\\..\\boot.ini", "/etc/shadow", "..", ".ssh/authorized_keys", "a\x00b", "C:\\a.txt", ""],
)
async def test_a_name_that_climbs_stays_inside(root: MediaRoot, name: str) -> None:
    kept = await root.keep("telegram", Media("file", "r", name), stream(b"x"), 10)
    path = await root.path(kept.path)
    assert path.read_bytes() == b"x"
    assert path.resolve().is_relative_to(root.root.resolve() / "telegram")
    assert kept.file().path == kept.path


async def test_a_channels_own_name_cannot_climb_either(root: MediaRoot) -> None:
    kept = await root.add("../../up", "a.txt", b"x")
    assert (await root.path(kept.path)).is_relative_to(root.root)


@given(st.text())
def test_a_safe_name_is_one_plain_part_of_a_path(name: str) -> None:
    made = safe(name)
    assert made
    assert len(made.encode()) <= NAME_BYTES
    assert made == Path(made).name
    assert not made.startswith(".")
    assert made.isprintable() or " " in made or any(not char.isascii() for char in made)


def test_a_safe_name_keeps_its_letters_and_its_ending() -> None:
    assert safe("Überblick 2026 – 最終版.pdf") == "Überblick 2026 – 最終版.pdf"
    assert safe("長" * 100 + ".jpeg").endswith(".jpeg")
    assert safe("evil\u202egpj.exe") == "evil_gpj.exe"
    assert safe("", "photo") == "photo"
    assert safe(".bashrc") == "bashrc"


async def test_files_are_private_and_two_of_one_name_are_two(root: MediaRoot) -> None:
    one = await root.add("irc", "a.txt", b"1")
    two = await root.add("irc", "a.txt", b"2")
    assert one.path != two.path
    path = await root.path(one.path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_what_is_too_large_is_refused_before_and_while_it_comes(root: MediaRoot) -> None:
    told = Media("video", "r", "a.mp4", size=30_000_000)
    with pytest.raises(SendFailed, match=r"over the limit of 20\.0 MB") as caught:
        await root.keep("telegram", told, stream(b"x"), 20_000_000)
    assert caught.value.fault == "too_large"
    with pytest.raises(SendFailed, match="The voice is over the limit"):
        await root.keep("telegram", Media("voice", "r"), stream(b"x" * 300_000, b"x" * 300_000), 500_000)
    assert files(root) == []


async def test_half_a_file_is_no_file(root: MediaRoot) -> None:
    with pytest.raises(SendFailed):
        await root.keep("telegram", Media("file", "r", "a"), broken(), 100)
    assert files(root) == []


async def test_a_root_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "media").write_text("a file stands there")
    with pytest.raises(Unavailable, match="cannot be written"):
        await MediaRoot(tmp_path / "media", clock()).add("irc", "a", b"x")


async def test_only_kept_files_are_found(root: MediaRoot, tmp_path: Path) -> None:
    kept = await root.add("irc", "a.txt", b"x")
    (tmp_path / "secret").write_text("s")
    (root.root / "link").symlink_to(tmp_path / "secret")
    (root.root / "folder").symlink_to(tmp_path)
    for path in ("../secret", str(tmp_path / "secret"), "link", "folder/secret", "none", "irc"):
        with pytest.raises(NotFound):
            await root.path(path)
    assert (await root.path(kept.path)).is_file()


@pytest.mark.req("CH-22")
async def test_old_files_go_and_their_empty_folders(root: MediaRoot) -> None:
    time = root._clock.now_ms() / 1000
    old, new = await root.add("irc", "old", b"x"), await root.add("xmpp", "new", b"x")
    os.utime(root.root / old.path, (time - 31 * 86_400,) * 2)
    os.utime(root.root / new.path, (time - 29 * 86_400,) * 2)
    assert await root.sweep(30) == 1
    assert files(root) == [new.path]
    assert not (root.root / "irc").exists()


async def test_over_the_room_there_is_the_oldest_go_and_what_is_young_stays(tmp_path: Path) -> None:
    root = MediaRoot(tmp_path / "media", clock(), room=1000)
    time = root._clock.now_ms() / 1000
    kept = [await root.add("irc", f"{hours}.bin", b"x" * 100) for hours in (9, 8, 7)]
    for file, hours in zip(kept, (9, 8, 7), strict=True):
        os.utime(root.root / file.path, (time - hours * 3600,) * 2)
    young = [await root.add("irc", "young.bin", b"y" * 800)]
    assert files(root) == sorted(file.path for file in (*kept[1:], *young))
    young.append(await root.add("irc", "younger.bin", b"y" * 1200))
    assert files(root) == sorted(file.path for file in young)


@pytest.mark.req("ONE-14")
def test_files_over_the_limit_are_told_and_the_others_stay() -> None:
    small = File("file", "a", "a.txt", "", 10)
    large = File("file", "b", "b.zip", "", 3_000_000)
    told = fitted(draft(text="both", files=(small, large)), 1_000_000, lambda file: f"https://x.example/{file.name}")
    assert told.files == (small,)
    assert told.text == "both\n\nb.zip (3.0 MB) is over the limit of 1.0 MB here: https://x.example/b.zip"
    alone = fitted(draft(forms=(), files=(large,)), 1_000_000)
    assert alone.text.startswith("b.zip (3.0 MB) is over the limit of 1.0 MB here; it is kept on the gateway's machine")
    same = draft(files=(small,))
    assert fitted(same, 1_000_000) is same


def test_an_attachment_that_is_too_large_is_told_with_its_size() -> None:
    assert oversize(Media("video", "r", "a.mp4", size=61_234_567), 20_000_000) == (
        "a.mp4 (61.2 MB) is over the limit of 20.0 MB here and was not read."
    )
