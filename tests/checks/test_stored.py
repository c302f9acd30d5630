"""What the doctor finds in what is kept: the database, transcripts, the workspace, the service, the port."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from garra.config.load import load
from garra.domains.upkeep import backup
from garra.domains.upkeep.service import Installed
from garra.io import lock
from garra.io.clock import SystemClock
from garra.io.process.listening import listener
from garra.io.store import damage
from garra.io.store.db import Connection, Database
from garra.runs import ground
from tests.checks.test_checks import Installation

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def here(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def filled(here: Installation) -> Path:
    """A database with enough in it that some of it can be broken."""

    def fill(connection: Connection) -> None:
        connection.execute("CREATE TABLE filling (name TEXT)")
        connection.execute("CREATE INDEX filled ON filling (name)")
        connection.executemany("INSERT INTO filling VALUES (?)", [(f"row {number}",) for number in range(2_000)])

    database = Database(here.paths.db)
    database.write_now(fill)
    database.write_now(lambda connection: connection.execute("DELETE FROM filling WHERE name = 'row 7'"))
    database.close_now()
    return here.paths.db


def test_a_whole_database_is_well_and_none_is_no_fault(here: Installation) -> None:
    assert not here.found("stored")
    filled(here)
    (found,) = here.found("stored")
    assert (found.level, found.what) == ("ok", "the state database is whole")


def test_a_broken_database_names_the_newest_backup(here: Installation) -> None:
    file = filled(here)
    here.write("{}")
    kept = here.paths.state / "backups" / "1-garra-backup.tar.gz"
    with file.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"x" * 8192)
    (found,) = here.faults("stored")
    assert (found.level, found.mend) == ("bad", None)
    assert "move it away" in found.how
    whole = file.read_bytes()
    file.unlink()
    backup.create(here.paths, kept, backup.Wish())
    file.write_bytes(whole)
    (found,) = here.faults("stored")
    assert f"garra backup restore {kept}" in found.how


def test_an_index_is_made_anew_and_the_file_kept(here: Installation) -> None:
    file = filled(here)

    def spoil(connection: Connection) -> None:
        """The index is said to hold only some rows, and holds all."""
        connection.execute("PRAGMA writable_schema=ON")
        partial = "CREATE INDEX filled ON filling (name) WHERE name > 'row 5'"
        connection.execute("UPDATE sqlite_master SET sql=? WHERE name='filled'", (partial,))
        connection.execute("PRAGMA writable_schema=OFF")

    database = Database(file)
    database.write_now(spoil)
    database.close_now()
    (found,) = here.faults("stored")
    assert "index" in found.what
    assert found.mend is not None
    assert "kept as" in found.mend()
    assert damage.damage(file) == ""
    assert file.with_name("state.db.damaged").is_file()


def test_a_running_gateway_is_not_read_from_beside(here: Installation) -> None:
    filled(here)
    with lock.acquire(here.paths.lock, {"pid": os.getpid(), "port": 1}):
        assert not here.found("stored")


def test_half_a_line_is_cut_and_nothing_else(here: Installation) -> None:
    folder = here.paths.agents / "main" / "sessions"
    folder.mkdir(parents=True)
    (folder / "whole.jsonl").write_text('{"a": 1}\n')
    (folder / "torn.jsonl").write_text('{"a": 1}\n{"b":')
    (folder / "empty.jsonl").write_text("")
    (found,) = here.faults("stored")
    assert (found.level, found.where) == ("note", str(folder / "torn.jsonl"))
    assert found.mend is not None
    assert found.mend() == "cut a half line off 1 transcript"
    assert (folder / "torn.jsonl").read_text() == '{"a": 1}\n'
    assert not here.faults("stored")


def test_a_workspace_that_is_gone_is_told_and_made(here: Installation) -> None:
    assert not here.faults("workspace")
    folder = ground.furnish(here.paths, load(here.paths, here.env).config, SystemClock())
    assert not here.faults("workspace")
    folder.rename(folder.with_name("elsewhere"))
    (found,) = here.faults("workspace")
    assert (found.level, found.where) == ("bad", str(folder))
    assert found.mend is not None
    assert "made a new workspace" in found.mend()
    assert (folder / "SOUL.md").is_file()


def test_a_service_file_of_before_is_told_and_written_anew(here: Installation) -> None:
    assert not here.found("service")
    plan = Installed(here.paths, here.env).plan()
    unit = Path(plan.files[0].path)
    unit.parent.mkdir(parents=True)
    unit.write_text(plan.files[0].text.replace("PATH=/usr/bin:/bin", "PATH=/other"))
    assert [found.level for found in here.found("service")] == ["ok"]
    unit.write_text(plan.files[0].text + "# of before\n")
    (found,) = here.faults("service")
    assert "as it would be written today" in found.what
    assert found.mend is not None
    assert str(unit) in found.mend()
    assert unit.read_text() == plan.files[0].text
    assert "# of before" in unit.with_name(f"{unit.name}.before").read_text()
    unit.write_text("[Service]\nExecStart=/elsewhere/bin/python -m garra gateway run\n")
    (found,) = here.faults("service")
    assert ("another installation" in found.what, found.mend) == (True, None)


def test_who_has_the_port_is_named(here: Installation) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        here.write(f'{{"gateway": {{"port": {port}}}}}')
        (found,) = here.faults("gateway")
        assert f"(process {os.getpid()})" in found.what
        assert f"gateway.port {port + 1}" in found.how
    assert listener(port) is None
