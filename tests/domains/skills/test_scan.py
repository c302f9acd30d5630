"""Skills on a real disk: who shadows whom, what a link brings in, and that nothing is read twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from garra.core.skills import World
from garra.domains.skills.scan import COUNT, LIMIT, Skills, sources

WORLD = World(lambda name: name == "git", lambda _: False, lambda _: False)


def put(folder: Path, name: str, text: str = "") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or f"---\nname: {name}\ndescription: from {folder.name}\n---\n")
    return path


class Rig:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.workspace = home / "ws" / "skills"
        self.managed = home / "managed"
        self.bundled = home / "bundled"
        self.skills = Skills(sources(home / "ws", self.managed, self.bundled, [home / "extra"]))

    def found(self) -> dict[str, str]:
        return {one.skill.name: one.skill.description for one in self.skills.scan(WORLD)}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.mark.req("EXT-10")
def test_the_workspace_shadows_the_managed_shadows_the_bundled(rig: Rig) -> None:
    for folder in (rig.home / "extra", rig.bundled, rig.managed, rig.workspace):
        put(folder, folder.name)
        put(folder, "all")
        assert rig.found()["all"] == f"from {folder.name}"
    assert set(rig.found()) == {"all", "extra", "bundled", "managed", "skills"}


@pytest.mark.req("EXT-10", "COF-21")
async def test_a_linked_folder_is_found(rig: Rig) -> None:
    put(rig.home / "elsewhere", "linked")
    rig.managed.mkdir()
    (rig.managed / "linked").symlink_to(rig.home / "elsewhere" / "linked")
    lines = await asyncio.to_thread(rig.skills.lines, WORLD, str(rig.home))
    assert [one.line for one in lines] == ["- linked: from elsewhere (~/managed/linked/SKILL.md)"]


@pytest.mark.req("EXT-10")
def test_what_is_missing_is_said(rig: Rig) -> None:
    put(rig.managed, "a", '---\nname: a\nmetadata: {"openclaw": {"requires": {"bins": ["git", "gh"]}}}\n---\n')
    (judged,) = rig.skills.scan(WORLD)
    assert judged.reasons == ("missing program: gh",)


def test_a_change_is_seen_and_what_did_not_change_is_kept(rig: Rig) -> None:
    first, second = put(rig.managed, "a"), put(rig.managed, "b")
    before = {one.skill.name: one.skill for one in rig.skills.scan(WORLD)}
    first.write_text("---\nname: a\ndescription: other words\n---\n")
    after = {one.skill.name: one.skill for one in rig.skills.scan(WORLD)}
    assert after["a"].description == "other words"
    assert after["b"] is before["b"]
    second.unlink()
    assert set(rig.found()) == {"a"}


def test_folders_within_folders_circles_and_odd_files(rig: Rig) -> None:
    put(rig.managed / "group" / "deeper", "nested")
    put(rig.managed / "nested-in" / "a" / "b" / "c" / "d", "too-deep")
    put(rig.managed / ".hidden", "hidden")
    put(rig.managed / "node_modules", "module")
    put(rig.managed, "inner", "---\nname: outer\n---\n")
    put(rig.managed / "inner", "not-searched")
    put(rig.managed, "huge", "x" * (LIMIT + 1))
    (rig.managed / "circle").symlink_to(rig.managed)
    (rig.managed / "broken").symlink_to(rig.managed / "nowhere")
    assert set(rig.found()) == {"nested", "outer"}


def test_no_folder_is_no_fault(rig: Rig) -> None:
    assert rig.found() == {}


def test_there_is_an_end_to_how_many(rig: Rig) -> None:
    for number in range(COUNT + 5):
        put(rig.managed, f"s{number}")
    assert len(rig.found()) == COUNT


def test_links_in_the_workspace_open_nothing(rig: Rig) -> None:
    put(rig.home / "elsewhere", "secret")
    rig.workspace.mkdir(parents=True)
    (rig.workspace / "linked").symlink_to(rig.home / "elsewhere" / "secret")
    (rig.workspace / "file").mkdir()
    (rig.workspace / "file" / "SKILL.md").symlink_to(rig.home / "elsewhere" / "secret" / "SKILL.md")
    assert rig.found() == {}
    put(rig.workspace, "real")
    assert set(rig.found()) == {"real"}
