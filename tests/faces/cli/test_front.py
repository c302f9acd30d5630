"""Which command a line means, and what is answered without loading one."""

from __future__ import annotations

from pathlib import Path

import pytest

from garra.faces.cli import fast, table
from garra.faces.cli.version import head

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_name_of_two_words_wins() -> None:
    found = table.find(["gateway", "call", "health"])
    assert found is not None
    assert (found[0].name, found[1]) == ("gateway call", ["health"])
    found = table.find(["gateway", "--port", "1"])
    assert found is not None
    assert (found[0].name, found[1]) == ("gateway", ["--port", "1"])
    assert table.find(["nothing"]) is None
    alias = table.find(["tui"])
    assert alias is not None
    assert alias[0].name == "chat"


def test_names_are_there_once_and_short_enough_to_read() -> None:
    names = [name for row in table.COMMANDS for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert all(len(line) <= 100 for line in table.overview().splitlines())


def test_the_commit_is_found_loose_packed_detached_and_in_a_worktree(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    assert head(str(tmp_path)) == ""
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert head(str(tmp_path)) == COMMIT[:7]
    (git / "refs/heads/main").write_text(f"abcdef{COMMIT[6:]}\n")
    assert head(str(tmp_path)) == "abcdef6"
    tree, inner = tmp_path / "tree", git / "worktrees/tree"
    tree.mkdir()
    inner.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {inner}\n")
    (inner / "HEAD").write_text("ref: refs/heads/main\n")
    (inner / "commondir").write_text("../..\n")
    assert head(str(tree)) == "abcdef6"
    (git / "HEAD").write_text(COMMIT)
    assert head(str(tmp_path)) == COMMIT[:7]


@pytest.mark.req("BOOT-03")
def test_the_fast_answers(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    assert (fast.answer("--version", env) or "").startswith("Garra ")
    assert fast.answer("--help", env) == table.overview()
    assert fast.answer("status", env) is None
    assert fast.answer("--version", {**env, fast.DISABLED: "1"}) is None


@pytest.mark.req("BOOT-03")
@pytest.mark.parametrize("text", ["{plugins: {entries: {}}}", '{"$include": "./more.json"}'])
def test_help_is_not_answered_fast_when_plugins_may_have_a_say(tmp_path: Path, text: str) -> None:
    (tmp_path / ".garra").mkdir()
    file = tmp_path / ".garra" / "garra.json"
    file.write_text(text)
    assert fast.answer("--help", {"HOME": str(tmp_path)}) is None
    file.write_text("{gateway: {port: 1}}")
    assert fast.answer("--help", {"HOME": str(tmp_path)}) == table.overview()
