"""Signatures, against the published example of Standard Webhooks."""

from __future__ import annotations

import pytest

from garra.builtin.channels.webhook import signing
from garra.builtin.channels.webhook.signing import Signed, Unsigned

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
ID, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
KEY = signing.key(SECRET)
OTHER = signing.key("whsec_" + "A" * 32)


def heads(**more: str) -> dict[str, str]:
    found = {"webhook-id": ID, "webhook-timestamp": str(AT), "webhook-signature": f"v1,{SIGNATURE}"}
    return {**found, **{name.replace("_", "-"): value for name, value in more.items()}}


def test_the_published_example() -> None:
    assert signing.signature(KEY, ID, AT, BODY) == SIGNATURE
    assert signing.headers(ID, AT, BODY, [KEY]) == heads()
    assert signing.verified(signing.head(heads(), AT), BODY, [KEY])


def test_two_secrets_sign_and_either_is_known() -> None:
    both = signing.headers(ID, AT, BODY, [OTHER, KEY])
    assert len(both["webhook-signature"].split()) == 2
    for keys in ([KEY], [OTHER], [OTHER, KEY]):
        assert signing.verified(signing.head(both, AT), BODY, keys)
    one = signing.headers(ID, AT, BODY, [KEY])
    assert signing.verified(signing.head(one, AT), BODY, [OTHER, KEY])
    assert not signing.verified(signing.head(one, AT), BODY, [OTHER])
    assert not signing.verified(signing.head(one, AT), BODY, [])


@pytest.mark.parametrize(
    "changed", [Signed("other", AT, ()), Signed(ID, AT + 1, ()), Signed(ID, AT, (b"v1",)), Signed(ID, AT, (b"",))]
)
def test_what_was_changed_is_not_known(changed: Signed) -> None:
    given = changed.signatures or (SIGNATURE.encode(),)
    assert not signing.verified(Signed(changed.id, changed.timestamp, given), BODY, [KEY])
    assert not signing.verified(Signed(ID, AT, (SIGNATURE.encode(),)), BODY + b" ", [KEY])


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ({}, "webhook-id"),
        (heads(webhook_id=""), "webhook-id"),
        (heads(webhook_id="x" * 257), "webhook-id"),
        (heads(webhook_id="a\nb"), "webhook-id"),
        (heads(webhook_timestamp="soon"), "webhook-timestamp"),
        (heads(webhook_timestamp="-1"), "webhook-timestamp"),
        (heads(webhook_timestamp="١٢"), "webhook-timestamp"),
        (heads(webhook_timestamp="9" * 40), "webhook-timestamp"),
        (heads(webhook_timestamp=str(AT - 301)), "300 s off"),
        (heads(webhook_timestamp=str(AT + 301)), "300 s off"),
        (heads(webhook_signature=""), "webhook-signature"),
        (heads(webhook_signature=f"v1a,{SIGNATURE}"), "holds no v1"),
        (heads(webhook_signature=SIGNATURE), "holds no v1"),
    ],
)
def test_a_head_that_has_no_chance(head: dict[str, str], says: str) -> None:
    with pytest.raises(Unsigned, match=says):
        signing.head(head, AT)


def test_the_window_is_five_minutes_both_ways() -> None:
    assert signing.head(heads(), AT + 300).id == ID
    assert signing.head(heads(), AT - 300).id == ID


def test_unknown_versions_are_passed_over_and_only_so_many_are_looked_at() -> None:
    assert signing.head(heads(webhook_signature=f"v2,x v1,{SIGNATURE} v1a,y"), AT).signatures == (SIGNATURE.encode(),)
    many = " ".join(["v1,x"] * 500)
    assert len(signing.head(heads(webhook_signature=many), AT).signatures) == 16


@pytest.mark.parametrize(("secret", "says"), [("whsec_c2hvcnQ=", "holds 5 bytes"), ("whsec_***", "is not base64")])
def test_a_weak_secret_is_told_without_showing_it(secret: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        signing.key(secret)
    assert secret not in str(caught.value)
