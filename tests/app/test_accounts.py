"""Credentials of chat accounts, and that no log shows them."""

from __future__ import annotations

from garra.app.accounts import secrets
from garra.core.secret import Secret
from garra.domains.delivery.accounts import Setup
from garra.sdk.channel import Account


def test_credentials_are_found_one_object_deep_and_missing_ones_are_none() -> None:
    settings = {
        "botToken": Secret("from-a-file"),
        "nickserv": {"password": Secret("deep"), "account": "plain"},
        "appToken": Secret("", missing="APP_TOKEN is not set"),
        "host": "irc.example.net",
    }
    assert secrets([Setup("x", Account("main", settings)), Setup("y", Account("main"))]) == ("deep", "from-a-file")
