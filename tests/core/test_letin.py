"""A device that waits to be let in."""

from __future__ import annotations

import pytest

from garra.core import letin
from garra.core.letin import Ask, Device, GiveUp, Granted, Waiting
from garra.core.oauth import Issuer, Refused, Tokens
from tests.core.test_oauth import ISSUER, NOW, OPENAI, answer


def test_what_a_device_sends() -> None:
    assert letin.device_form(ISSUER) == {"client_id": "me", "scope": "one two"}
    assert letin.device_form(OPENAI) == {"client_id": "me"}
    assert letin.device_form(Issuer("me", "https://a.example/token")) == {"client_id": "me"}


def test_a_device_is_given_a_code() -> None:
    body = answer(device_code="d", user_code="AB", verification_uri="https://a.example/e", interval=7, expires_in=60)
    assert letin.device(ISSUER, 200, body, NOW) == Device("AB", "https://a.example/e", "d", 7_000, NOW + 60_000)
    whole = answer(device_code="d", user_code="AB", verification_uri="https://a.example/e",
                   verification_uri_complete="https://a.example/e?c=AB")  # fmt: skip
    found = letin.device(ISSUER, 200, whole, NOW)
    assert isinstance(found, Device)
    assert (found.whole_url, found.interval_ms, found.until_ms) == ("https://a.example/e?c=AB", 5_000, NOW + 900_000)
    theirs = letin.device(OPENAI, 200, answer(device_auth_id="d", usercode="AB", interval="3"), NOW)
    assert theirs == Device("AB", "https://a.example/enter", "d", 3_000, NOW + 900_000)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b""),
        (400, answer(error="unauthorized_client")),
        (200, answer(user_code="AB")),
        (200, answer(user_code="AB", device_code="d", verification_uri="http://evil.example/")),
    ],
)
def test_a_device_is_given_none(status: int, body: bytes) -> None:
    assert isinstance(letin.device(ISSUER, status, body, NOW), Refused)


def test_a_device_asks() -> None:
    device = Device("AB", "https://a.example/e", "d", 5_000, NOW)
    assert letin.poll_form(ISSUER, device)["device_code"] == "d"
    assert letin.poll_form(OPENAI, device) == {"device_auth_id": "d", "user_code": "AB"}
    assert isinstance(letin.polled(ISSUER, 200, answer(access_token="a"), NOW), Tokens)
    assert letin.polled(OPENAI, 403, b"", NOW) == Refused("pending", "nobody has entered the code yet")
    found = letin.polled(OPENAI, 200, answer(authorization_code="c", code_verifier="v"), NOW)
    assert found == Granted("c", "v")
    assert isinstance(letin.polled(OPENAI, 200, answer(authorization_code="c"), NOW), Refused)
    assert isinstance(letin.polled(OPENAI, 500, b"", NOW), Refused)


def test_a_device_waits() -> None:
    state = letin.waiting(Device("AB", "https://a.example/e", "d", 200, NOW + 100_000))
    assert state == Waiting(1_000, NOW + 100_000)
    state, effect = letin.step(state, Refused("pending", ""), NOW)
    assert effect == Ask(1_000)
    state, effect = letin.step(state, Refused("slow", ""), NOW)
    assert effect == Ask(6_000)
    state, effect = letin.step(state, Refused("passing", ""), NOW)
    assert effect == Ask(12_000)
    _, effect = letin.step(state, Refused("pending", ""), NOW + 90_000)
    assert effect == GiveUp(letin.OVER)
    assert letin.step(state, Refused("expired", "x"), NOW)[1] == GiveUp(letin.OVER)
    assert letin.step(state, Refused("denied", "the person said no"), NOW)[1] == GiveUp("the person said no")
    assert letin.step(Waiting(50_000, NOW + 900_000), Refused("passing", ""), NOW)[1] == Ask(60_000)
