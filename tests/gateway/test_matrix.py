"""Every method of the table against every kind of caller. What is expected comes from the original's table of methods
(methods.json), not from our own; what we have beyond it is listed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from garra.core.errors import Forbidden, GarraError, UserError
from garra.gateway import table
from garra.gateway.method import Client, Registry, Role, Who
from garra.gateway.server import Gateway
from tests.gateway.house import Key, Refused, Running, guest, methods, refusal, running
from tests.gateway.test_trust import PROXIED, approve, knock

THEIRS: dict[str, str] = json.loads((Path(__file__).parent / "methods.json").read_text())
OURS = {
    "channels.pairing.revoke": "pairing",
    "config.confirm": "admin",
    "doctor.examine": "read",
    "doctor.mend": "admin",
    "memory.dream": "write",
    "memory.dreams": "read",
    "memory.dreams.decide": "admin",
    "memory.dreams.explain": "read",
    "memory.index": "write",
    "messages.drop": "write",
    "messages.get": "read",
    "messages.list": "read",
    "messages.retry": "write",
    "security.audit": "admin",
    "security.mend": "admin",
    "sessions.unsubscribe": "read",
    "skills.remove": "admin",
    "tools.explain": "read",
    "sessions.context": "read",
    "tools.policy": "read",
    "trace.get": "read",
    "trace.list": "read",
    "usage.report": "read",
    "work.stop": "admin",
    "work.resume": "admin",
    "work.state": "read",
}
GIVES = {
    "admin": {"admin", "read", "write", "approvals", "pairing", "questions", "talk"},
    "write": {"write", "read", "talk"},
    "read": {"read"},
    "approvals": {"approvals"},
    "pairing": {"pairing"},
    "questions": {"questions"},
    "talk": {"talk"},
}
"""What each right is good for, written out by hand."""
RIGHTS: tuple[tuple[str, ...], ...] = ((), *((name,) for name in GIVES), ("read", "approvals"), ("unheard-of",))


@pytest.fixture(scope="module")
def registry() -> Registry:
    return table.of(cast(Gateway, SimpleNamespace(devices=None)))


def needed(name: str) -> str:
    return OURS.get(name) or THEIRS[name]


def may(name: str, role: Role, rights: Iterable[str]) -> bool:
    if needed(name) == "node role":
        return role == "node"
    return role == "operator" and any(needed(name) in GIVES.get(right, ()) for right in rights)


def names(rights: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"operator.{right}" for right in rights)


@pytest.mark.parametrize("role", ["operator", "node"])
@pytest.mark.parametrize("rights", RIGHTS, ids=lambda rights: "+".join(rights) or "none")
def test_every_method_against_every_kind_of_caller(registry: Registry, rights: tuple[str, ...], role: Role) -> None:
    who = Who("c", Client("cli", "cli"), role, frozenset(names(rights)))
    assert {row.name: let_in(registry, row.name, who) for row in registry} == {
        row.name: may(row.name, role, rights) or row.role == "any" for row in registry
    }


def let_in(registry: Registry, name: str, who: Who) -> bool:
    try:
        return registry.pick(name, who).name == name
    except GarraError:
        return False


def test_no_method_is_without_a_row_in_one_of_the_tables(registry: Registry) -> None:
    assert {row.name for row in registry} <= {*THEIRS, *OURS}
    assert not THEIRS.keys() & OURS.keys()
    assert not [row.name for row in registry if row.role == "any"]


@pytest.mark.parametrize("name", ["no.such.method", "config.set ", "CONFIG.SET", "", "__init__", "config"])
def test_an_unknown_method_is_refused_and_only_an_admin_hears_that_it_is_none(registry: Registry, name: str) -> None:
    for rights in RIGHTS:
        who = Who("c", Client("cli", "cli"), "operator", frozenset(names(rights)))
        with pytest.raises(UserError if rights == ("admin",) else Forbidden):
            registry.pick(name, who)
    with pytest.raises(UserError):
        registry.pick(name, Who("c", Client("n", "node"), "node", frozenset({"operator.admin"})))


@pytest.mark.parametrize("rights", [(), ("read",), ("write",), ("approvals",), ("unheard-of",)])
async def test_over_a_real_socket_the_same_is_refused(tmp_path: Path, rights: tuple[str, ...]) -> None:
    async with running(tmp_path, extra=tuple(others())) as house, guest(house, scopes=names(rights)) as who:
        for row in others():
            if not may(row.name, "operator", rights):
                with pytest.raises(Refused) as refused:
                    await who.call(row.name, {})
                assert refused.value.error["code"] in ("FORBIDDEN", "INVALID_REQUEST")
                assert refused.value.detail == (None if row.role == "node" else "MISSING_SCOPE")


def others() -> list[Any]:
    """The rows of the domains; a host stands behind none of them here, so that what passes the gate is not called."""
    bound = " ".join(table.METHODS[module] for module in ("device", "node", "presence")).split()
    taken = {*bound, *(row.name for row in methods({}))}
    every = table.of(cast(Gateway, SimpleNamespace(devices=None)))
    return [row for row in every if row.name not in taken]


async def test_who_asks_for_more_than_his_credential_has_is_not_given_it(tmp_path: Path) -> None:
    async with running(tmp_path, PROXIED) as house, guest(house) as owner:
        error, _ = await refusal(knock(house))
        await approve(owner, error)
        async with knock(house) as who:
            token = who.hello["auth"]["deviceToken"]
            assert who.hello["auth"]["scopes"] == ["operator.read"]
        for more in (("operator.admin",), ("operator.read", "operator.write"), ("operator.approvals",)):
            _, detail = await refusal(knock(house, auth={"deviceToken": token}, scopes=more))
            assert detail == "AUTH_SCOPE_MISMATCH"
        await nothing_without_a_device(house)


async def nothing_without_a_device(house: Running) -> None:
    """The shared secret alone gives a stranger's program no right, whatever it asks for."""
    async with guest(house, client=("test", "test"), scopes=("operator.admin",)) as app:
        assert app.hello["auth"]["scopes"] == []
        with pytest.raises(Refused, match="missing scope"):
            await app.call("config.set", {})


async def test_a_node_is_no_operator_whatever_it_asks_for(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        client, scopes = ("node-host", "node"), ("operator.admin",)
        async with guest(house, key=Key(), role="node", client=client, scopes=scopes) as node:
            for name in ("config.set", "echo", "device.pair.list"):
                with pytest.raises(Refused, match="unauthorized role: node"):
                    await node.call(name, {})
