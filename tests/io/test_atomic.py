from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from garra.core.errors import Unavailable
from garra.io.files import atomic


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "read-only disk"),
        (errno.EACCES, "rights"),
        (errno.EIO, "error"),
    ],
)
def test_a_refusal_to_write_says_where_and_what_to_do(tmp_path: Path, number: int, says: str) -> None:
    with pytest.raises(Unavailable) as caught, atomic.writing(tmp_path):
        raise OSError(number, os.strerror(number))
    assert caught.value.message.startswith(f"{tmp_path} cannot be written: ")
    assert says in caught.value.message


@pytest.mark.req("COF-22")
def test_files_and_folders_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "deep" / "x.json"
    atomic.write(path, b"1")
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
    path.chmod(0o644)
    atomic.write(path, b"2")
    assert (path.read_bytes(), mode(path)) == (b"2", 0o600)
    assert names(path.parent) == ["x.json"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("a")
    link.symlink_to(real)
    atomic.write(link, b"b")
    assert link.is_symlink()
    assert real.read_text() == "b"


def test_a_failed_write_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        atomic.write(path, b"b")
    assert names(tmp_path) == ["x"]


def test_drafts_of_the_dead_are_swept_those_of_the_living_stay(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead, living = tmp_path / f".x.{int(done.stdout)}.ab.draft", tmp_path / f".x.{os.getppid()}.ab.draft"
    for draft in (dead, living):
        draft.write_text("")
    atomic.write(tmp_path / "x", b"1")
    assert names(tmp_path) == sorted([living.name, "x"])


def test_reading_says_in_words_why_it_cannot(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(FileNotFoundError):
        atomic.read(path)
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert atomic.read(path) == "abc"
    with pytest.raises(Unavailable, match="larger than 3 bytes"):
        atomic.read(path, 3)
    path.write_bytes(b"ab\xff")
    with pytest.raises(Unavailable, match="not UTF-8 text"):
        atomic.read(path)
    with pytest.raises(Unavailable, match="cannot be read"):
        atomic.read(tmp_path)


def test_a_file_is_made_whole_and_only_where_nothing_is(tmp_path: Path) -> None:
    path = tmp_path / "a" / "file"
    assert atomic.create(path, b"one")
    assert path.stat().st_mode & 0o777 == 0o600
    assert not atomic.create(path, b"two")
    assert path.read_bytes() == b"one"
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert not atomic.create(link, b"three")
    assert [found.name for found in path.parent.iterdir()] == ["file"]
