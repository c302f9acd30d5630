"""Where a connection comes from: peers, proxies, Host and Origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from garra.gateway.origin import Approach, Barred, Grounds, approach, is_loopback, networks
from tests.gateway.house import Key, guest, knocking, refusal, running

HOME = Grounds()
BEHIND = Grounds(proxies=networks(["10.0.0.0/8", "nonsense"]))


def seen(peer: str, grounds: Grounds = HOME, **headers: str) -> Approach | Barred:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return approach(peer, {"host": "127.0.0.1:18789", **named}, grounds)


def came(peer: str, grounds: Grounds = HOME, **headers: str) -> Approach:
    found = seen(peer, grounds, **headers)
    assert isinstance(found, Approach)
    return found


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("::1%lo", True),
        ("127.evil.com", False),
        ("localhost", False),
        ("127.1", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_loopback_is_an_address_not_a_name(text: str, local: bool) -> None:
    assert is_loopback(text) is local


@pytest.mark.parametrize(
    "host",
    ["evil.com", "127.evil.com", "localhost.", "127.0.0.1.evil.com", "a@127.0.0.1", "", "127.0.0.1, evil.com", "127.1"],
)
def test_a_foreign_host_is_barred_where_only_this_machine_is_served(host: str) -> None:
    assert isinstance(seen("127.0.0.1", host=host), Barred)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:18789", "127.0.0.1:1", "[::1]:18789"])
def test_our_own_names_are_fine(host: str) -> None:
    assert came("127.0.0.1", host=host).loopback


def test_a_configured_origins_host_is_ours_too() -> None:
    grounds = Grounds(origins=("https://claw.example:8443",))
    assert came("127.0.0.1", grounds, host="claw.example:8443").loopback
    assert isinstance(seen("127.0.0.1", grounds, host="claw.example"), Barred)


def test_where_others_are_served_any_host_that_is_one_is_fine() -> None:
    open_to_all = Grounds(local_only=False)
    assert not came("192.168.0.9", open_to_all, host="box.local:18789").loopback
    assert isinstance(seen("192.168.0.9", open_to_all, host="box local"), Barred)


@pytest.mark.parametrize("header", ["x_forwarded_for", "x_real_ip", "forwarded", "x_forwarded_host"])
def test_nobody_but_a_trusted_proxy_may_speak_for_another(header: str) -> None:
    assert isinstance(seen("127.0.0.1", HOME, **{header: "127.0.0.1"}), Barred)
    assert isinstance(seen("11.0.0.1", BEHIND, **{header: "127.0.0.1"}), Barred)


def test_behind_a_proxy_the_client_is_the_last_hop_that_is_not_ours() -> None:
    found = came(
        "10.0.0.1", BEHIND, x_forwarded_for="127.0.0.1, 203.0.113.7, 10.0.0.2", x_forwarded_host="Claw.example"
    )
    assert (found.address, found.loopback, found.host) == ("203.0.113.7", False, "claw.example")
    assert came("10.0.0.1", BEHIND, x_forwarded_for="203.0.113.7, junk").address == "10.0.0.1"
    assert came("10.0.0.1", BEHIND, x_forwarded_for="10.0.0.3").address == "10.0.0.1"
    assert came("10.0.0.1", BEHIND, x_real_ip="203.0.113.9").address == "203.0.113.9"


@pytest.mark.parametrize(
    ("origin", "foreign"),
    [
        ("http://127.0.0.1:18789", False),
        ("http://127.0.0.1", True),
        ("http://localhost:18789", True),
        ("https://127.0.0.1:18789", False),
        ("null", True),
        ("http://evil.example", True),
        ("file://127.0.0.1:18789", True),
        ("https://Claw.example", False),
    ],
)
def test_an_origin_is_ours_or_listed(origin: str, foreign: bool) -> None:
    assert came("127.0.0.1", Grounds(origins=("https://claw.example",)), origin=origin).foreign is foreign


def test_an_origin_may_leave_out_the_usual_port_and_any_may_be_allowed() -> None:
    assert not came("127.0.0.1", host="localhost:80", origin="http://localhost").foreign
    assert not came("127.0.0.1", Grounds(origins=("*",)), origin="http://evil.example").foreign


@pytest.mark.parametrize(
    "headers", [{"X-Forwarded-For": "127.0.0.1"}, {"Host": "127.evil.com"}, {"Host": "localhost."}, {"Forwarded": "x"}]
)
async def test_the_upgrade_itself_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async with running(tmp_path) as house:
        with pytest.raises(InvalidStatus) as refused:
            async with knocking(house, additional_headers=headers):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize("client", [("openclaw-control-ui", "webchat"), ("gateway-client", "backend")])
async def test_a_foreign_page_is_told_no_whatever_it_calls_itself(tmp_path: Path, client: tuple[str, str]) -> None:
    async with running(tmp_path) as house:
        asked: dict[str, Any] = {"client": client, "headers": {"Origin": "http://evil.example"}}
        error, detail = await refusal(guest(house, **asked))
        assert (error["code"], detail) == ("INVALID_REQUEST", "CONTROL_UI_ORIGIN_NOT_ALLOWED")


async def test_a_page_of_ours_comes_in_as_a_device(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        asked: dict[str, Any] = {"client": ("openclaw-control-ui", "webchat"), "key": Key()}
        headers = {"Origin": f"http://127.0.0.1:{house.port}"}
        async with guest(house, headers=headers, **asked) as who:
            assert who.hello["auth"]["deviceToken"]
