"""Backups that somebody made up, places that are not as usual, and ends in the middle."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from garra.config.paths import Paths, resolve
from garra.core.errors import UserError
from garra.domains.upkeep import backup, restore
from garra.domains.upkeep.backup import Wish
from garra.io.env import Environment
from garra.io.exchange import exchange
from garra.io.store.db import Database

Rows = Sequence[Mapping[str, Any]]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = resolve(Environment({"HOME": str(tmp_path / "home"), "GARRA_STATE_DIR": str(tmp_path / "state")}))
    found.state.mkdir(parents=True, mode=0o700)
    found.config_file.write_text("{}")
    return found


def made_up(path: Path, rows: Rows, files: Mapping[str, bytes], **more: Any) -> Path:
    """An archive of these files whose manifest says this."""
    told = {
        "kind": "garra-backup", "schemaVersion": 1, "createdAt": 1, "version": "0", "databaseSchema": 0,
        "secrets": False, "onlyConfig": False, "entries": list(rows), **more,
    }  # fmt: skip
    with tarfile.open(path, "w:gz") as archive:
        for name, data in {**files, "manifest.json": json.dumps(told).encode()}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def file(path: str, data: bytes, **more: Any) -> dict[str, Any]:
    return {"path": path, "kind": "file", "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), **more}


BAD: dict[str, tuple[Rows, Mapping[str, bytes]]] = {
    "a name that leads out": ([file("state/../../x", b"x")], {"state/../../x": b"x"}),
    "an absolute name": ([file("/etc/x", b"x")], {"/etc/x": b"x"}),
    "a name with a zero": ([file("state/a\0b", b"x")], {"state/ab": b"x"}),
    "a name with an escape": ([file("state/a\x1b[2J", b"x")], {}),
    "another place": ([file("home/x", b"x")], {"home/x": b"x"}),
    "a file below a link": (
        [{"path": "state/a", "kind": "link", "target": "/tmp"}, file("state/a/b", b"x")],
        {"state/a/b": b"x"},
    ),
    "a link below a link": (
        [
            {"path": "state/a", "kind": "link", "target": "OUT"},
            {"path": "state/a/authorized_keys", "kind": "link", "target": "/dev/null"},
        ],
        {},
    ),
    "a folder below a link": (
        [{"path": "state/a", "kind": "link", "target": "OUT"}, {"path": "state/a/b", "kind": "folder"}],
        {},
    ),
    "a file below a file": ([file("state/a", b"x"), file("state/a/b", b"x")], {"state/a": b"x"}),
    "a name twice": ([file("state/a", b"x"), file("state/a", b"x")], {"state/a": b"x"}),
    "rights beyond rights": ([file("state/a", b"x", mode=0o4755)], {"state/a": b"x"}),
    "a size that is not so": ([{**file("state/a", b"xy"), "size": 1}], {"state/a": b"xy"}),
    "more than the disk holds": ([{**file("state/a", b"x"), "size": 1 << 60}], {"state/a": b"x"}),
    "an unknown kind": ([{"path": "state/a", "kind": "device"}], {}),
    "no kind": ([{"path": "state/a"}], {}),
    "a path that is a number": ([{"path": 1, "kind": "file"}], {}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_hostile_backup_is_refused_and_touches_nothing(paths: Paths, tmp_path: Path, name: str) -> None:
    rows, files = BAD[name]
    out = tmp_path / "out"
    out.mkdir(mode=0o755)
    rows = [{**row, "target": str(out)} if row.get("target") == "OUT" else row for row in rows]
    archive = made_up(tmp_path / "bad.tar.gz", rows, files)
    before = {str(path): path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UserError):
        restore.restore(paths, archive)
    after = {str(path): path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert {**after, str(paths.lock): 0} == {**before, str(paths.lock): 0}
    assert not list(out.iterdir())
    assert stat.S_IMODE(out.stat().st_mode) == 0o755
    assert not list(tmp_path.glob(".state.restoring-*"))


def test_a_member_that_is_no_file_is_refused(paths: Paths, tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
        archive = made_up(tmp_path / "good.tar.gz", [file("state/a", b"")], {})
        bad = tmp_path / f"{kind!r}.tar.gz"
        with tarfile.open(archive) as old, tarfile.open(bad, "w:gz") as new:
            info = tarfile.TarInfo("state/a")
            info.type, info.linkname = kind, "/etc/passwd"
            new.addfile(info)
            for member in old:
                new.addfile(member, old.extractfile(member))
        with pytest.raises(UserError, match="not in its manifest"):
            restore.unpack(bad, tmp_path / "x")


def test_a_workspace_keeps_every_file_whatever_its_name(paths: Paths, tmp_path: Path) -> None:
    work = paths.state / "workspace"
    (work / "credentials").mkdir(parents=True)
    names = ["uv.lock", "travel-journal", "a.draft", "secrets.md", "credentials/notes.md", "gateway.lock"]
    for name in names:
        (work / name).write_text(name)
    (paths.state / "state.db-wal").write_bytes(b"")
    (work / "run.sh").write_text("#!/bin/sh")
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("/somewhere/else")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "note.md").write_text("far away")
    archive = tmp_path / "b.tar.gz"
    with pytest.raises(UserError, match="lies in what is packed"):
        backup.create(paths, elsewhere / "b.tar.gz", Wish(outside=(elsewhere,)))
    made = backup.create(paths, archive, Wish(outside=(elsewhere,)))
    assert made.skipped == []
    restored = restore.restore(paths, archive)
    assert [(work / name).read_text() for name in names] == names
    assert stat.S_IMODE((work / "run.sh").stat().st_mode) == 0o755
    assert str((work / "link").readlink()) == "/somewhere/else"
    assert restored.outside == ((str(paths.state / "restored" / "0"), str(elsewhere)),)
    assert (paths.state / "restored" / "0" / "deep" / "note.md").read_text() == "far away"


def logins(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT body FROM auth_profiles").fetchall()


def test_without_secrets_no_login_is_packed(paths: Paths, tmp_path: Path) -> None:
    db = Database(paths.db)
    db.write_now(
        lambda c: c.execute("INSERT INTO auth_profiles VALUES ('', 'a', 'p', 'oauth', '{\"t\":\"hush-hush\"}', 1, 1)")
    )
    db.close_now()
    for secrets in (False, True):
        archive = tmp_path / f"{secrets}.tar.gz"
        backup.create(paths, archive, Wish(secrets=secrets))
        restore.unpack(archive, tmp_path / f"{secrets}")
        found = tmp_path / f"{secrets}" / "state" / "state.db"
        assert bool(logins(found)) is secrets
        assert (b"hush-hush" in found.read_bytes()) is secrets
    assert logins(paths.db)


def test_what_goes_on_stays_and_what_was_there_is_kept(paths: Paths, tmp_path: Path) -> None:
    (paths.state / "old.txt").write_text("old")
    archive = tmp_path / "b.tar.gz"
    backup.create(paths, archive, Wish())
    (paths.state / "old.txt").write_text("new")
    for name in restore.GOES_ON:
        (paths.state / name).mkdir()
        (paths.state / name / "x").write_text(name)
    done = restore.restore(paths, archive)
    assert done.kept is not None
    assert (Path(done.kept) / "old.txt").read_text() == "new"
    assert (paths.state / "old.txt").read_text() == "old"
    assert [(paths.state / name / "x").read_text() for name in restore.GOES_ON] == list(restore.GOES_ON)


VOLUME = """
import sys
from pathlib import Path
from garra.config.paths import resolve
from garra.domains.upkeep import backup, restore
from garra.io.env import Environment
paths = resolve(Environment({"HOME": "/tmp", "GARRA_STATE_DIR": "/volume"}))
done = restore.restore(paths, Path("/volume/backups/b.tar.gz"))
print(done.kept)
"""


@pytest.mark.needs("bwrap")
def test_a_volume_is_restored_where_it_hangs(paths: Paths) -> None:
    (paths.state / "old.txt").write_text("old")
    backup.create(paths, paths.state / "backups" / "b.tar.gz", Wish())
    (paths.state / "old.txt").write_text("new")
    (paths.state / "later.txt").write_text("later")
    argv = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/run", "--bind", str(paths.state), "/run/v"]
    code = VOLUME.replace("/volume", "/run/v").replace('"HOME": "/tmp"', '"HOME": "/run"')
    done = subprocess.run([*argv, "--", sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kept = paths.state / Path(done.stdout.strip()).name
    assert (paths.state / "old.txt").read_text() == "old"
    assert (kept / "later.txt").read_text() == "later"
    assert (paths.state / "backups" / "b.tar.gz").is_file()
    assert not list(paths.state.glob(".*restoring*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from garra.config.paths import resolve
from garra.domains.upkeep import restore
from garra.io.env import Environment
at, state, archive = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
paths = resolve(Environment({"HOME": state + "/..", "GARRA_STATE_DIR": state}))
count = 0
def watch(event, args):
    global count
    if event in ("open", "os.rename", "os.mkdir", "os.symlink", "os.chmod", "shutil.rmtree", "ctypes.dlsym"):
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
restore.restore(paths, archive)
print(count)
"""


