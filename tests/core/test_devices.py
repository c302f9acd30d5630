"""How a device proves itself, and what its knock comes to."""

from __future__ import annotations

from typing import Any

import pytest

from garra.core.devices import (
    SKEW_MS,
    TOKENS,
    Ask,
    Device,
    Grant,
    Knock,
    Pair,
    Reject,
    Welcome,
    digest,
    fingerprint,
    flaw,
    judge,
    matches,
    plain,
    raw,
    signed_texts,
    widened,
    wish,
)
from garra.core.frames import AuthInfo, ClientInfo, Connect, DeviceInfo
from garra.core.scopes import ADMIN, READ, WRITE

PUBLIC = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w"
ID = "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e"
AT = 1_796_044_794_906


def claim(device: dict[str, Any] | None = None, **more: Any) -> Connect:
    given = {"id": ID, "public_key": PUBLIC, "signature": "s", "signed_at": AT, "nonce": "n-1", **(device or {})}
    client = ClientInfo("openclaw-tui", "2026.9.6", " Linux ", "ui", device_family="Linux", display_name="tui")
    settings: dict[str, Any] = {"auth": AuthInfo(token="t-1"), **more}
    return Connect(4, 4, client, scopes=(ADMIN, READ), device=DeviceInfo(**given), **settings)


def test_the_signed_text_is_the_originals() -> None:
    third, second = signed_texts(claim())
    common = f"{ID}|openclaw-tui|ui|operator|operator.admin,operator.read|{AT}|t-1|n-1"
    assert third == f"v3|{common}|linux|linux".encode()
    assert second == f"v2|{common}".encode()


@pytest.mark.parametrize(
    ("auth", "token"),
    [
        (AuthInfo(token="a", device_token="b"), "a"),
        (AuthInfo(device_token="b", bootstrap_token="c"), "b"),
        (AuthInfo(bootstrap_token="c"), "c"),
        (AuthInfo(password="p"), ""),
    ],
)
def test_the_token_in_the_text_is_never_a_password(auth: AuthInfo, token: str) -> None:
    assert signed_texts(claim(auth=auth))[0].decode().split("|")[7] == token


def test_only_ascii_letters_are_lowered() -> None:
    assert plain("  ÀBC-İ ") == "Àbc-İ"
    assert plain(None) == ""


def test_an_id_is_the_hash_of_a_key_of_32_bytes() -> None:
    assert fingerprint(PUBLIC) == ID
    assert fingerprint("AAAA") is None
    assert fingerprint("not base64!") is None
    assert raw("é") is None


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ({}, None),
        ({"id": "0" * 64}, "device-id-mismatch"),
        ({"public_key": "AAAA"}, "device-id-mismatch"),
        ({"signed_at": AT - 100_000}, None),
        ({"signed_at": AT - SKEW_MS - 1}, "device-signature-stale"),
        ({"signed_at": AT + 700_000}, "device-signature-stale"),
        ({"nonce": " "}, "device-nonce-missing"),
        ({"nonce": "other"}, "device-nonce-mismatch"),
        ({"nonce": "other-é"}, "device-nonce-mismatch"),
    ],
)
def test_flaws_in_order(device: dict[str, Any], expected: str | None) -> None:
    assert flaw(claim(device), "n-1", AT) == expected


def knock(**changes: Any) -> Knock:
    usual: dict[str, Any] = {
        "role": "operator",
        "scopes": (READ,),
        "platform": "linux",
        "family": "linux",
        "shared": False,
        "local": False,
    }
    return Knock(**{**usual, **changes})


def known(**changes: Any) -> Device:
    grant = changes.pop("grant", Grant((READ, WRITE), (digest("good"),)))
    usual: dict[str, Any] = {"platform": "linux", "family": "linux", "grants": {"operator": grant}}
    return Device(ID, PUBLIC, "cli", "cli", **{**usual, **changes})


def test_with_the_shared_secret_here_it_is_paired_and_widened_silently() -> None:
    here = {"shared": True, "local": True}
    assert judge(knock(**here), None) == Pair("not-paired")
    assert judge(knock(**here, scopes=(ADMIN,)), known()) == Pair("scope-upgrade")
    assert judge(knock(**here, role="node"), known()) == Pair("role-upgrade")
    assert judge(knock(**here, platform="darwin"), known()) == Pair("metadata-upgrade")
    assert judge(knock(**here), known()) == Welcome(by_token=False)


@pytest.mark.req("GW-15")
def test_from_afar_the_owner_is_asked() -> None:
    assert judge(knock(shared=True), None) == Ask("not-paired")
    assert judge(knock(shared=True, scopes=(ADMIN,)), known()) == Ask("scope-upgrade")
    assert judge(knock(shared=True, role="node"), known()) == Ask("role-upgrade")
    assert judge(knock(shared=True, family="mac"), known()) == Ask("metadata-upgrade")
    assert judge(knock(shared=True), known()) == Welcome(by_token=False)
    revoked = known(grant=Grant((READ,), (), revoked_at=1))
    assert judge(knock(shared=True), revoked) == Ask("not-paired")


def test_a_device_token_works_alone_and_cannot_grow() -> None:
    good = {"hashes": (digest("wrong"), digest("good")), "named": "deviceToken"}
    assert judge(knock(**good), known()) == Welcome(by_token=True)
    assert judge(knock(**good, scopes=(ADMIN,)), known()) == Reject("AUTH_SCOPE_MISMATCH")
    assert judge(knock(**good, platform="darwin"), known()) == Ask("metadata-upgrade")
    assert judge(knock(**good, family=""), known()) == Welcome(by_token=True)


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ("deviceToken", "AUTH_DEVICE_TOKEN_MISMATCH"),
        ("token", "AUTH_TOKEN_MISMATCH"),
        ("nothing", "AUTH_TOKEN_MISSING"),
    ],
)
def test_without_a_good_token_it_is_told_which_was_bad(named: Any, code: Any) -> None:
    assert judge(knock(named=named, hashes=(digest("bad"),)), known()) == Reject(code)
    assert judge(knock(named=named), None) == Reject(code)
    assert judge(knock(named=named, role="node"), known()) == Reject(code)


def test_a_revoked_grant_knows_no_token() -> None:
    assert not matches(Grant((READ,), (digest("good"),), revoked_at=5), (digest("good"),))


def test_a_grant_grows_and_its_old_tokens_end() -> None:
    first = widened(None, (READ,), "h1", 10)
    assert first == Grant((READ,), ("h1",), 10)
    same = widened(first, (READ,), "h2", 20)
    assert same == Grant((READ,), ("h1", "h2"), 10)
    more = widened(same, (WRITE,), "h3", 30)
    assert more == Grant((READ, WRITE), ("h3",), 10, 30)
    many = first
    for number in range(10):
        many = widened(many, (), f"n{number}", 40)
    assert many.hashes == ("n6", "n7", "n8", "n9")
    assert len(many.hashes) == TOKENS
    again = widened(Grant((ADMIN,), (), 1, revoked_at=5), (READ,), "h", 50)
    assert again == Grant((READ,), ("h",), 50)


def test_what_a_connect_asks_for() -> None:
    asked = wish(claim(), (READ,))
    assert (asked.device_id, asked.platform, asked.family, asked.name) == (ID, "linux", "linux", "tui")
    assert (asked.client_id, asked.client_mode, asked.role, asked.scopes) == ("openclaw-tui", "ui", "operator", (READ,))
