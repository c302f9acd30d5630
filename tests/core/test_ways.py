"""Which hosts a command may reach, by name and port."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.ways import CLOSED, Leave, Target, Way, Ways, covers, leave, no_way, target, unreached, way, words


def ways(*texts: str) -> Ways:
    found = [way(text) for text in texts]
    assert None not in found
    return Ways(tuple(each for each in found if each is not None))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("pypi.org", "pypi.org", None),
        (" PyPI.org. ", "pypi.org", None),
        ("*.pypi.org:8443", "*.pypi.org", 8443),
        ("*", "*", None),
        ("*:8080", "*", 8080),
        ("127.0.0.1:9000", "127.0.0.1", 9000),
        ("[::1]:80", "::1", 80),
        ("::1", "::1", None),
        ("2001:db8:0:0::1", "2001:db8::1", None),
        ("nas", "nas", None),
    ],
)
def test_entries(text: str, host: str, port: int | None) -> None:
    assert way(text) == Way(host, port)


@pytest.mark.parametrize(
    "text",
    [
        "", "*.com", "*.1.2", "a..b", "http://a", "a/b", "münchen.de", "0x7f.1", "127.1", "2130706433", "a:0", "*:0",
        "a:99999", "*x.org", "a.*", "**", "*.", "-a.org", "a b",
    ],
)  # fmt: skip
def test_what_is_no_entry(text: str) -> None:
    assert way(text) is None


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("127.1", 80), ("0x7f000001", 80), ("2130706433", 80), ("017700000001", 80), ("1.2.3.0x4", 80), ("a\0b", 80),
        ("a b", 80), ("a", 0), ("a", "80 "), ("a", "٣"), ("a", 65_536), ("a" * 300, 80), ("", 80), ("a@b", 80),
        ("a%2eb", 80),
    ],
)  # fmt: skip
def test_odd_spellings_are_no_hosts(host: str, port: str | int) -> None:
    assert target(host, port) is None


def test_hosts_are_compared_in_one_spelling() -> None:
    assert target("EXAMPLE.org.", "443") == Target("example.org", 443)
    assert str(target("example.org", 443)) == "example.org"
    assert str(target("example.org", 22)) == "example.org:22"
    assert str(target("[::1]", 22)) == "[::1]:22"
    assert str(target("[::FFFF:127.0.0.1]", 80)) == "[::ffff:7f00:1]"


@pytest.mark.parametrize(
    ("listed", "host", "port", "found"),
    [
        (("pypi.org",), "pypi.org", 443, "listed"),
        (("pypi.org",), "pypi.org", 80, "listed"),
        (("pypi.org",), "pypi.org", 8080, "no"),
        (("pypi.org:8080",), "pypi.org", 8080, "listed"),
        (("pypi.org:8080",), "pypi.org", 443, "no"),
        (("pypi.org",), "evil-pypi.org", 443, "no"),
        (("pypi.org",), "pypi.org.evil", 443, "no"),
        (("*.pypi.org",), "files.pypi.org", 443, "public"),
        (("*.pypi.org",), "pypi.org", 443, "no"),
        (("*.pypi.org",), "evilpypi.org", 443, "no"),
        (("*",), "anything.example", 443, "public"),
        (("*",), "anything.example", 25, "no"),
        (("*", "nas.lan"), "nas.lan", 80, "listed"),
        ((), "pypi.org", 443, "no"),
    ],
)
def test_ways(listed: tuple[str, ...], host: str, port: int, found: Leave) -> None:
    assert leave(ways(*listed), Target(host, port)) == found


def test_open_or_closed() -> None:
    assert not CLOSED.open
    assert Ways(asks=True).open
    assert ways("a.org").open


def test_what_a_yes_is_kept_under_tells_marked_turns_apart() -> None:
    assert covers(Target("a.org", 443)) == covers(Target("a.org", 80)) == "host:a.org:web"
    assert covers(Target("a.org", 5432)) == "host:a.org:5432"
    assert words(Target("a.org", 80)) == "a.org (ports 80 and 443)"
    assert words(Target("a.org", 5432)) == "a.org (port 5432 alone)"
    assert covers(Target("a.org", 443), marked=True) != covers(Target("a.org", 443))


@given(st.text(max_size=60), st.integers(-5, 70_000))
def test_whatever_is_asked_for_is_a_plain_host_or_nothing(host: str, port: int) -> None:
    found = target(host, port)
    if found is not None:
        assert target(found.host, found.port) == found
        assert found.host.isascii()
        assert way(f"[{found.host}]:{port}" if ":" in found.host else f"{found.host}:{port}") == Way(found.host, port)


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ("curl: (6) Could not resolve host: pypi.org", True),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", True),
        ("Failed to establish a new connection: [Errno 13] Permission denied", True),
        ("ping: socket: Operation not permitted", True),
        ("PermissionError: [Errno 13] Permission denied\n  s = socket.socket()", True),
        ("npm ERR! code EAI_AGAIN", True),
        ("cat: /etc/shadow: Permission denied", False),
        ("1 failed, 3 passed", False),
        ("Could not resolve host" + "x" * 5_000, False),
    ],
)
def test_what_wanted_a_network_is_known_by_its_words(output: str, *, wanted: bool) -> None:
    assert unreached(output) is wanted


def test_where_nothing_leads_out_it_is_said_what_would() -> None:
    assert "apt install bubblewrap" in no_way("landlock", 0)
    assert "lists" not in no_way("landlock", 0)
    assert "lists 1 host, and opens none" in no_way("landlock", 1)
    assert "lists 2 hosts" in no_way("docker", 2)