def test_killed_anywhere_there_is_a_whole_state(paths: Paths, tmp_path: Path) -> None:
    """The old one or the new one; and the same command once more makes it the new one, and clears up."""
    (paths.state / "a.txt").write_text("old")
    (paths.state / "b.txt").write_text("old")
    archive = tmp_path / "b.tar.gz"
    backup.create(paths, archive, Wish())

    def run(at: int) -> int:
        argv = [sys.executable, "-c", KILLED, str(at), str(paths.state), str(archive)]
        return subprocess.run(argv, capture_output=True, text=True, check=False).returncode

    for name in ("a.txt", "b.txt"):
        (paths.state / name).write_text("new")
    dead = 0
    for at in (*range(1, 400, 23), 10_000):
        code = run(at)
        dead += code != 0
        found = {(paths.state / name).read_text() for name in ("a.txt", "b.txt")}
        assert found in ({"old"}, {"new"}), at
        for name in ("a.txt", "b.txt"):
            (paths.state / name).write_text("new")
    assert run(10_000) == 0
    assert dead
    assert {(paths.state / name).read_text() for name in ("a.txt", "b.txt")} == {"old"}
    assert not list(tmp_path.glob(".state.restoring-*"))


def test_two_folders_change_places(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "x").write_text("")
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "x").exists()
    with pytest.raises(OSError, match="No such file"):
        exchange(tmp_path / "a", tmp_path / "none")


@pytest.mark.needs("bwrap")
def test_a_full_disk_is_said_in_a_line_and_leaves_nothing(paths: Paths, tmp_path: Path) -> None:
    (paths.state / "large").write_bytes(os.urandom(3 << 20))
    code = (
        "import sys\nfrom pathlib import Path\nfrom garra.faces.cli.backup import run\n"
        "from garra.core.errors import GarraError\n"
        "try: run(['create', '--output', '/run/b.tar.gz'])\n"
        "except GarraError as fault: print(fault.message)\n"
        "print(sorted(path.name for path in Path('/run').iterdir()))"
    )
    argv = ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 20), "--tmpfs", "/run", "--setenv",
            "GARRA_STATE_DIR", str(paths.state), "--", sys.executable, "-c", code]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0].startswith("no backup was made: "), done.stdout + done.stderr
    assert "No space left" in done.stdout
    assert done.stdout.splitlines()[1] == "[]"
