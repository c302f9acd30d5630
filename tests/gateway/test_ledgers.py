"""The same key twice is one request."""

from __future__ import annotations

import pytest

from garra.core.errors import Conflict
from garra.core.messages import Assistant, Message, Text, User
from garra.gateway.ledgers import LIFE_S, LIMIT, SLACK, Keys, Ledger, digest


class Now:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_a_key_is_claimed_once() -> None:
    ledger = Ledger(Now(), "chat-request-conflict")
    claim, new = ledger.claim("k", "a")
    assert new
    again, new = ledger.claim("k", "a")
    assert again is claim
    assert not new
    with pytest.raises(Conflict) as caught:
        ledger.claim("k", "b")
    assert caught.value.details == {"reason": "chat-request-conflict"}
    ledger.release(claim)
    assert ledger.claim("k", "b")[1]


def test_ended_claims_are_forgotten_running_ones_are_not() -> None:
    now = Now()
    ledger = Ledger(now, "r")
    running, _ = ledger.claim("running", "a")
    for number in range(LIMIT + 200):
        ledger.claim(f"k{number}", "a")
        ledger.end(f"k{number}")
    assert len(ledger) <= LIMIT + SLACK + 2
    now.at = LIFE_S + 1
    ledger.claim("next", "a")
    assert ledger.claim("running", "a") == (running, False)
    assert len(ledger) == 2
    ledger.end("nobody")


def said(text: str, key: str) -> User:
    return User((Text(text),), 0, {"idempotencyKey": key})


def test_a_stored_key_is_found_and_each_message_read_once() -> None:
    keys = Keys()
    messages: list[Message] = [said("one", "a:user"), Assistant((Text("1"),), 0)]
    assert keys.find("s", messages, "a:user") == digest("one")
    assert keys.find("s", messages, "b:user") is None
    messages += [said("two", "b:user")]
    assert keys.find("s", messages, "b:user") == digest("two")
    assert keys.find("s", messages, "a:user") == digest("one")


def test_a_branch_that_became_shorter_is_read_again() -> None:
    keys = Keys()
    keys.find("s", [said("one", "a:user"), said("two", "b:user")], "b:user")
    assert keys.find("s", [said("one", "a:user")], "b:user") is None
