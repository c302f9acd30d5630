"""Append-only files on a real disk."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.core.errors import Conflict, NotFound, Unavailable
from garra.io.store import lines as door
from garra.io.store.lines import Lines

CHILD = Path(__file__).with_name("child.py")


@pytest.fixture
async def lines() -> AsyncIterator[Lines]:
    opened = Lines()
    yield opened
    await opened.close()


async def test_lines_are_added_in_order(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.jsonl"
    await asyncio.gather(*(lines.append(path, [b"%d" % number]) for number in range(2_000)))
    assert path.read_bytes().split() == [b"%d" % number for number in range(2_000)]
    assert await lines.load(path) == path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_many_files_are_written_at_once(lines: Lines, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.jsonl" for number in range(300)]
    for text in (b"one", b"two"):
        await asyncio.gather(*(lines.append(path, [text]) for path in paths))
    assert {path.read_bytes() for path in paths} == {b"one\ntwo\n"}
    assert sum(len(desk._open) for desk in lines._desks) <= door.THREADS * door.OPEN_FILES


async def test_a_line_break_inside_a_line_is_refused(lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line break"):
        await lines.append(tmp_path / "a", [b"one\ntwo"])
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("torn", [b'{"half', b"\x00" * 5_000, b"x" * 200_000])
async def test_a_torn_last_line_is_cut(lines: Lines, tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"one\ntwo\n" + torn)
    assert await asyncio.to_thread(door.read, path) == b"one\ntwo\n"
    assert path.read_bytes().endswith(torn)
    assert await lines.load(path) == b"one\ntwo\n"
    assert path.read_bytes() == b"one\ntwo\n"


async def test_a_torn_last_line_is_cut_before_the_next_is_added(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"torn")
    await lines.append(path, [b"one"])
    assert path.read_bytes() == b"one\n"


async def test_a_file_is_made_once(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    await lines.create(path, [b"one"])
    with pytest.raises(Conflict):
        await lines.create(path, [b"other"])
    await lines.append(path, [b"two"])
    assert path.read_bytes() == b"one\ntwo\n"


async def test_a_renamed_file_is_left_alone(lines: Lines, tmp_path: Path) -> None:
    path, away = tmp_path / "a.jsonl", tmp_path / "a.jsonl.deleted"
    await lines.append(path, [b"one"])
    await lines.rename(path, away)
    await lines.append(path, [b"two"])
    assert (away.read_bytes(), path.read_bytes()) == (b"one\n", b"two\n")
    with pytest.raises(NotFound):
        await lines.rename(tmp_path / "b", away)


async def test_what_is_written_after_somebody_removed_the_file_is_kept(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    await lines.append(path, [b"one"])
    path.unlink()
    await lines.append(path, [b"two"])
    assert path.read_bytes() == b"two\n"


async def test_no_link_is_followed(lines: Lines, tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"private\n")
    link.symlink_to(target)
    with pytest.raises(Unavailable, match="symbolic link"):
        await lines.append(link, [b"one"])
    with pytest.raises(Unavailable, match="symbolic link"):
        await lines.load(link)
    assert target.read_bytes() == b"private\n"


async def test_what_is_not_there_is_not_found(lines: Lines, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await lines.load(tmp_path / "none")
    assert not (tmp_path / "none").exists()


async def test_a_closed_writer_refuses(tmp_path: Path) -> None:
    lines = Lines()
    await lines.append(tmp_path / "a", [b"one"])
    await lines.close()
    await lines.close()
    with pytest.raises(Unavailable, match="closed"):
        await lines.append(tmp_path / "a", [b"two"])


def run(what: str, folder: Path, *before: str) -> list[str]:
    command = [*before, sys.executable, str(CHILD), what, str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=15).stdout.splitlines()


def test_a_write_that_stops_in_the_middle_of_a_line_leaves_no_half(tmp_path: Path) -> None:
    (told,) = run("limited", tmp_path)
    count = int(told.split()[0])
    assert "Unavailable" in told
    written = (tmp_path / "a.jsonl").read_bytes()
    assert written.endswith(b"\n")
    assert written.count(b"\n") == count == 10_000 // 703


@pytest.mark.needs("bwrap")
def test_a_full_disk_is_said_in_one_line_and_loses_nothing(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[3])
    small = ("--size", "400000", "--tmpfs", str(tmp_path))
    cell = ("bwrap", "--dev-bind", "/", "/", *small, "--chdir", root)
    (told,) = run("fill-lines", tmp_path, *cell)
    assert "the disk is full: free some space" in told
    assert int(told.split()[0]) > 100


@pytest.mark.needs("bwrap")
def test_a_read_only_disk_is_said_in_one_line(tmp_path: Path) -> None:
    cell = ("bwrap", "--dev-bind", "/", "/", "--ro-bind", str(tmp_path), str(tmp_path))
    (told,) = run("fill-lines", tmp_path, *cell)
    assert told.startswith("0 Unavailable")
    assert told.endswith("the file system is read only")


@pytest.mark.parametrize("seed", range(10))
def test_every_acknowledged_line_survives_kill_minus_nine(tmp_path: Path, seed: int) -> None:
    """Five kills at random moments; each file parses, and holds each acknowledged line in its place."""
    moments = random.Random(seed)
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        acknowledged = killed("append", folder, moments.uniform(0.0, 0.15))
        for name in "abcdef":
            path = folder / f"{name}.jsonl"
            kept = [json.loads(line)["number"] for line in door.read(path).splitlines()] if path.exists() else []
            assert kept == list(range(len(kept)))
            assert len(kept) >= sum(line.startswith(name) for line in acknowledged)


def killed(what: str, folder: Path, after_s: float) -> list[str]:
    """Start the child, kill it `after_s` behind its first word, and give all that it told."""
    with subprocess.Popen([sys.executable, str(CHILD), what, str(folder)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(after_s)
        child.kill()
        rest = child.stdout.read()
    told = (first + rest).decode().split("\n")
    return told[:-1]
