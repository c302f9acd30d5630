"""Lines of files of memory, and of no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.core.errors import NotFound
from garra.core.memory_sight import Viewer
from garra.core.taint import Mark
from garra.domains.memory.reading import get
from garra.domains.memory.sources import Extra
from tests.domains.memory.year import note, places

OWNER = Viewer("agent:main:main", owner=True)
ANN = Viewer("agent:main:telegram:default:direct:1", "telegram:default:1")


async def test_lines_are_read_by_their_numbers(tmp_path: Path) -> None:
    where = places(tmp_path)
    note(tmp_path, "MEMORY.md", "one\ntwo\nthree\n")
    assert (await get(where, "MEMORY.md", OWNER)).text == "one\ntwo\nthree"
    found = await get(where, "./MEMORY.md#L2", OWNER, first=2, lines=1)
    assert found.json == {"path": "MEMORY.md", "from": 2, "text": "two", "totalLines": 3}
    assert (await get(where, "MEMORY.md", OWNER, first=9)).text == ""
    note(tmp_path, "memory/empty.md", "")
    assert (await get(where, "memory/empty.md", OWNER)).text == ""


@pytest.mark.parametrize(
    "path", ["../secret.md", "AGENTS.md", "/etc/passwd", "memory/../../secret.md", "memory/link.md", "", "memory",
             "sessions/a.jsonl"],
)  # fmt: skip
async def test_no_other_file_is_read(tmp_path: Path, path: str) -> None:
    where = places(tmp_path)
    (tmp_path / "secret.md").write_text("secret")
    note(tmp_path, "AGENTS.md", "secret")
    (tmp_path / "sessions" / "a.jsonl").write_text("secret")
    (tmp_path / "work" / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(NotFound, match="no file of memory"):
        await get(where, path, OWNER)


async def test_paths_of_the_owner_are_read(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("x")
    where = places(tmp_path, Extra(str(tmp_path / "notes")))
    assert (await get(where, str(tmp_path / "notes" / "a.md"), OWNER)).text == "x"


async def test_somebody_else_reads_own_lines_alone(tmp_path: Path) -> None:
    where = places(tmp_path)
    note(tmp_path, "MEMORY.md", "the owner's\n")
    note(
        tmp_path,
        "memory/2026-05-02.md",
        "the owner's\n<!-- from a conversation with telegram:default:1 that read a page -->\nann's\n",
    )
    with pytest.raises(NotFound):
        await get(where, "MEMORY.md", ANN)
    found = await get(where, "memory/2026-05-02.md", ANN)
    assert found.text.splitlines()[-1] == "ann's"
    assert "owner" not in found.text
    assert found.marks == (Mark("memory", "memory/2026-05-02.md"),)
    mine = await get(where, "memory/2026-05-02.md", OWNER)
    assert mine.text.strip() == "the owner's"
