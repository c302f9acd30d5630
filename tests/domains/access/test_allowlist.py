"""An account's rules as the configuration has them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.access import NOBODY, People
from garra.core.loops import Settings
from garra.domains.access.allowlist import Accounts, read


def telegram(more: dict[str, Any] | None = None, **keys: Any) -> Config:
    return Config.model_validate({"channels": {"telegram": keys}, **(more or {})})


@pytest.mark.req("SEC-01", "SEC-06")
def test_what_is_not_said_is_closed() -> None:
    policy = read(telegram(), "telegram", "default").policy
    assert (policy.dm, policy.group, policy.bots) == ("pairing", "allowlist", "none")
    assert policy.allow == policy.group_allow == policy.owners == policy.paired == NOBODY
    missing = read(Config(), "telegram", "default").policy
    assert (missing.dm, missing.group) == ("disabled", "disabled")


@pytest.mark.req("SEC-06")
def test_the_defaults_of_all_channels_do_not_open_one_that_is_not_named() -> None:
    config = Config.model_validate(
        {"channels": {"defaults": {"groupPolicy": "open", "dmPolicy": "open"}, "telegram": {"dmPolicy": "allowlist"}}}
    )
    assert read(config, "slack", "default").policy.group == "disabled"
    named = read(config, "telegram", "default").policy
    assert (named.dm, named.group) == ("allowlist", "open")


def test_an_account_is_closer_than_its_channel() -> None:
    config = telegram(
        dmPolicy="open", allowFrom=[1], groups={"*": {}}, accounts={"work": {"dmPolicy": "disabled", "allowFrom": []}}
    )
    assert read(config, "telegram", "default").policy.allow == People(frozenset({"1"}))
    work = read(config, "telegram", "work").policy
    assert (work.dm, work.allow) == ("disabled", NOBODY)


def test_the_people_of_groups_are_those_of_direct_messages_unless_said() -> None:
    assert read(telegram(allowFrom=["tg:1"]), "telegram", "x").policy.group_allow == People(frozenset({"1"}))
    apart = read(telegram(allowFrom=["1"], groupAllowFrom=[2]), "telegram", "x").policy
    assert apart.group_allow == People(frozenset({"2"}))
    assert read(telegram(allowFrom=["1"], groupAllowFrom=[]), "telegram", "x").policy.group_allow == NOBODY


def test_owners_and_access_groups() -> None:
    more = {
        "commands": {"ownerAllowFrom": ["telegram:1", "discord:2", "*"]},
        "accessGroups": {"team": {"type": "message.senders", "members": {"telegram": ["5"]}}},
    }
    account = read(telegram(more, allowFrom=["accessGroup:team"]), "telegram", "x")
    assert account.policy.owners == People(frozenset({"1"}))
    assert account.policy.allow == People(frozenset({"5"}))
    assert account.people(["accessGroup:team", "6"]) == People(frozenset({"5", "6"}))


@pytest.mark.req("CH-23")
def test_figures_of_the_guard_between_bots() -> None:
    assert read(telegram(), "telegram", "x").loop == Settings()
    own = {"enabled": False, "maxEventsPerWindow": 8, "windowSeconds": -1, "cooldownSeconds": "x"}
    assert read(telegram(botLoopProtection=own), "telegram", "x").loop == Settings(False, 8, 60_000, 60_000)
    assert read(telegram(botLoopProtection="off"), "telegram", "x").loop == Settings()


def test_names_and_an_open_door_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read(telegram(dmPolicy="open", allowFrom=["@ann"]), "telegram", "default")
    assert "@ann names nobody" in caplog.text
    assert "lets in the listed only" in caplog.text


def test_rules_are_read_once_and_again_when_the_file_changes() -> None:
    configs = [telegram(allowFrom=[1])]
    accounts = Accounts(lambda: configs[0])
    first = accounts.find("telegram", "default")
    assert accounts.find("telegram", "default") is first
    configs[0] = telegram(allowFrom=[2])
    assert accounts.find("telegram", "default").policy.allow == People(frozenset({"2"}))
    for number in range(100):
        accounts.find("telegram", str(number))
    assert accounts.find("telegram", "default") is not first
