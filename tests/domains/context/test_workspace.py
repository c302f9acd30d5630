"""Files that are made once, read when they change, and never made up for lost ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from garra.core.budget import Document
from garra.core.errors import Unavailable
from garra.domains.context.workspace import HEARTBEAT, LIMIT, ORDER, Workspace, WorkspaceVanished
from garra.io.files.root import Root
from garra.testing.clock import ManualClock

HOUR = 3600.0


class Rig:
    """A workspace in a temporary folder, and a way to start anew as after a restart."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.marker = folder / "state" / "workspace.json"
        self.clock = ManualClock()
        self.workspace = self.again()

    def again(self, *, seed: bool = True) -> Workspace:
        self.workspace = Workspace(Root(self.root), self.marker, self.clock, seed=seed)
        return self.workspace

    def read(self) -> dict[str, Document]:
        return {document.name: document for document in self.workspace.read()}

    def write(self, name: str, text: str) -> None:
        """Replaced in one step, as an editor does it."""
        draft = self.root / ".draft"
        draft.write_text(text)
        draft.replace(self.root / name)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.req("COF-23")
def test_a_new_workspace_has_its_files(rig: Rig) -> None:
    found = rig.read()
    assert tuple(found) == ORDER
    for name in (*ORDER, HEARTBEAT):
        assert (rig.root / name).is_file()
    assert (rig.root / "memory").is_dir()
    assert rig.root.stat().st_mode & 0o777 == 0o700


@pytest.mark.req("COF-23", "LOOP-12")
def test_an_edit_is_seen_by_the_next_turn(rig: Rig) -> None:
    before = rig.read()
    rig.write("SOUL.md", "Be a pirate.")
    after = rig.read()
    assert after["SOUL.md"].text == "Be a pirate."
    assert after["AGENTS.md"] is before["AGENTS.md"], "what did not change is not read again"


@pytest.mark.req("LOOP-12")
def test_a_file_that_is_too_large_is_said_to_be_so(rig: Rig) -> None:
    rig.read()
    rig.write("USER.md", "x" * (LIMIT + 1))
    found = rig.read()["USER.md"]
    assert found.text is None
    assert "not read" in found.note
    assert str(LIMIT) in found.note


def test_nothing_outside_is_read_through_a_link(rig: Rig, tmp_path: Path) -> None:
    rig.read()
    secret = tmp_path / "secret"
    secret.write_text("key")
    (rig.root / "MEMORY.md").unlink()
    (rig.root / "MEMORY.md").symlink_to(secret)
    found = rig.read()["MEMORY.md"]
    assert found.text is None
    assert "symbolic link" in found.note


@pytest.mark.req("LOOP-10")
def test_names_in_any_case_and_never_overwritten(rig: Rig) -> None:
    rig.root.mkdir()
    (rig.root / "soul.md").write_text("mine\r\n")
    (rig.root / "Agents.MD").write_bytes(b"\xef\xbb\xbfrules")
    found = rig.read()
    assert found["SOUL.md"] == Document("SOUL.md", str(rig.root / "soul.md"), "mine\n")
    assert found["AGENTS.md"].text == "rules"
    assert not (rig.root / "SOUL.md").exists()
    assert "BOOTSTRAP.md" not in found, "somebody lived here already"


@pytest.mark.req("LOOP-10")
@pytest.mark.parametrize("how", ["deleted", "identity", "user"])
def test_the_first_conversation_is_had_once(rig: Rig, how: str) -> None:
    assert "BOOTSTRAP.md" in rig.read()
    if how == "deleted":
        (rig.root / "BOOTSTRAP.md").unlink()
    else:
        rig.write(f"{how.upper()}.md", "- Name: Ann")
    assert "BOOTSTRAP.md" not in rig.read()
    rig.again()
    assert "BOOTSTRAP.md" not in rig.read()
    (rig.root / "BOOTSTRAP.md").unlink(missing_ok=True)
    rig.again()
    assert "BOOTSTRAP.md" not in rig.read()
    assert not (rig.root / "BOOTSTRAP.md").exists()


def test_forms_nobody_filled_in_say_nothing(rig: Rig) -> None:
    assert {name for name, found in rig.read().items() if found.blank} == {
        "IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md",
    }  # fmt: skip
    rig.write("MEMORY.md", "The cat is called Mia.")
    assert not rig.read()["MEMORY.md"].blank


def test_a_file_somebody_deleted_stays_away(rig: Rig) -> None:
    rig.read()
    (rig.root / "TOOLS.md").unlink()
    rig.again()
    assert rig.read()["TOOLS.md"].text is None


@pytest.mark.req("LOOP-14")
async def test_a_workspace_that_vanishes_is_not_made_anew(rig: Rig) -> None:
    await rig.workspace.load()
    await rig.clock.advance(HOUR)
    moved = rig.root.rename(rig.root.with_name("elsewhere"))
    for workspace in (rig.workspace, await asyncio.to_thread(rig.again)):
        with pytest.raises(WorkspaceVanished, match=r"was there 60 minutes ago") as caught:
            await workspace.load()
        assert str(rig.marker) in caught.value.message
    assert not rig.root.exists()
    moved.rename(rig.root)
    assert len(await rig.workspace.load()) == len(ORDER)


@pytest.mark.req("LOOP-14")
async def test_after_a_day_it_is_made_anew(rig: Rig) -> None:
    await rig.workspace.load()
    await rig.clock.advance(25 * HOUR)
    rig.root.rename(rig.root.with_name("elsewhere"))
    assert "BOOTSTRAP.md" in {document.name for document in await rig.workspace.load()}


@pytest.mark.req("LOOP-14")
async def test_use_keeps_the_proof_of_life_fresh(rig: Rig) -> None:
    await rig.workspace.load()
    for _ in range(3):
        await rig.clock.advance(20 * HOUR)
        await rig.workspace.load()
    rig.root.rename(rig.root.with_name("elsewhere"))
    with pytest.raises(WorkspaceVanished):
        await rig.workspace.load()


def test_the_marker_may_be_deleted_or_broken(rig: Rig) -> None:
    rig.read()
    rig.marker.write_text("[broken")
    rig.root.rename(rig.root.with_name("elsewhere"))
    rig.again()
    assert "BOOTSTRAP.md" in rig.read()


def test_another_folder_of_the_configuration_is_another_workspace(rig: Rig) -> None:
    rig.read()
    rig.root = rig.root.with_name("second")
    rig.again()
    assert "BOOTSTRAP.md" in rig.read()


def test_a_folder_that_cannot_be_one_is_said_in_one_line(rig: Rig) -> None:
    rig.root.write_text("no folder")
    with pytest.raises(Unavailable, match=r"cannot be used: .*; see agents\.defaults\.workspace"):
        rig.read()


def test_those_who_bring_their_own_files_get_none(rig: Rig) -> None:
    rig.again(seed=False)
    assert all(found.text is None for found in rig.read().values())
    assert list(rig.root.iterdir()) == []


async def test_an_empty_heartbeat_file_asks_for_nothing(rig: Rig) -> None:
    await rig.workspace.load()
    assert await rig.workspace.heartbeat() == ""
    rig.write(HEARTBEAT, "# Heartbeat\n<!-- note -->\n- look at the mail\n")
    assert await rig.workspace.heartbeat() == "# Heartbeat\n\n- look at the mail"
