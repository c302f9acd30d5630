"""Every method against every kind of caller, over the whole table of a real gateway."""

from __future__ import annotations

import ast
from contextlib import suppress
from pathlib import Path

import pytest

import garra.gateway
from garra.core.errors import GarraError
from garra.core.scopes import ADMIN, APPROVALS, PAIRING, READ, WRITE, reaches
from garra.gateway import table
from garra.gateway.method import Client, Registry, Role, Who
from tests.gateway.house import running

KNOWN = {ADMIN, READ, WRITE, APPROVALS, PAIRING, "operator.questions", "operator.talk"}


def allowed(registry: Registry, role: Role, *scopes: str) -> set[str]:
    who = Who("c", Client("cli", "cli"), role, frozenset(scopes))
    found = set()
    for row in registry:
        with suppress(GarraError):
            found.add(registry.pick(row.name, who).name)
    return found


async def test_rights_are_what_the_table_says_and_nothing_more(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        registry = table.of(house.gateway)
        operators = {row.name for row in registry if row.role != "node"}
        assert {row.scope for row in registry} <= KNOWN
        assert allowed(registry, "operator") == set()
        assert allowed(registry, "operator", "operator.unheard-of") == set()
        assert allowed(registry, "operator", ADMIN) == operators
        assert allowed(registry, "node", ADMIN) == {row.name for row in registry if row.role != "operator"}
        for scope in (READ, WRITE, APPROVALS, PAIRING):
            expected = {name for name in operators if reaches(frozenset({scope}), registry.rows[name].scope)}
            assert allowed(registry, "operator", scope) == expected
            assert expected < operators


@pytest.mark.parametrize(
    "prefix", ["config.set", "config.patch", "config.apply", "exec.approvals.", "wizard.", "update."]
)
async def test_what_changes_the_house_is_for_admins(tmp_path: Path, prefix: str) -> None:
    async with running(tmp_path) as house:
        for row in table.of(house.gateway):
            assert not row.name.startswith(prefix) or row.scope == ADMIN


@pytest.mark.req("SEC-10")
def test_a_secret_is_only_ever_compared_in_constant_time() -> None:
    for path in sorted(Path(garra.gateway.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text())
        shown = [node for node in ast.walk(tree) if isinstance(node, ast.Compare) and ".reveal(" in ast.unparse(node)]
        assert not shown, f"{path}:{shown[0].lineno}"
    auth = (Path(garra.gateway.__file__).parent / "auth.py").read_text()
    assert "hmac.compare_digest" in auth
