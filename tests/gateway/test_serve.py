"""The port: bound first or not at all, never open without a secret, its start told step by step."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from garra.config.load import load
from garra.config.paths import Paths
from garra.config.sections import Config
from garra.core.errors import UserError
from garra.gateway import door
from garra.gateway.serve import STEPS, Trace, bind
from tests.gateway.house import Hands, Key, guest, running


def config(**gateway: object) -> Config:
    return Config.model_validate({"gateway": gateway})


@pytest.mark.req("BOOT-10")
def test_a_start_is_twelve_named_steps_in_order() -> None:
    clock = Hands()
    trace = Trace(clock)
    for name in STEPS:
        with trace.step(name):
            clock.now += 0.002
    assert [timed.name for timed in trace.steps] == list(STEPS)
    assert len(STEPS) == 12
    assert trace.total_ms == pytest.approx(24.0)
    assert str(trace).startswith("lock 2 ms · config 2 ms")
    for wrong in ("lock", "lunch"):
        with pytest.raises(ValueError, match="cannot follow ready"), trace.step(wrong):
            pass


def test_a_step_that_fails_is_not_told_as_done() -> None:
    trace = Trace(Hands())
    with pytest.raises(UserError), trace.step("config"):
        raise UserError("broken")
    assert trace.steps == []


@pytest.mark.req("OV-01")
def test_a_port_in_use_is_one_clear_line_and_nothing_stays_bound() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} on 127.0.0.1 is in use") as refused:
            bind(("127.0.0.1",), port)
        assert "\n" not in refused.value.message
        with pytest.raises(UserError):
            bind(("127.0.0.2", "127.0.0.1"), port)
        with socket.socket() as free:
            free.bind(("127.0.0.2", port))


def test_what_else_keeps_a_port_from_opening() -> None:
    with pytest.raises(UserError, match=r"192\.0\.2\.1 is no address of this machine"):
        bind(("192.0.2.1",), 0)
    with pytest.raises(UserError, match="cannot listen on"):
        bind(("300.1.1.1",), 0)


def test_loopback_is_bound_on_both_its_addresses_and_only_there() -> None:
    sockets = bind(door.hosts(config()), 0)
    ports = {sock.getsockname()[1] for sock in sockets}
    hosts = {sock.getsockname()[0] for sock in sockets}
    for sock in sockets:
        sock.close()
    assert len(ports) == 1
    assert "127.0.0.1" in hosts
    assert hosts <= {"127.0.0.1", "::1"}


@pytest.mark.req("SEC-07")
@pytest.mark.parametrize("auth", [{}, {"mode": "token", "token": ""}, {"mode": "none"}, {"mode": "trusted-proxy"}])
def test_no_secret_no_open_port(auth: dict[str, str]) -> None:
    found = config(bind="lan", auth=auth)
    made = door.read(found, {}, spare=door.new_token())
    with pytest.raises(UserError) as refused:
        door.check_bind(made, door.hosts(found), 18_789)
    assert refused.value.message == (
        "refusing to bind gateway to 0.0.0.0:18789 without auth (set gateway.auth.token/password, or set "
        "GARRA_GATEWAY_TOKEN/GARRA_GATEWAY_PASSWORD)"
    )


@pytest.mark.parametrize(
    ("gateway", "env"),
    [
        ({"bind": "lan", "auth": {"token": "t"}}, {}),
        ({"bind": "lan"}, {"GARRA_GATEWAY_TOKEN": "t"}),
        ({"bind": "lan"}, {"GARRA_GATEWAY_PASSWORD": "p"}),
        ({"bind": "lan", "auth": {"mode": "trusted-proxy"}, "trustedProxies": ["10.0.0.1"]}, {}),
        ({"bind": "loopback", "auth": {"mode": "none"}}, {}),
        ({"bind": "custom", "customBindHost": "127.0.0.9"}, {}),
    ],
)
def test_with_a_secret_or_at_home_it_may_open(gateway: dict[str, object], env: dict[str, str]) -> None:
    found = config(**gateway)
    door.check_bind(door.read(found, env), door.hosts(found), 1)


def test_a_custom_bind_needs_an_address() -> None:
    with pytest.raises(UserError, match=r"set gateway\.customBindHost"):
        door.hosts(config(bind="custom"))
    assert door.hosts(config(bind="lan")) == ("0.0.0.0",)


@pytest.mark.req("SEC-09")
def test_a_generated_token_is_in_no_file_and_another_next_time(tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path / "state", tmp_path / "state" / "garra.json")
    tokens = set()
    for _ in range(2):
        made = door.read(load(paths, {}).config, {}, spare=door.new_token())
        assert made.generated
        assert made.mode == "token"
        tokens.add(made.secret.reveal())
    assert len(tokens) == 2
    written = [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(token in text for token in tokens for text in written)


def test_what_the_file_says_comes_before_the_environment() -> None:
    made = door.read(config(auth={"token": "file"}), {"GARRA_GATEWAY_TOKEN": "variable"}, spare="spare")
    assert made.secret.reveal() == "file"
    assert not made.generated
    assert door.read(config(), {"OPENCLAW_GATEWAY_TOKEN": "t"}, "OPENCLAW").secret.reveal() == "t"
    assert door.read(config(auth={"password": "p"}), {}).mode == "password"


async def http(port: int, *lines: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join((*lines, "", "")).encode())
    answer = await reader.read(-1)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_http_stands_on_the_same_port_behind_the_same_guard(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        ask = ("GET /healthz HTTP/1.1", "Connection: close")
        good = await http(house.port, *ask, f"Host: 127.0.0.1:{house.port}")
        assert good.startswith(b"HTTP/1.1 200")
        assert good.endswith(b"alive")
        foreign = ("Host: evil.com", "Host: localhost\r\nHost: evil.com")
        through = ("Host: localhost\r\nX-Forwarded-For: 127.0.0.1", "Host: localhost\r\nOrigin: http://evil.com")
        for bad in (*foreign, *through):
            assert (await http(house.port, *ask, bad)).startswith(b"HTTP/1.1 403"), bad


@pytest.mark.req("OV-01")
async def test_it_answers_on_loopback(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house, key=Key(), client=("openclaw-tui", "ui")) as who:
        assert await who.call("echo", {"text": "x"}) == {"text": "x"}
