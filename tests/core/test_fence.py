"""Which sessions have their commands shut in."""

from __future__ import annotations

import pytest

from garra.core.fence import CLOSE, Fence, Mode, folder, host, shut_in


@pytest.mark.parametrize("origin", ["local", "operator", "channel", "job", "subagent"])
@pytest.mark.parametrize("main", [True, False])
@pytest.mark.parametrize("guest", [True, False])
def test_modes(origin: str, *, main: bool, guest: bool) -> None:
    def shut(mode: Mode | None) -> bool:
        return shut_in(mode, main=main, origin=origin, guest=guest)

    assert shut(None)
    assert shut("all")
    assert not shut("off")
    free = main and not guest and origin in ("local", "operator", "channel")
    assert shut("non-main") is not free


def test_where_auto_leads() -> None:
    out = Fence(shut_in=False)
    assert [host(each, CLOSE) for each in ("auto", "sandbox", "gateway", "node")] == [
        "auto",
        "sandbox",
        "gateway",
        "node",
    ]
    assert [host(each, out) for each in ("auto", "sandbox", "node")] == ["gateway", "sandbox", "node"]


def test_folders_are_one_for_each_who_shares_it() -> None:
    one, other = "agent:main:telegram:group:-1/../..", "agent:main:telegram:group:-2"
    assert folder("shared", "main", one) == "shared"
    assert folder("agent", "main", one) == folder("agent", "main", other) != folder("agent", "work", one)
    assert folder("session", "main", one) != folder("session", "main", other)
    assert folder("session", "main", one) != folder("session", "main", one.upper())
    name = folder("session", "main", one)
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name) < 64
