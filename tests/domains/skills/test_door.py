"""Skills outside the workspace can be read, and nothing else, and never written."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.core.errors import ToolFailed
from garra.core.skills import World
from garra.domains.skills.door import Door
from garra.domains.skills.scan import Skills, sources
from garra.io.files.root import Root

WORLD = World(lambda _: True, lambda _: True, lambda _: True)


@pytest.fixture
def door(tmp_path: Path) -> Door:
    workspace, managed = tmp_path / "state" / "workspace", tmp_path / "state" / "skills"
    elsewhere = tmp_path / "elsewhere" / "gh"
    for folder in (workspace, managed / "plain" / "scripts", elsewhere):
        folder.mkdir(parents=True)
    (workspace / "notes.txt").write_text("notes")
    (managed / "plain" / "SKILL.md").write_text("plain")
    (managed / "plain" / "scripts" / "run.sh").write_text("echo")
    (managed / "loose.txt").write_text("loose")
    (elsewhere / "SKILL.md").write_text("linked")
    (elsewhere / "out").symlink_to(tmp_path)
    (managed / "gh").symlink_to(elsewhere)
    skills = Skills(sources(workspace, managed))
    skills.scan(WORLD)
    return Door(Root(workspace), skills.folders, str(tmp_path))


@pytest.mark.req("EXT-10", "COF-21")
def test_a_listed_path_can_be_read(door: Door, tmp_path: Path) -> None:
    assert door.read("~/state/skills/gh/SKILL.md", 100) == b"linked"
    assert door.read(f"{tmp_path}/state/skills/plain/scripts/run.sh", 100) == b"echo"
    assert door.read_range("~/state/skills/plain/SKILL.md", 1, 3) == (b"lai", 5)
    folder = f"{tmp_path}/state/skills/plain"
    assert [found.path for found in door.entries("~/state/skills/plain")] == [f"{folder}/SKILL.md", f"{folder}/scripts"]
    assert [found.path for found in door.walk(folder, 9)] == [f"{folder}/SKILL.md", f"{folder}/scripts/run.sh"]
    found = door.stat(f"{folder}/SKILL.md")
    assert found is not None
    assert found.path == f"{folder}/SKILL.md"
    assert door.stat(f"{folder}/none") is None


def test_the_workspace_is_as_before(door: Door) -> None:
    assert door.read("notes.txt", 100) == b"notes"
    assert door.read(f"{door.root}/notes.txt", 100) == b"notes"
    assert [found.path for found in door.entries("")] == ["notes.txt"]
    door.write("a.txt", b"a")
    door.rename("a.txt", "b.txt")
    door.remove("b.txt")
    assert door.stat("b.txt") is None


@pytest.mark.parametrize(
    "path",
    [
        "~/state/skills/loose.txt",
        "~/elsewhere/gh/SKILL.md",
        "~/state/skills/plain/../loose.txt",
        "~/state/skills/gh/out/elsewhere/gh/SKILL.md",
        "/etc/passwd",
        "~",
    ],
)
def test_nothing_else_is(door: Door, path: str) -> None:
    with pytest.raises(ToolFailed):
        door.read(path, 100)


def test_nothing_is_written_there(door: Door) -> None:
    with pytest.raises(ToolFailed):
        door.write("~/state/skills/plain/SKILL.md", b"x")
    with pytest.raises(ToolFailed):
        door.remove("~/state/skills/plain/SKILL.md")
    with pytest.raises(ToolFailed):
        door.rename("notes.txt", "~/state/skills/plain/notes.txt")


class Listening:
    def __init__(self) -> None:
        self.heard_of: list[str] = []
        self.written: list[str] = []

    def heard(self, folder: str) -> None:
        self.heard_of.append(folder)

    def wrote(self, path: str) -> None:
        self.written.append(path)


def test_who_listens_hears_of_skills_that_are_read_and_of_what_is_written(tmp_path: Path) -> None:
    workspace, managed = tmp_path / "workspace", tmp_path / "skills"
    for folder in (workspace / "skills" / "own", managed / "plain"):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("x")
    (workspace / "SKILL.md").write_text("none")
    (managed / "plain" / "more.md").write_text("x")
    skills = Skills(sources(workspace, managed))
    skills.scan(WORLD)
    by = Listening()
    door = Door(Root(workspace), skills.folders, str(tmp_path), by)
    door.read("~/skills/plain/more.md", 9)
    door.read("SKILL.md", 9)
    assert by.heard_of == []
    door.read("~/skills/plain/SKILL.md", 9)
    door.read_range("skills/own/SKILL.md", 0, 9)
    assert by.heard_of == [str(managed / "plain"), str(workspace / "skills" / "own")]
    door.write("a", b"")
    door.rename("a", "b")
    door.remove("b")
    assert by.written == ["a", "b", "b"]
    assert skills.at(str(managed / "plain")) is not None
    assert skills.at("/none") is None
    assert skills.names() == {"plain", "own"}
