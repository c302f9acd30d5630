"""OAuth's decisions: addresses and answers."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from garra.core import oauth
from garra.core.errors import Forbidden, UserError
from garra.core.oauth import Issuer, Refused, Ticket, Tokens
from garra.core.secret import Secret

NOW = 1_790_000_000_000
ISSUER = Issuer("me", "https://a.example/token", "https://a.example/authorize", scopes=("one", "two"))
TICKET = Ticket("state", "verifier", "http://127.0.0.1:9/back")
OPENAI = Issuer("me", "https://a.example/token", style="openai", verify_url="https://a.example/enter")


def jwt(**claims: Any) -> str:
    return f"h.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.s"


def answer(**body: Any) -> bytes:
    return json.dumps(body).encode()


def test_the_challenge_of_the_standard() -> None:
    """RFC 7636, appendix B."""
    assert (
        oauth.challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


def test_the_address_that_a_person_opens() -> None:
    asked = parse_qs(urlsplit(oauth.address(ISSUER, TICKET)).query)
    assert asked["state"] == ["state"]
    assert asked["scope"] == ["one two"]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["code_challenge"] == [oauth.challenge("verifier")]
    more = Issuer("me", "https://a.example/token", "https://a.example/authorize?x=1", params={"y": "2"})
    assert oauth.address(more, TICKET).startswith("https://a.example/authorize?x=1&response_type=code")
    assert "scope" not in oauth.address(more, TICKET)
    assert oauth.address(more, TICKET).endswith("y=2")


def test_an_issuer_of_data() -> None:
    body = {"client_id": "me", "token_url": "https://a.example/t", "scopes": ["s"], "params": {"a": 1}, "json": True}
    found = oauth.issuer(body, "here")
    assert (found.client_id, found.scopes, found.params, found.json, found.style) == ("me", ("s",), {"a": "1"}, True,
                                                                                     "standard")  # fmt: skip
    assert found.origin == "https://a.example"
    assert oauth.issuer({**body, "style": "openai"}, "here").style == "openai"
    local = {**body, "token_url": "http://127.0.0.1:8/t", "redirect_url": "http://localhost:1/back"}
    assert oauth.issuer(local, "here").origin == "http://127.0.0.1:8"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"client_id": "me", "token_url": "http://a.example/t"}, "https"),
        ({"client_id": "me", "token_url": "https://u:p@a.example/t"}, "https"),
        ({"client_id": "me", "token_url": "https://[::/t"}, "https"),
        ({"client_id": "me", "token_url": "ftp://127.0.0.1/t"}, "https"),
        ({"client_id": "me"}, "needed"),
        ({"token_url": "https://a.example/t"}, "needed"),
        ({"client_id": "me", "token_url": "https://a.example/t", "redirect_url": "https://b.example/"}, "this machine"),
    ],
)
def test_an_issuer_that_is_none(body: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        oauth.issuer(body, "here")


def test_the_browser_comes_back() -> None:
    assert oauth.code("code=abc&state=state", TICKET) == "abc"
    with pytest.raises(Forbidden, match="another login"):
        oauth.code("code=abc&state=other", TICKET)
    with pytest.raises(Forbidden, match="another login"):
        oauth.code("code=abc", TICKET)
    with pytest.raises(Forbidden, match="no code"):
        oauth.code("state=state", TICKET)
    with pytest.raises(UserError, match=r"access_denied: the person said\? no") as said:
        oauth.code("state=state&error=access_denied&error_description=the+person%1b+said%3f+no", TICKET)
    assert "\x1b" not in said.value.message


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:1455/auth/callback?code=abc&state=state",
        "  'http://localhost:1455/auth/callback#code=abc&state=state' ",
        "?code=abc&state=state",
        "code=abc&state=state",
        "abc#state",
        "abc",
    ],
)
def test_what_a_person_pastes(text: str) -> None:
    assert oauth.pasted(text, TICKET) == "abc"


@pytest.mark.parametrize("text", ["", "two words", "https://a.example/", "abc#other", "code=abc&state=other"])
def test_what_is_no_answer(text: str) -> None:
    with pytest.raises(Forbidden):
        oauth.pasted(text, TICKET)


def test_what_is_sent() -> None:
    assert oauth.code_form(ISSUER, "abc", TICKET)["code_verifier"] == "verifier"
    assert oauth.refresh_form(ISSUER, "r") == {
        "grant_type": "refresh_token", "refresh_token": "r", "client_id": "me", "scope": "one two",
    }  # fmt: skip
    assert "scope" not in oauth.refresh_form(OPENAI, "r")


def test_tokens() -> None:
    own = {"https://api.openai.com/auth": {"chatgpt_account_id": "acc"}, "sub": "s"}
    body = answer(access_token=jwt(**own), refresh_token=" r ", expires_in=3600, id_token=jwt(email="a@b.c"))
    found = oauth.tokens(200, body, NOW)
    assert found == Tokens(Secret(jwt(**own)), Secret("r"), NOW + 3_600_000, "acc", "a@b.c")


@pytest.mark.parametrize(
    ("more", "ends"),
    [
        ({"expires_in": "60"}, NOW + 60_000),
        ({"expires_in": 0.5}, NOW + 500),
        ({"expires_in": True}, None),
        ({"expires_in": -5}, None),
        ({}, None),
        ({"access_token": jwt(exp=1_790_000_100)}, 1_790_000_100_000),
        ({"access_token": jwt(exp=-1)}, None),
    ],
)
def test_when_an_access_ends(more: dict[str, Any], ends: int | None) -> None:
    found = oauth.tokens(200, answer(**{"access_token": "a", **more}), NOW)
    assert isinstance(found, Tokens)
    assert (found.expires_ms, found.refresh, found.email, found.account) == (ends, Secret(""), "", "")


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (400, answer(error="invalid_grant", error_description="reused"), "grant"),
        (401, answer(error={"code": "refresh_token_reused", "message": "used twice"}), "grant"),
        (400, answer(error={"type": "odd"}), "refused"),
        (400, answer(error={}), "refused"),
        (503, b"<html>", "passing"),
        (429, b"", "passing"),
        (400, b"[]", "refused"),
        (200, answer(error="slow_down"), "slow"),
        (200, answer(access_token=" "), "refused"),
        (200, answer(access_token=3), "refused"),
    ],
)
def test_no_tokens(status: int, body: bytes, why: str) -> None:
    found = oauth.tokens(status, body, NOW)
    assert isinstance(found, Refused)
    assert found.why == why
    assert found.words


def test_what_a_token_says_of_itself() -> None:
    assert oauth.claims(jwt(sub="a")) == {"sub": "a"}
    assert oauth.claims("opaque") == {}
    assert oauth.claims("a.b!.c") == {}
    assert oauth.claims(f"a.{base64.urlsafe_b64encode(b'[1]').decode()}.c") == {}
