"""The blocking client, against a real socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from garra.client import quick
from garra.client.quick import Refused
from garra.client.socket import Unreachable, masked, parts
from garra.client.target import Target
from tests.client.gateway import TOKEN, Caller, Refuse, running


async def ask(target: Target, method: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
    return await asyncio.to_thread(quick.call, target, method, params, **more)


async def echo(_: Caller, params: dict[str, Any]) -> Any:
    return params


async def test_calls_a_method_and_gives_its_payload() -> None:
    async with running({"echo": echo}) as gateway:
        assert await ask(Target(gateway.url, TOKEN), "echo", {"words": "你好"}) == {"words": "你好"}
    connect = gateway.connects[0]
    assert (connect["minProtocol"], connect["maxProtocol"], connect["role"]) == (4, 4, "operator")
    assert (connect["client"]["id"], connect["client"]["mode"], connect["scopes"]) == ("cli", "cli", ["operator.read"])
    assert "device" not in connect


@pytest.mark.parametrize("size", [1, 125, 126, 65_535, 65_536, 3_000_000])
async def test_messages_of_every_length_form_go_both_ways(size: int) -> None:
    async with running({"echo": echo}) as gateway:
        assert await ask(Target(gateway.url, TOKEN), "echo", {"x": "a" * size}) == {"x": "a" * size}


async def test_an_error_of_the_gateway_is_raised_with_its_code_and_payload() -> None:
    async def agent(_: Caller, params: dict[str, Any]) -> Any:
        raise Refuse("UNAVAILABLE", "no model", {"runId": "r1"})

    async with running({"agent": agent}) as gateway:
        with pytest.raises(Refused, match="no model") as refused:
            await ask(Target(gateway.url, TOKEN), "agent")
        assert (refused.value.code, refused.value.payload) == ("UNAVAILABLE", {"runId": "r1"})
        with pytest.raises(Refused, match="unknown method: nope"):
            await ask(Target(gateway.url, TOKEN), "nope")


async def test_of_two_answers_the_last_can_be_waited_for_through_events_and_pings() -> None:
    async def agent(caller: Caller, params: dict[str, Any]) -> Any:
        await caller.early({"runId": "r1", "status": "accepted"})
        await caller.event("tick", {"ts": 1}, 1)
        await (await caller.socket.ping())
        return {"runId": "r1", "status": "ok"}

    async with running({"agent": agent}) as gateway:
        assert (await ask(Target(gateway.url, TOKEN), "agent", last=True))["status"] == "ok"
        assert (await ask(Target(gateway.url, TOKEN), "agent"))["status"] == "accepted"


async def test_a_wrong_token_is_refused_and_nobody_is_unreachable() -> None:
    async with running() as gateway:
        with pytest.raises(Refused, match="token mismatch"):
            await ask(Target(gateway.url, "wrong"), "health")
        assert await asyncio.to_thread(quick.alive, Target(gateway.url, TOKEN))
        assert not await asyncio.to_thread(quick.alive, Target(gateway.url, "wrong"))
    with pytest.raises(Unreachable, match=r"no gateway answers .*\. Start one with: garra gateway run") as nobody:
        await ask(Target(gateway.url, TOKEN), "health")
    assert nobody.value.details == {"kind": "refused"}


async def test_a_gateway_that_is_still_starting_is_waited_for_as_long_as_there_is_time() -> None:
    async with running({"echo": echo}) as gateway:
        gateway.starting = 2
        assert await ask(Target(gateway.url, TOKEN), "echo", {"x": 1}) == {"x": 1}
        assert len(gateway.connects) == 3
        gateway.starting = 1_000
        with pytest.raises(Refused, match="not ready yet"):
            await ask(Target(gateway.url, TOKEN), "echo", timeout_s=0.35)


async def test_a_gateway_that_does_not_answer_in_time_is_said_so() -> None:
    async def never(_: Caller, params: dict[str, Any]) -> Any:
        await asyncio.sleep(0.6)

    async with running({"slow": never}) as gateway:
        with pytest.raises(Unreachable, match="no answer") as late:
            await ask(Target(gateway.url, TOKEN), "slow", timeout_s=0.2)
        assert late.value.details == {"kind": "timeout"}


async def test_a_close_is_told_with_its_code_and_reason() -> None:
    async def leave(caller: Caller, params: dict[str, Any]) -> Any:
        await caller.socket.close(1012, "service restart")

    async with running({"leave": leave}) as gateway:
        with pytest.raises(Unreachable, match="service restart") as gone:
            await ask(Target(gateway.url, TOKEN), "leave")
    assert gone.value.details == {"kind": "closed", "code": 1012, "reason": "service restart"}


def answer_once(reply: bytes) -> int:
    """A server that answers one connection with `reply`; gives its port."""
    server = socket.create_server(("127.0.0.1", 0))

    def work() -> None:
        with server, server.accept()[0] as peer:
            peer.recv(4096)
            peer.sendall(reply)

    threading.Thread(target=work, daemon=True).start()
    port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("reply", [b"HTTP/1.1 200 OK\r\n\r\nhello", b"x" * 70_000, b""])
def test_what_is_no_gateway_is_not_mistaken_for_one(reply: bytes) -> None:
    with pytest.raises(Unreachable):
        quick.call(Target(f"ws://127.0.0.1:{answer_once(reply)}", TOKEN), "health", timeout_s=2)


def test_addresses() -> None:
    assert parts("ws://localhost:1/x") == (False, "localhost", 1, "/x")
    assert parts("wss://gate.example/a/b") == (True, "gate.example", 443, "/a/b")
    assert parts("ws://[::1]:9") == (False, "::1", 9, "/")
    assert parts("ws://[::1]") == (False, "::1", 80, "/")
    with pytest.raises(Unreachable, match="no gateway's address"):
        parts("ws://host:port")


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 100])
def test_a_mask_twice_is_nothing(size: int) -> None:
    data, mask = bytes(range(size)), b"\x01\x02\x03\xff"
    assert masked(masked(data, mask), mask) == data
    if size:
        assert masked(data, mask)[0] == 0 ^ 1
