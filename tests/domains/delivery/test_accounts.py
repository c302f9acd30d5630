"""Which accounts a configuration makes."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.errors import UserError
from garra.core.secret import Secret
from garra.domains.delivery.accounts import LinkKey, Outside, Setup, advice, setups

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "botToken": {"type": "string", "secret": True, "unique": True, "env": "BOT_TOKEN", "file": "tokenFile"},
        "tokenFile": {"type": "string"},
        "hookSecret": {"type": "string", "secret": True},
        "dmPolicy": {"type": "string", "enum": ["pairing", "open"]},
    },
}


def read(section: dict[str, Any], **outside: Any) -> list[Setup]:
    return setups("toy", section, SCHEMA, Outside(**outside))


def one(section: dict[str, Any], **outside: Any) -> Setup:
    found = read(section, **outside)
    assert len(found) == 1
    return found[0]


def test_one_bot_needs_no_accounts() -> None:
    setup = one({"botToken": "1:a", "dmPolicy": "open"})
    assert setup.key == LinkKey("toy", "default")
    assert setup.account.settings == {"botToken": Secret("1:a"), "hookSecret": Secret(""), "dmPolicy": "open"}
    assert (setup.enabled, setup.configured, setup.fault) == (True, True, "")
    assert "1:a" not in repr(setup)


def test_accounts_inherit_all_but_credentials() -> None:
    first, second = read({"botToken": "1:a", "dmPolicy": "open", "accounts": {"work": {"botToken": "2:b"}}})
    assert (first.key.account, second.key.account) == ("default", "work")
    assert second.account.settings == {"botToken": Secret("2:b"), "hookSecret": Secret(""), "dmPolicy": "open"}
    (lone,) = read({"dmPolicy": "open", "accounts": {"work": {"botToken": "2:b"}}})
    assert lone.key.account == "work"


def test_an_account_without_a_credential_is_not_configured() -> None:
    setup = one({"accounts": {"work": {"dmPolicy": "open"}}})
    assert not setup.configured
    assert not one({"hookSecret": "s"}).configured
    assert not one({"enabled": False}).enabled


def test_an_account_that_needs_two_credentials_says_which_one_is_missing() -> None:
    other = {"type": "string", "secret": True, "unique": True, "description": "the other token, xapp-…"}
    schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "appToken": other}}
    (half,) = setups("toy", {"botToken": "1:a"}, schema, Outside())
    assert (half.configured, half.fault) == (True, "its appToken is missing: the other token, xapp-…")
    (whole,) = setups("toy", {"botToken": "1:a", "appToken": "xapp"}, schema, Outside())
    assert (whole.configured, whole.fault) == (True, "")
    (neither,) = setups("toy", {"dmPolicy": "open"}, schema, Outside())
    assert (neither.configured, neither.fault) == (False, "")


def test_a_credential_comes_from_the_environment_or_a_file() -> None:
    assert one({}, env={"BOT_TOKEN": "9:e "}).account.settings["botToken"] == Secret("9:e")
    filed = one({"tokenFile": "/x"}, read=lambda path: f"{path}:token\n")
    assert filed.account.settings["botToken"] == Secret("/x:token")
    assert filed.sources == {"botToken": "file", "hookSecret": "none"}


def test_a_file_that_cannot_be_read_is_told() -> None:
    def refuse(path: str) -> str:
        raise UserError(f"{path} is a symbolic link")

    setup = one({"tokenFile": "/x"}, read=refuse)
    assert setup.fault == "its botToken cannot be read: /x is a symbolic link"


def test_settings_are_checked_before_anything_runs() -> None:
    (setup,) = read({"botToken": "1:a", "accounts": {"default": {"dmPolicy": "everyone"}}})
    assert setup.fault.startswith("channels.toy.dmPolicy:")


def test_one_credential_serves_one_account() -> None:
    first, second = read({"accounts": {"a": {"botToken": "1:x"}, "b": {"botToken": "1:x"}}})
    assert not first.fault
    assert "same botToken as the account a" in second.fault
    shared = read({"accounts": {n: {"botToken": f"{n}:x", "hookSecret": "s"} for n in "ab"}})
    assert not any(setup.fault for setup in shared)


@pytest.mark.parametrize("value", [Secret("1:a"), "1:a"])
def test_a_secret_may_come_wrapped(value: Any) -> None:
    assert one({"botToken": value}).account.settings["botToken"] == Secret("1:a")


BARE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "host": {"type": "string", "needed": True, "env": "TOY_HOST"},
        "port": {"type": "integer", "env": "TOY_PORT"},
        "nick": {"type": "string", "needed": True, "env": "TOY_NICK"},
        "rooms": {"type": "array", "env": "TOY_ROOMS"},
        "password": {"type": "string", "secret": True, "optional": True, "env": "TOY_PASSWORD"},
        "nickserv": {
            "type": "object",
            "properties": {
                "service": {"type": "string"},
                "password": {"type": "string", "secret": True, "optional": True, "file": "passwordFile"},
                "passwordFile": {"type": "string"},
            },
        },
    },
}


def bare(section: dict[str, Any], **outside: Any) -> list[Setup]:
    return setups("toy", section, BARE, Outside(**outside))


def test_an_account_may_need_no_credential() -> None:
    (setup,) = bare({"host": "h", "nick": "n"})
    assert (setup.configured, setup.fault, setup.account.settings["password"]) == (True, "", Secret(""))
    (short,) = bare({"host": "h"})
    assert short.fault == "channels.toy.nick: is required"


def test_what_accounts_share_is_no_account_by_itself() -> None:
    assert [s.key.account for s in bare({"host": "h", "accounts": {"a": {"nick": "n"}}})] == ["a"]
    assert [s.key.account for s in bare({"host": "h", "nick": "n", "accounts": {"a": {"nick": "m"}}})] == [
        "default",
        "a",
    ]


def test_a_credential_one_object_deep() -> None:
    section = {"host": "h", "nick": "n", "nickserv": {"service": "S", "password": "p1"}}
    section["accounts"] = {"a": {"nickserv": {"passwordFile": "/f"}}, "b": {}}
    first, second, third = bare(section, read=lambda path: f"from {path}")
    assert first.account.settings["nickserv"] == {"service": "S", "password": Secret("p1")}
    inner = {"service": "S", "passwordFile": "/f", "password": Secret("from /f")}
    assert second.account.settings["nickserv"] == inner
    assert third.account.settings["nickserv"] == {"service": "S"}
    assert section["nickserv"] == {"service": "S", "password": "p1"}
    assert (first.sources["nickserv.password"], second.sources["nickserv.password"]) == ("config", "file")
    assert [setup.fault for setup in (first, second, third)] == ["", "", ""]
    assert "p1" not in repr(first)


def test_plain_keys_come_from_the_environment_for_the_default_account_only() -> None:
    env = {"TOY_HOST": "h", "TOY_PORT": "7", "TOY_NICK": "n", "TOY_ROOMS": "#a, #b", "TOY_PASSWORD": "w"}
    (setup,) = bare({"nick": "mine"}, env=env)
    told = {key: setup.account.settings[key] for key in ("host", "port", "nick", "rooms", "password")}
    assert told == {"host": "h", "port": 7, "nick": "mine", "rooms": ["#a", "#b"], "password": Secret("w")}
    (named,) = bare({"accounts": {"a": {"nick": "x"}}}, env=env)
    assert named.fault == "channels.toy.accounts.a.host: is required"
    (wrong,) = bare({}, env={**env, "TOY_PORT": "seven"})
    assert wrong.fault.startswith("channels.toy.port:")


def test_an_account_says_which_keys_it_cannot_do_without() -> None:
    assert one({}).missing == ("botToken",)
    assert one({"botToken": "1:a"}).missing == ()
    assert [setup.missing for setup in bare({"host": "h"})] == [("nick",)]


def test_one_of_several_logins_will_do() -> None:
    secret = {"type": "string", "secret": True, "optional": True}
    keys = {"token": secret, "user": {"type": "string"}, "password": secret}
    schema = {"properties": keys, "logins": [["token"], ["user", "password"]]}
    for section, fault in (
        ({"token": "t"}, ""),
        ({"user": "u", "password": "p"}, ""),
        ({"user": "u"}, "no login: set token, or user and password"),
    ):
        (setup,) = setups("toy", section, schema, Outside())
        assert setup.fault == fault


@pytest.mark.parametrize("text", ["", "bot", "bot @h"])
def test_a_key_of_another_form_is_a_fault(text: str) -> None:
    schema = {"properties": {"jid": {"type": "string", "pattern": "[^@ ]+@[^@ ]+", "description": "an address"}}}
    (setup,) = setups("toy", {"jid": text}, schema, Outside())
    assert setup.fault == f"channels.toy.jid: is to be an address; got {text!r}"
    assert setups("toy", {"jid": "b@h"}, schema, Outside())[0].fault == ""


@pytest.mark.parametrize(
    ("url", "near"),
    [("http://127.0.0.1:1/", True), ("http://localhost/", True), ("http://10.1.1.1", True), ("https://e.org", False)],
)
def test_advice_for_what_can_start_and_does_not_do_all(url: str, near: bool) -> None:
    schema = {"properties": {"url": {"advised": "nothing goes out", "public": "near"}}}
    assert advice(schema, {}) == ["it has no url: nothing goes out"]
    assert bool(advice(schema, {"url": url})) is near
    assert advice(schema, {"url": url, "near": True}) == []
    named = {"url": "https://nas.example.org/in"}
    assert advice(schema, named, lambda _: ["93.184.215.14"]) == []
    assert len(advice(schema, named, lambda _: ["93.184.215.14", "192.168.1.4"])) == 1
    assert len(advice(schema, {"url": url, "near": True, "dmPolicy": "open", "allowFrom": [1]})) == 1
