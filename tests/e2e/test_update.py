"""Updates by really built wheels: one that is well, one that fails its self-test, one that never gets ready."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from garra.io.lock import holder
from garra.io.store import copies
from tests.e2e.program import Program, awaited, port
from tests.e2e.resident import ROOT, free_port

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

SITE = Path(msgspec.__file__).parent.parent


def wheel(into: Path, version: str, change: dict[str, tuple[str, str]], more: dict[str, str] | None = None) -> Path:
    """A wheel of this tree as it stands, with another version, some text of it replaced, and files added."""
    changes = {"__init__.py": ('__version__ = "0.1.0"', f'__version__ = "{version}"'), **change}
    files: dict[str, bytes] = {}
    for path in sorted((ROOT / "src/garra").rglob("*")):
        name = path.relative_to(ROOT / "src/garra").as_posix()
        if path.is_file() and "__pycache__" not in path.parts:
            data = path.read_bytes()
            if name in changes:
                old, new = changes[name]
                assert old.encode() in data, name
                data = data.replace(old.encode(), new.encode())
            files[f"garra/{name}"] = data
    files |= {f"garra/{name}": text.encode() for name, text in (more or {}).items()}
    info = f"garra-{version}.dist-info"
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: garra\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\ngarra = garra.__main__:main\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]).encode()
    made = into / f"garra-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made


def environment(into: Path, of: Path) -> Path:
    """A virtual environment with that wheel, and the packages of the tests behind it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(into)], check=True)
    site = next(into.glob("lib/python*/site-packages"))
    (site / "packages.pth").write_text(f"{SITE}\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(into / "bin/python"),
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, "--disable-pip-version-check", str(of)], check=True)
    return into / "bin" / "python"


class Installed(Program):
    """A program whose version is that of an environment of its own."""

    python: Path = Path()

    def argv(self, *words: str) -> list[str]:
        return [str(self.python), "-P", "-m", "garra", *words]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    into = tmp_path_factory.mktemp("wheels")
    number = len(list((ROOT / "src/garra/io/store/migrations").glob("*.sql"))) + 1
    ready = '        with trace.step("ready"):\n'
    return {
        "old": wheel(into, "0.1.1", {}),
        "good": wheel(into, "0.1.2", {}),
        "unfit": wheel(into, "0.1.3", {"app/house.py": ("class House:", "class House(")}),
        "never": wheel(
            into,
            "0.1.4",
            {"app/resident.py": (ready, f'        raise UserError("it never gets ready")\n{ready}')},
            {f"io/store/migrations/{number:04}.sql": "CREATE TABLE of_the_new_version (x);\n"},
        ),
    }


@pytest.fixture
def program(tmp_path: Path, wheels: dict[str, Path]) -> Iterator[Installed]:
    made = Installed(tmp_path)
    made.python = environment(tmp_path / "venv", wheels["old"])
    made.configure(gateway={"port": free_port(), "auth": {"mode": "token", "token": "test-token-0123456789"}})
    with (tmp_path / "gateway.log").open("ab") as log:
        process = subprocess.Popen(
            made.argv("gateway", "run"), env=made.variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, cwd=tmp_path,
        )  # fmt: skip
    awaited(lambda: port(made) is not None, what=(tmp_path / "gateway.log").read_text)
    awaited(lambda: made.run("health", "--json").code == 0)
    yield made
    held = holder(made.state / "gateway.lock") or {}
    for pid in {held.get("pid", process.pid), process.pid}:
        if process.pid != pid or process.poll() is None:
            os.kill(pid, signal.SIGKILL)
    process.wait(10)


def running(program: Program) -> dict[str, Any]:
    return holder(program.state / "gateway.lock") or {}


def update(program: Program, file: Path, *words: str) -> Any:
    return program.run("update", "--wheel", str(file), "--reuse-packages", "--json", *words)


def test_a_good_version_takes_over_in_place_and_goes_back_on_demand(
    program: Installed, wheels: dict[str, Path]
) -> None:
    before = running(program)
    assert before["version"] == "0.1.1"
    tried = update(program, wheels["good"], "--dry-run")
    assert tried.code == 0, tried.err
    assert tried.json["to"] == "0.1.2"
    assert running(program) == before
    done = update(program, wheels["good"])
    assert done.code == 0, done.out + done.err
    assert (done.json["from"], done.json["to"], done.json["restarted"]) == ("0.1.1", "0.1.2", True)
    now = running(program)
    assert (now["version"], now["pid"], now["port"]) == ("0.1.2", before["pid"], before["port"])
    launcher = program.home / ".local/bin/garra"
    said = subprocess.run([launcher, "--version"], env=program.variables, capture_output=True, check=True).stdout
    assert re.search(rb"\b0\.1\.2\b", said)
    program.python = program.home / ".local/share/garra/current/bin/python"
    status = program.run("update", "status", "--json").json
    assert (status["version"], status["kind"], status["lastRun"]["to"]) == ("0.1.2", "versions", "0.1.2")
    back = program.run("update", "rollback", "--json")
    assert back.code == 0, back.err
    awaited(lambda: running(program).get("version") == "0.1.1")


def test_one_that_fails_its_self_test_never_takes_over(program: Installed, wheels: dict[str, Path]) -> None:
    before = running(program)
    ran = update(program, wheels["unfit"])
    assert ran.code == 1
    assert "the new version does not run here" in ran.err
    assert "Traceback" not in ran.err
    assert running(program) == before
    assert program.run("health", "--json").code == 0
    assert list((program.home / ".local/share/garra/versions").glob("*")) == []
    assert not (program.home / ".local/share/garra/current").exists()


def test_one_that_never_gets_ready_is_taken_back_with_its_database(program: Installed, wheels: dict[str, Path]) -> None:
    before, schema = running(program), copies.schema(program.state / "state.db")
    ran = update(program, wheels["never"], "--ready-within", "30")
    assert ran.code == 1, ran.out + ran.err
    report = ran.json
    assert (report["ok"], report["rolledBack"], report["running"]) == (False, True, True)
    assert report["databaseRestored"] is True
    assert "ended at its start" in report["why"]
    now = running(program)
    assert (now["version"], now["port"]) == ("0.1.1", before["port"])
    assert copies.schema(program.state / "state.db") == schema
    assert program.run("health", "--json").code == 0
    assert list((program.state / "backups").glob("state.db.after-update-*"))


def test_who_owns_the_installation_updates_it(tmp_path: Path) -> None:
    ran = Program(tmp_path).run("update", "--json")
    assert ran.code == 1
    assert ran.json["kind"] == "source"
    assert ran.json["nextAction"]


def test_one_that_is_killed_in_the_middle_changes_nothing_and_the_next_clears_up(
    program: Installed, wheels: dict[str, Path]
) -> None:
    before = running(program)
    versions = program.home / ".local/share/garra/versions"
    argv = program.argv("update", "--wheel", str(wheels["good"]), "--reuse-packages", "--json")
    first = subprocess.Popen(argv, env=program.variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        awaited(lambda: versions.is_dir() and any(versions.iterdir()))
        second = update(program, wheels["good"])
        assert second.code == 1
        assert "another update is under way" in second.err
    finally:
        first.kill()
        first.wait(10)
    assert running(program) == before
    assert program.run("health", "--json").code == 0
    left = [each.name for each in versions.iterdir()]
    done = update(program, wheels["good"])
    assert done.code == 0, done.out + done.err
    assert set(left) <= set(done.json["removed"])
    assert running(program)["version"] == "0.1.2"
