from __future__ import annotations

import pytest

from garra.core.redact import SENTINEL, cleaner, hidden, is_reference, masked, sensitive


def test_known_secrets_are_blotted_out_longest_first() -> None:
    clean = cleaner(["secret-1", "secret-1-long", "no"])
    assert clean("a secret-1-long b secret-1 no") == "a *** b *** no"


@pytest.mark.parametrize(
    "text",
    [
        "sk-abcdefghijklmnopqrstuv",
        "ghp_abcdefghijklmnopqrstuvwxyz",
        "Authorization: Bearer abcdefghijklmnop",
        "https://user:pass@host/x",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
        "123456789:AAaaBBbbCCccDDddEEeeFFffGGggHHhhIIi",
    ],
)
def test_keys_are_known_by_their_shape(text: str) -> None:
    shown = cleaner(())(text)
    assert "***" in shown
    assert "abcdefghij" not in shown
    assert "pass@" not in shown


def test_innocent_text_stays() -> None:
    text = "the task-list of 2026-01-01 10:22:33 says: ask for https://example.org/a?b=c"
    assert cleaner(())(text) == text


@pytest.mark.parametrize("key", ["token", "botToken", "apiKey", "api_key", "password", "clientSecret", "Authorization"])
def test_keys_that_hold_secrets(key: str) -> None:
    assert sensitive(key)


@pytest.mark.parametrize("key", ["maxTokens", "contextTokens", "reserveToken", "tokens", "keyboard", "primary"])
def test_keys_that_do_not(key: str) -> None:
    assert not sensitive(key)


def test_a_tree_is_masked_by_key_and_by_place() -> None:
    tree = {"a": {"token": "x", "n": 1, "ref": "${X}"}, "h": [{"v": "y"}], "password": "${P}", "apiKey": ""}
    shown = masked(tree, lambda at: at == ("h", 0, "v"))
    assert shown == {
        "a": {"token": SENTINEL, "n": 1, "ref": "${X}"},
        "h": [{"v": SENTINEL}],
        "password": "${P}",
        "apiKey": "",
    }
    assert not hidden((0,), lambda _: False)
    assert is_reference(" ${A_B} ")
    assert not is_reference("x${A}")


def test_patterns_of_the_owner_are_blotted_out_too() -> None:
    clean = cleaner((), [r"order-\d+", "/Ticket [A-Z]+/", "(", ".*", "/a.b/s"])
    assert clean("ORDER-17 Ticket ABC ticket abc a\nb") == "*** *** ticket abc ***"
