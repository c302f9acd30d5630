"""The file door: nothing leaves the folder, whatever a path says or a link points to."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from garra.core.errors import ToolFailed
from garra.io.files.root import Root

SECRET = b"the owner's"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Root:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "plain").write_bytes(b"text")
    (folder / "leaf").symlink_to(outside / "secret")
    (folder / "dangling").symlink_to(outside / "new")
    (folder / "parent").symlink_to(outside)
    (folder / "sub" / "up").symlink_to("..")
    os.link(outside / "secret", folder / "hard")
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    return Root(folder)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def bad_paths(root: Root, outside: Path) -> list[str]:
    return [
        "../outside/secret", "sub/../../outside/secret", "sub/..", "..", f"{root.root}/../outside/secret",
        str(outside / "secret"), "/etc/passwd", "//etc/passwd", f"{root.root}2/x", "~/x", "~root/x", "~",
        "a\0b", "\0", "file:///etc/passwd", "file:/etc/passwd", "FILE://x", "http://a/b", "\\\\host\\share",
        "leaf", "dangling", "parent/secret", "parent/new", "sub/up/plain", "hard", "pipe", "device", "plain/x",
        "x" * 300,
    ]  # fmt: skip


def test_what_is_closed_is_not_there_for_tools(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".garra" / "agents").mkdir(parents=True)
    (home / ".garra" / "garra.json").write_bytes(SECRET)
    (home / "deep").mkdir()
    (home / "deep" / "key").write_bytes(SECRET)
    (home / "open").write_bytes(b"text")
    (home / ".garrard").write_bytes(b"text")
    (tmp_path / "link").symlink_to(home)
    root = Root(tmp_path / "link", [home / ".garra", home / "deep" / "key", home / "absent", "/etc/passwd"])
    for path in (".garra/garra.json", ".GARRA/garra.json", f"{home}/.garra/garra.json", "deep/key", "./.garra//x"):
        for act in (lambda p: root.read(p, 99), lambda p: root.write(p, b"x"), root.remove, root.entries, root.stat):
            with pytest.raises(ToolFailed, match="own"):
                act(path)
    for moved in (".garra", "deep", ""):
        with pytest.raises(ToolFailed, match="own"):
            root.rename(moved, "elsewhere")
    with pytest.raises(ToolFailed, match="own"):
        root.rename("open", "absent")
    assert [found.path for found in root.entries("")] == [".garrard", "deep", "open"]
    assert [found.path for found in root.walk("", 99)] == [".garrard", "open"]
    assert ((home / ".garra" / "garra.json").read_bytes(), root.read(".garrard", 9)) == (SECRET, b"text")


def test_no_bad_path_is_read_written_or_followed(root: Root, outside: Path) -> None:
    for path in bad_paths(root, outside):
        with pytest.raises(ToolFailed):
            root.read(path, 1_000)
        with pytest.raises(ToolFailed):
            root.read_range(path, 0, 10)
        with pytest.raises(ToolFailed):
            root.write(path, b"evil")
        with pytest.raises(ToolFailed):
            root.rename(path, "taken")
        with pytest.raises(ToolFailed):
            root.rename("plain", path)
    assert names(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == SECRET
    assert root.read("plain", 10) == b"text"


def test_folders_behind_links_are_not_entered(root: Root) -> None:
    for path in ("parent", "sub/up", "..", "/", "/etc"):
        with pytest.raises(ToolFailed):
            root.entries(path)
        with pytest.raises(ToolFailed):
            root.walk(path, 10)
    assert [found.path for found in root.walk("", 100)] == ["hard", "plain"]
    kinds = {found.path: found.kind for found in root.entries("")}
    assert (kinds["leaf"], kinds["parent"], kinds["sub"], kinds["pipe"]) == ("link", "link", "folder", "other")


def test_a_link_may_be_removed_not_what_it_names(root: Root, outside: Path) -> None:
    root.remove("leaf")
    root.remove("parent")
    root.remove("hard")
    assert (outside / "secret").read_bytes() == SECRET


def test_reading(root: Root) -> None:
    assert root.read("plain", 4) == root.read("./plain", 4) == root.read(f"{root.root}/plain", 4) == b"text"
    assert root.read_range("plain", 1, 2) == (b"ex", 4)
    with pytest.raises(ToolFailed, match="4 bytes, more than the 3"):
        root.read("plain", 3)
    with pytest.raises(ToolFailed, match="no such file"):
        root.read("absent", 3)
    with pytest.raises(ToolFailed, match="it is a folder"):
        root.read("sub", 3)
    with pytest.raises(ToolFailed, match="the workspace itself"):
        root.read("", 3)


def test_writing_replaces_and_keeps_the_mode(root: Root) -> None:
    path = Path(root.root) / "plain"
    path.chmod(0o755)
    before = path.stat().st_ino
    root.write("plain", b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777, path.stat().st_ino != before) == (b"new", 0o755, True)
    root.write("made/on/the/way.txt", b"x")
    assert root.read("made/on/the/way.txt", 9) == b"x"
    with pytest.raises(ToolFailed, match="it is a folder"):
        root.write("sub", b"x")
    assert not [found for found in root.walk("", 100) if found.path.endswith(".part")]


def test_a_socket_is_no_file(root: Root) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{root.root}/s")
        with pytest.raises(ToolFailed):
            root.read("s", 10)
        with pytest.raises(ToolFailed, match="no plain file"):
            root.write("s", b"x")


def test_moving_and_removing(root: Root) -> None:
    root.rename("plain", "sub/moved")
    assert root.stat("plain") is None
    assert root.stat("plain/x") is None
    found = root.stat("sub/moved")
    assert found is not None
    assert (found.path, found.kind, found.size) == ("sub/moved", "file", 4)
    with pytest.raises(ToolFailed, match="not empty"):
        root.remove("sub")
    root.remove("sub/moved")
    root.remove("sub/up")
    root.remove("sub")
    with pytest.raises(ToolFailed, match="no such file"):
        root.remove("sub")
    assert root.stat("") is not None


def test_walking_is_bounded_and_skips(root: Root) -> None:
    for name in ("a/1", "a/2", "b/3", ".git/4"):
        root.write(name, b"")
    assert len(root.walk("", 2)) == 2
    assert [found.path for found in root.walk("", 99, {".git"})] == ["hard", "plain", "a/1", "a/2", "b/3"]
    assert [found.path for found in root.walk("a", 99)] == ["a/1", "a/2"]


def test_a_workspace_that_is_itself_a_link_is_the_owners_choice(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to("real")
    root = Root(tmp_path / "named")
    root.write(str(tmp_path / "named" / "f"), b"x")
    assert root.read(str(tmp_path / "real" / "f"), 9) == b"x"


def test_a_workspace_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="is gone"):
        Root(tmp_path / "never").entries("")


def test_swapping_a_folder_for_a_link_meanwhile_leads_nowhere(root: Root, outside: Path) -> None:
    """A folder is exchanged for a link to the outside all the time; no write or read ever lands there."""
    work, stop = Path(root.root), threading.Event()

    def flip() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                (work / "flip").symlink_to(outside)
            with contextlib.suppress(OSError):
                (work / "flip").unlink()
            with contextlib.suppress(OSError):
                (work / "flip").mkdir()
            shutil.rmtree(work / "flip", ignore_errors=True)

    flipping = threading.Thread(target=flip)
    flipping.start()
    refused = 0
    try:
        for _ in range(2_000):
            try:
                root.write("flip/new", b"evil")
                root.read("flip/secret", 99)
            except ToolFailed:
                refused += 1
    finally:
        stop.set()
        flipping.join()
    assert refused
    assert names(outside) == ["secret"]
