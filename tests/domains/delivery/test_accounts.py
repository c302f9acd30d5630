"""Which accounts a configuration makes."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.errors import UserError
from garra.core.secret import Secret
from garra.domains.delivery.accounts import LinkKey, Outside, Setup, setups

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


def test_a_credential_comes_from_the_environment_or_a_file() -> None:
    assert one({}, env={"BOT_TOKEN": "9:e "}).account.settings["botToken"] == Secret("9:e")
    filed = one({"tokenFile": "/x"}, read=lambda path: f"{path}:token\n")
    assert filed.account.settings["botToken"] == Secret("/x:token")
    assert filed.sources == {"botToken": "file", "hookSecret": "none"}


def test_a_file_that_cannot_be_read_is_told() -> None:
    def refuse(path: str) -> str:
        raise UserError(f"{path} is a symbolic link")

    setup = one({"tokenFile": "/x"}, read=refuse)
    assert setup.fault == "/x is a symbolic link"


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
