"""The state packed while its gateway runs, checked, put back; and removed as far as is said."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from pathlib import Path

import pytest

from garra.testing.model_server import Say
from tests.e2e.program import Program
from tests.e2e.resident import resident, strict_model, words

pytestmark = pytest.mark.e2e


def modes(root: Path) -> dict[str, int]:
    """Of all files that a restart does not write anew."""
    passing: tuple[str, ...] = (
        "gateway.lock",
        "logs",
        "locks",
        "backups",
        "state.db-wal",
        "state.db-shm",
        "gateway.sock",
    )
    passing += ("sessions.json",)  # a mirror, written a moment later
    return {
        str(path.relative_to(root)): stat.S_IMODE(path.lstat().st_mode)
        for path in root.rglob("*")
        if path.is_file() and not {path.relative_to(root).parts[0], path.name} & {*passing}
    }


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None
    return stream.read()


async def test_packed_while_it_runs_and_put_back_whole(tmp_path: Path) -> None:
    async with strict_model() as model, resident(tmp_path, model.url) as gateway:
        model.then(Say("kept for good"))
        async with gateway.client() as client:
            await client.say("remember")
        (gateway.state / "secrets.json").write_text('{"A": "secret"}')
        (gateway.state / "secrets.json").chmod(0o600)
        code, out, err = await gateway.run("backup", "create", "--output", str(tmp_path / "b.tar.gz"), "--json")
        assert code == 0, err
        assert any("secrets.json" in line for line in json.loads(out)["skipped"])
        whole = tmp_path / "whole.tar.gz"
        code, out, err = await gateway.run(
            "backup", "create", "--output", str(whole), "--include-secrets", "--verify", "--json"
        )
        assert code == 0, err
        assert json.loads(out)["verified"] is True
        assert stat.S_IMODE(whole.stat().st_mode) == 0o600
        before = modes(gateway.state)
        code, out, err = await gateway.run("backup", "restore", str(whole), "--yes")
        assert (code, out) == (1, "")
        assert "stop it first" in err
        model.then(Say("soon forgotten"))
        async with gateway.client() as client:
            await client.say("later")
        await gateway.stop()
        code, out, err = await gateway.run("backup", "restore", str(whole), "--yes", "--json")
        assert code == 0, err
        kept = Path(json.loads(out)["kept"])
        assert (kept / "state.db").is_file()
        assert modes(gateway.state) == before
        assert stat.S_IMODE(gateway.state.stat().st_mode) == 0o700
        await gateway.start()
        async with gateway.client() as client:
            told = await client.call("chat.history", {"sessionKey": "agent:main:main"})
            said = json.dumps(told)
            assert "kept for good" in said
            assert "soon forgotten" not in said
            model.then(Say("on we go"))
            assert words(await client.say("and now?")) == "on we go"


def test_a_damaged_or_newer_backup_changes_nothing(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.configure(gateway={"port": 18_999})
    made = program.run("backup", "create", "--json")
    assert made.code == 0, made.err
    path = Path(made.json["path"])
    assert program.run("backup", "list", "--json").json["backups"][0]["path"] == str(path)
    with tarfile.open(path) as archive:
        held = {member.name: _bytes(archive, member) for member in archive if member.isfile()}
    told = json.loads(held["manifest.json"])
    row = {**told["entries"][0], "path": "state/../x"}
    for name, change in {
        "other": {"config/garra.json": b"{}"},
        "newer": {"manifest.json": json.dumps({**told, "databaseSchema": 9_999}).encode()},
        "escape": {"manifest.json": json.dumps({**told, "entries": [row]}).encode()},
        "extra": {"state/more": b"x"},
        "none": {"manifest.json": b"{}"},
    }.items():  # fmt: skip
        bad = tmp_path / f"{name}.tar.gz"
        with tarfile.open(bad, "w:gz") as archive:
            for where, data in {**held, **change}.items():
                info = tarfile.TarInfo(where)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        before = program.config.read_bytes()
        ran = program.run("backup", "restore", str(bad), "--yes")
        assert ran.code == 1, name
        assert ran.err.count("\n") == 1, ran.err
        assert program.config.read_bytes() == before
        assert not (tmp_path / "x").exists()
    (tmp_path / "cut.tar.gz").write_bytes(path.read_bytes()[:-40])
    assert program.run("backup", "verify", str(tmp_path / "cut.tar.gz")).code == 1
    assert program.run("backup", "verify", str(path), "--json").json["ok"] is True
    assert program.run("backup", "create", "--output", str(path)).code == 1


def test_reset_and_uninstall_remove_what_they_say_and_no_more(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.configure(gateway={"port": 18_999}, agents={"defaults": {"workspace": str(tmp_path / "work")}})
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.md").write_text("mine")
    (program.state / "state.db").write_bytes(b"")
    said = program.run("reset", "--scope", "full", "--dry-run", "--json").json
    assert said["removes"] == [str(tmp_path / "work"), str(program.state)]
    assert program.config.is_file()
    assert program.run("reset").code == 1
    assert program.run("reset", "--scope", "config").code == 1, "nobody is there to be asked"
    assert program.run("reset", "--scope", "config", "--yes").code == 0
    assert not program.config.exists()
    assert (program.state / "state.db").exists()
    assert program.run("uninstall", "--state", "--yes", "--json").json["removed"] == [str(program.state)]
    assert not program.state.exists()
    assert (tmp_path / "work" / "notes.md").is_file()
    program.configure(agents={"defaults": {"workspace": str(tmp_path / "work")}})
    done = program.run("uninstall", "--all", "--yes")
    assert done.code == 0, done.err
    assert "pip uninstall garra" in done.out or "git pull" in done.out or "goes with" in done.out
    assert not (tmp_path / "work").exists()
    program.configure(agents={"defaults": {"workspace": str(tmp_path)}})
    assert program.run("reset", "--scope", "full", "--dry-run", "--json").json["removes"] == [str(program.state)]
