"""The store of secrets: a file of one's own, and the keyring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import NotFound, Unavailable, UserError
from garra.io.secrets import LARGEST, Entry, Store, exact, keyring, kind_of

KEY = "sk-known-5f3c9a7e1b2d4c6f8a0e"


class Ring:
    """A keyring as the library has it."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, name: str) -> str | None:
        if self.locked:
            raise RuntimeError(f"locked {KEY}")
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.kept[service, name] = value

    def delete_password(self, service: str, name: str) -> None:
        del self.kept[service, name]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "state" / "secrets.json")


def test_put_read_and_removed(store: Store) -> None:
    assert store.entries() == {}
    store.set("A_KEY", KEY, Entry(hosts=("api.example.com",), updated_at=7))
    assert store.get("A_KEY") == KEY
    assert store.entries()["A_KEY"].hosts == ("api.example.com",)
    assert KEY not in repr(store.entries())
    store.bind("A_KEY", ())
    assert store.entries()["A_KEY"].hosts == ()
    assert store.get("A_KEY") == KEY
    assert store.remove(["A_KEY", "OTHER"]) == ["A_KEY"]
    with pytest.raises(NotFound, match="garra secrets set A_KEY"):
        store.get("A_KEY")
    with pytest.raises(NotFound):
        store.bind("A_KEY", ())


def test_nobody_else_may_read_it_also_after_it_was_restored(store: Store) -> None:
    store.set("A_KEY", KEY, Entry())
    assert store.path.stat().st_mode & 0o777 == 0o600
    store.path.chmod(0o644)
    assert store.get("A_KEY") == KEY
    assert store.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "value"),
    [("lower", KEY), ("A-B", KEY), ("A_KEY", " \n"), ("A_KEY", "x" * (LARGEST + 1)), ("A_KEY", "__OPENCLAW_REDACTED__"),
     ("A_KEY", "***")],
)  # fmt: skip
def test_what_cannot_be_stored(store: Store, name: str, value: str) -> None:
    with pytest.raises(UserError) as fault:
        store.set(name, value, Entry())
    assert KEY not in str(fault.value)
    assert store.entries() == {}


def test_in_the_keyring_the_file_has_the_name_alone(tmp_path: Path) -> None:
    ring = Ring()
    store = Store(tmp_path / "secrets.json", lambda: ring)
    store.set("A_KEY", KEY, Entry(keyring=True))
    assert KEY not in store.path.read_text()
    assert store.get("A_KEY") == KEY
    ring.locked = True
    with pytest.raises(Unavailable) as fault:
        store.get("A_KEY")
    assert KEY not in str(fault.value)
    ring.locked = False
    assert store.remove(["A_KEY"]) == ["A_KEY"]
    assert ring.kept == {}
    store.set("B_KEY", KEY, Entry(keyring=True))
    ring.kept.clear()
    with pytest.raises(NotFound, match="--keyring"):
        store.get("B_KEY")


@pytest.mark.parametrize("text", ["{", "[]", '{"entries": 3}'])
def test_a_broken_file_is_never_written_over(store: Store, text: str) -> None:
    store.path.parent.mkdir()
    store.path.write_text(text)
    with pytest.raises(Unavailable):
        store.set("A_KEY", KEY, Entry())
    assert store.path.read_text() == text


def test_odd_entries_are_read_as_what_they_can_be(store: Store) -> None:
    store.path.parent.mkdir()
    odd: Any = {"entries": {"A": {"value": "v", "hosts": "x", "updatedAt": "y", "kind": "env"}, "B": 3}}
    store.path.write_text(json.dumps(odd))
    assert [(name, entry.kind, entry.hosts, entry.updated_at) for name, entry in store.entries().items()] == [
        ("A", "env", (), 0)
    ]


def test_kinds_and_hosts() -> None:
    assert [kind_of(name) for name in ("OPENAI_API_KEY", "GH_TOKEN", "LOG_LEVEL")] == ["secret", "secret", "env"]
    assert exact(" API.Example.com. ") == "api.example.com"
    for wrong in ("https://a.b", "*.a.b", "a:443", "a/b", ""):
        with pytest.raises(UserError):
            exact(wrong)


def test_without_the_library_it_is_said_what_to_install() -> None:
    try:
        found = keyring()
    except Unavailable as fault:
        assert "garra plugins install keyring" in str(fault)  # noqa: PT017 - whether it is installed is not for this test to say
    else:
        assert found
