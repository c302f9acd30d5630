from __future__ import annotations

import pytest

from garra.core.hosts import Hosts, plain


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("example.com", "check"),
        ("wiki.lan", "open"),
        ("WIKI.LAN.", "open"),
        ("evil.wiki.lan", "check"),
        ("[::1]", "open"),
        ("tracker.example.com", "closed"),
        ("a.ads.example.com.", "closed"),
        ("ads.example.com", "check"),
        ("badads.example.com", "check"),
    ],
)
def test_what_the_owner_says_of_a_host(host: str, verdict: str) -> None:
    hosts = Hosts(("Wiki.lan", "::1"), ("Tracker.example.com.", "*.ads.example.com"))
    assert hosts.verdict(host) == verdict


def test_everything_may_be_open_but_what_is_blocked() -> None:
    hosts = Hosts(blocked=("x",), private=True)
    assert (hosts.verdict("10.0.0.1"), hosts.verdict("x.")) == ("open", "closed")
    assert Hosts().verdict("10.0.0.1") == "check"


def test_a_host_is_compared_without_its_clothes() -> None:
    assert plain(" [::1] ") == "::1"
    assert plain("A.b.") == "a.b"
