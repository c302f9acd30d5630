"""Logins: how they read, and which comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from garra.core import profiles
from garra.core.profiles import Document, Profile
from garra.core.secret import Secret

NOW = 1_790_000_000_000
FILE: dict[str, Any] = {
    "version": 1,
    "profiles": {
        "openai:work": {"type": "api_key", "provider": "OpenAI", "key": " sk-1 "},
        "x:a": {"type": "oauth", "provider": "x", "access": "A", "refresh": "R", "expires": NOW, "email": "a@b.c",
                "accountId": 7},
        "anthropic:t": {"type": "token", "provider": "anthropic", "token": "T"},
        "bad": {"type": "api_key"},
        "worse": 3,
    },
    "order": {"OpenAI": ["openai:work", "openai:env"], "x": 3},
    "usageStats": {"openai:work": {"lastUsed": 5}, "x:a": {"lastUsed": True}, "y": 1},
}  # fmt: skip


def profile(id_: str, kind: profiles.Kind = "api_key", **more: Any) -> Profile:
    return Profile(id_, "p", kind, Secret("s"), **more)


@pytest.mark.req("MODEL-05")
def test_the_three_kinds() -> None:
    found = profiles.parse(FILE, "main")
    key, login, token = found.profiles
    assert (key.id, key.provider, key.kind, key.secret) == ("openai:work", "openai", "api_key", Secret("sk-1"))
    assert (login.secret, login.refresh, login.expires_ms, login.email) == (Secret("A"), Secret("R"), NOW, "a@b.c")
    assert login.extra == {"accountId": 7}
    assert (token.secret, token.expires_ms, token.agent) == (Secret("T"), None, "main")
    assert found.order == {"openai": ("openai:work", "openai:env"), "x": ()}
    assert found.used == {"openai:work": 5}
    assert [line.split(" ")[1] for line in found.problems] == ["bad", "worse"]


def test_as_it_was_written() -> None:
    for each in profiles.parse(FILE).profiles:
        assert profiles.read(each.id, profiles.written(each)) == each


def test_the_flat_form() -> None:
    found = profiles.parse({"openrouter": {"apiKey": "k"}, "version": 1, "x": {}, "y": {"key": "z"}})
    assert [(each.id, each.secret) for each in found.profiles] == [
        ("openrouter:default", Secret("k")), ("y:default", Secret("z")),
    ]  # fmt: skip


def test_what_is_no_document() -> None:
    assert profiles.parse([1]) == Document(problems=("it is no JSON object",))


def test_no_secret_is_written_where_none_is() -> None:
    assert profiles.written(Profile("i", "p", "api_key")) == {"type": "api_key", "provider": "p"}


def test_who_cannot_be_used() -> None:
    assert profiles.unfit(profile("a"), NOW) == ""
    assert profiles.unfit(Profile("a", "p", "api_key"), NOW) == "missing_credential"
    assert profiles.unfit(Profile("a", "p", "api_key", Secret("", missing="no X")), NOW) == "unresolved_ref"
    assert profiles.unfit(profile("a", "token", expires_ms=NOW), NOW) == "expired"
    assert profiles.unfit(profile("a", "token", expires_ms=NOW + 1), NOW) == ""
    assert profiles.unfit(profile("a", "token", expires_ms=-1), NOW) == "invalid_expires"
    assert profiles.unfit(profile("a", "oauth", refresh=Secret("r"), expires_ms=1), NOW) == ""
    assert profiles.unfit(profile("a", "oauth", expires_ms=1), NOW) == "expired"
    assert profiles.unfit(profile("a", "oauth", refresh=Secret("r"), expires_ms=1, extra={"refused": {}}), NOW)


@pytest.mark.parametrize(("said", "read"), [(None, None), ("soon", -1), (0, -1), (9e15, -1), (1799e9, 1799 * 10**9)])
def test_moments(said: object, read: int | None) -> None:
    found = profiles.read("i", {"type": "token", "provider": "p", "token": "t", "expires": said})
    assert found is not None
    assert found.expires_ms == read


def test_where_a_secret_stands_elsewhere() -> None:
    body = {"type": "api_key", "provider": "p", "keyRef": {"source": "env", "provider": "default", "id": "X"}}
    found = profiles.read("i", body)
    assert found is not None
    assert profiles.referred(found) == ("env", "default", "X")
    assert profiles.written(replace(found, secret=Secret("looked up"))) == body
    token = {"type": "token", "provider": "p", "tokenRef": {"source": "store", "id": "Y"}}
    assert profiles.referred(profiles.read("i", token) or found) == ("store", "", "Y")
    for wrong in ({**body, "keyRef": {"id": 3}}, {**body, "keyRef": "X"}, {**body, "type": "oauth"}):
        assert profiles.referred(profiles.read("i", wrong) or found) is None


def test_when_an_access_is_renewed() -> None:
    login = profile("a", "oauth", refresh=Secret("r"), expires_ms=NOW + profiles.SOON_MS)
    assert profiles.stale(login, NOW)
    assert not profiles.stale(login, NOW - 1)
    assert not profiles.stale(replace(login, expires_ms=None), NOW)
    assert profiles.stale(replace(login, secret=Secret("")), 0)
    assert not profiles.stale(profile("a", expires_ms=1), NOW)
    fresh = profiles.renewed(login, "new", "", NOW * 2)
    assert (fresh.secret, fresh.refresh) == (Secret("new"), Secret("r"))
    assert profiles.renewed(login, "new", "r2", None).refresh == Secret("r2")


def test_the_usual_order_is_by_kind_then_by_last_use() -> None:
    used = {"k1": 3, "k2": 1, "t": 9, "o1": 5, "o2": 1}
    line = [
        profile("k1"), profile("k2"), profile("t", "token"),
        profile("o1", "oauth", refresh=Secret("r"), expires_ms=NOW * 2),
        profile("o2", "oauth", refresh=Secret("r"), expires_ms=1),
        Profile("empty", "p", "oauth"),
    ]  # fmt: skip
    found = profiles.ordered(line, None, used.__getitem__, NOW)
    assert [each.id for each in found] == ["o1", "o2", "t", "k2", "k1"]


@pytest.mark.req("MODEL-06")
def test_thirty_calls_over_three_profiles() -> None:
    line = [profile(id_) for id_ in "abc"]
    used = dict.fromkeys("abc", 0)
    calls = []
    for at in range(1, 31):
        first = profiles.ordered(line, None, used.__getitem__, NOW)[0].id
        used[first] = at
        calls.append(first)
    assert {id_: calls.count(id_) for id_ in "abc"} == {"a": 10, "b": 10, "c": 10}


def test_an_order_that_somebody_set_leaves_out_the_rest() -> None:
    line = [profile(id_) for id_ in "abc"]
    found = profiles.ordered(line, ["c", "nobody", "a", "c"], lambda _: 0, NOW)
    assert [each.id for each in found] == ["c", "a"]
    assert [each.id for each in profiles.pinned(found, "a")] == ["a", "c"]
    assert profiles.pinned(found, "b") == found
