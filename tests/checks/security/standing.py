"""Installations for the audit, built from fixtures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyjson5

from garra.domains.exec import approvals_rules
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf

FIXTURES = Path(__file__).parent / "fixtures"
WORDS = {
    "$LONG": "a-long-random-token-0123456789abcdef",
    "$OTHER": "another-long-random-token-9876543210",
    "$PARROT": 'id = "parrot"\nkind = "tool"\nname = "Parrot"\nmodule = "main:Parrot"\n',
    "$HUGE": "x = 1\n" * 200_000,
}


@cache
def fixtures() -> Mapping[str, Mapping[str, Any]]:
    """Every check's two installations, by its id."""
    found: dict[str, Any] = {}
    for file in sorted(FIXTURES.glob("*.json5")):
        rows = pyjson5.decode(file.read_text())
        assert not found.keys() & rows.keys()
        found |= rows
    return found


def expected(check_id: str) -> set[str]:
    """All that is found of the bad one, beside what is only to know."""
    also = set(fixtures()[check_id]["bad"].get("also", ()))
    return {check_id.replace("<channel>", "discord" if "name_matching" in check_id else "telegram"), *also}


@dataclass(frozen=True)
class Built:
    """An installation on the disk, and what its variables are."""

    home: Path
    state: Path
    env: dict[str, str]

    @property
    def deep(self) -> bool:
        return (self.home / "deep").exists()


def build(home: Path, told: Mapping[str, Any]) -> Built:
    """Put one there: everything closed to others, but for what the fixture opens."""
    real = home / told.get("below", "") / (".real" if told.get("linked") else ".garra")
    real.mkdir(parents=True, mode=0o700)
    state = home / ".garra"
    if told.get("linked"):
        state.symlink_to(real)
    if told.get("deep"):
        (home / "deep").touch()
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    env |= {name: WORDS.get(value, value) for name, value in told.get("env", {}).items()}
    if "below" in told:
        env["GARRA_STATE_DIR"] = str(real)
        state = real
    _write(home, real, told)
    return Built(home, state, env)


def _write(home: Path, state: Path, told: Mapping[str, Any]) -> None:
    text = json.dumps(told.get("config", {}))
    for word, value in WORDS.items():
        text = text.replace(word, json.dumps(value)[1:-1])
    _file(state / "garra.json", text)
    if told.get("elsewhere"):
        (state / "garra.json").rename(home / "elsewhere.json")
        (state / "garra.json").symlink_to(home / "elsewhere.json")
    for name, content in told.get("files", {}).items():
        _file(state / name, WORDS.get(content, content))
    for name, to in told.get("links", {}).items():
        (state / name).parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        (state / name).symlink_to(_far(home) if to == "$FAR" else to)
    for number in range(told.get("many", 0)):
        (state / "workspace" / "skills" / f"s{number}").mkdir(parents=True)
    if "approvals" in told:
        asyncio.run(_approvals(state / "state.db", told["approvals"]))
    for name, mode in told.get("modes", {}).items():
        (state / name).chmod(int(mode, 8))


def _far(home: Path) -> Path:
    _file(home / "far" / "SKILL.md", "---\nname: far\ndescription: d\n---\n")
    return home / "far"


def _file(path: Path, text: str) -> None:
    for folder in reversed([each for each in path.parents if not each.exists()]):
        folder.mkdir(mode=0o700)
    path.write_text(text)
    path.chmod(0o600)


async def _approvals(path: Path, document: Any) -> None:
    db = Database(path)
    await Shelf(db, approvals_rules.SPACE).set("document", document)
    await db.close()
