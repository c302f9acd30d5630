from __future__ import annotations

import pytest

from garra.core.addresses import inner, loopback, own, public


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_open(address: str) -> None:
    assert public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "64:ff9b::7f00:1",
        "64:ff9b:1::a00:1",
        "192.0.0.192",
        "::ffff:192.0.0.192",
        "192.88.99.1",
        "fec0::1",
        "3fff::1",
        "5f00::1",
        "localhost",
        "",
    ],
)
def test_closed(address: str) -> None:
    assert not public(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "::ffff:127.0.0.1", "::1%lo"])
def test_this_machine(address: str) -> None:
    assert loopback(address)


@pytest.mark.parametrize(
    "address", ["localhost", "127.evil.example", "0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", ""]
)
def test_not_this_machine(address: str) -> None:
    assert not loopback(address)


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "[::1]", "box", "Box.LAN.", "db.internal", "127.0.0.1", "169.254.169.254", "fe80::1%eth0"]
)
def test_a_host_of_ones_own_network(host: str) -> None:
    assert inner(host)


@pytest.mark.parametrize("host", ["example.com", "1.1.1.1", "[2606:4700::1111]", "lan.example"])
def test_a_host_of_the_internet_or_nobody_knows(host: str) -> None:
    assert not inner(host)


def test_this_very_machine() -> None:
    near = ["localhost", "a.localhost", "127.0.0.1", "[::1]", "169.254.169.254", "fe80::1"]
    assert [host for host in [*near, "10.0.0.1", "box.lan", "example.com"] if own(host)] == near
