"""What happens between knock and hello-ok, on real sockets."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from garra.core.frames import PREAUTH_BYTES
from garra.core.secret import Secret
from garra.gateway.door import Door
from garra.gateway.origin import Grounds, networks
from tests.gateway.house import ALL, TOKEN, Refused, Running, guest, knocking, params, refusal, running


async def knock(house: Running, *frames: str | bytes, **options: Any) -> tuple[list[dict[str, Any]], int | None, str]:
    """Send frames as they are -> (what came, close code, close reason)."""
    async with knocking(house, **options) as (who, _):
        for frame in frames:
            await who.socket.send(frame)
        code, reason = await who.closed()
        with suppress(ConnectionClosed):
            while True:
                who.heard.append(json.loads(await who.socket.recv()))
        return who.heard[1:], code, reason or ""


def connect(**changes: Any) -> str:
    return json.dumps({"type": "req", "id": "1", "method": "connect", "params": params(**changes)})


@pytest.mark.req("GW-06")
async def test_hello_ok_says_who_what_and_how(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        hello = who.hello
        assert (hello["type"], hello["protocol"]) == ("hello-ok", 4)
        assert set(hello["server"]) == {"version", "buildId", "bootId", "connId", "controlUiBuildSource"}
        assert hello["auth"] == {"method": "token", "role": "operator", "scopes": list(ALL)}
        assert hello["snapshot"]["stateDir"] == "/state"
        assert hello["snapshot"]["presence"][0]["mode"] == "gateway"
        assert hello["snapshot"]["health"]["ok"] is True
        assert hello["policy"]["maxPayload"] == 26_214_400
        assert hello["policy"]["maxBufferedBytes"] == 52_428_800
        assert hello["policy"]["tickIntervalMs"] == 30_000


@pytest.mark.req("GW-04")
async def test_what_is_advertised_is_what_there_is(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        names = who.hello["features"]["methods"]
        assert names == sorted(names)
        assert "echo" in names
        assert "hidden" not in names
        assert "connect" not in names
        assert await who.call("hidden") == {}
        assert "shutdown" in who.hello["features"]["events"]


async def test_any_path_and_no_compression(tmp_path: Path) -> None:
    async with running(tmp_path) as house, knocking(house, path="foo/bar?x=1") as (who, _):
        assert who.socket.protocol.extensions == []
        assert (await who.call("connect", params()))["type"] == "hello-ok"


@pytest.mark.req("GW-05")
async def test_the_first_frame_must_be_connect(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        read, code, reason = await knock(house, '{"type":"req","id":"1","method":"echo","params":{"text":"x"}}')
        assert (code, reason) == (1008, "invalid handshake: first request must be connect")
        assert [frame["ok"] for frame in read] == [False]


@pytest.mark.parametrize(
    ("frame", "code", "reason"),
    [
        ("[]", 1008, "invalid request frame"),
        ('{"type":"req","id":"","method":"connect"}', 1008, "invalid request frame"),
        ('{"type":"req","id":"1","method":"connect","more":1}', 1008, "invalid request frame"),
        ("junk", 1000, ""),
        ('{"pad":"' + "x" * 65_000 + '"}', 1008, "invalid request frame"),
        ('{"pad":"' + "x" * PREAUTH_BYTES + '"}', 1009, ""),
    ],
)
@pytest.mark.req("GW-01", "GW-08")
async def test_junk_before_connect_closes(tmp_path: Path, frame: str, code: int, reason: str) -> None:
    async with running(tmp_path) as house:
        read, closed, why = await knock(house, frame)
        assert (read, closed, why) == ([], code, reason)


async def test_a_large_message_in_pieces_is_no_way_around_the_limit(tmp_path: Path) -> None:
    async with running(tmp_path) as house, knocking(house) as (who, _):

        async def pieces() -> Any:
            for _ in range(10):
                yield "x" * 10_000

        with suppress(ConnectionClosed):
            await who.socket.send(pieces())
        assert (await who.closed())[0] == 1009


@pytest.mark.req("GW-08")
async def test_after_connect_the_same_size_is_fine(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        text = "x" * 70_000
        assert (await who.call("echo", {"text": text}))["text"] == text
        head = b"\x81\xff" + (26_214_401).to_bytes(8, "big") + b"mask"
        who.socket.transport.write(head)
        assert await who.closed() == (1009, "")


@pytest.mark.req("GW-02")
@pytest.mark.parametrize(("low", "high"), [(4, 4), (3, 4), (4, 9)])
async def test_versions_that_hold_four_are_fine(tmp_path: Path, low: int, high: int) -> None:
    async with running(tmp_path) as house, knocking(house) as (who, _):
        hello = await who.call("connect", params(minProtocol=low, maxProtocol=high))
        assert hello["protocol"] == 4


@pytest.mark.req("GW-02")
@pytest.mark.parametrize(("low", "high"), [(3, 3), (5, 5)])
async def test_other_versions_are_not(tmp_path: Path, low: int, high: int) -> None:
    async with running(tmp_path) as house:
        read, code, reason = await knock(house, connect(minProtocol=low, maxProtocol=high))
        assert (code, reason) == (1002, "protocol mismatch")
        assert read[0]["error"]["details"] == {
            "code": "PROTOCOL_MISMATCH",
            "clientMinProtocol": low,
            "clientMaxProtocol": high,
            "expectedProtocol": 4,
            "minimumProbeProtocol": 3,
        }


async def test_a_probe_may_be_one_version_behind(tmp_path: Path) -> None:
    async with running(tmp_path) as house, knocking(house) as (who, _):
        hello = await who.call("connect", params(client=("cli", "probe"), minProtocol=3, maxProtocol=3))
        assert hello["auth"]["scopes"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"client": ("nobody", "cli")},
            "invalid connect params: at /client/id: must be equal to one of the allowed values",
        ),
        ({"device": {"id": "x"}}, "invalid connect params: at /device: must have required property 'publicKey'"),
        ({"strange": 1}, "invalid connect params: at root: unexpected property 'strange'"),
        ({"role": "worker"}, "invalid-handshake"),
        ({"role": "king"}, "invalid role"),
    ],
)
async def test_a_connect_that_does_not_fit(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    async with running(tmp_path) as house:
        read, code, reason = await knock(house, connect(**change))
        assert (code, reason) == (1008, message)
        assert read[0]["error"] == {"code": "INVALID_REQUEST", "message": message}


@pytest.mark.req("GW-12")
async def test_frames_that_come_with_the_connect_are_answered_after_it(tmp_path: Path) -> None:
    async with running(tmp_path) as house, knocking(house) as (who, _):
        await who.socket.send(connect())
        for number in range(16):
            await who.ask("echo", {"text": str(number)})
        await who.answer("1")
        answers = [await who.next(lambda frame: frame["type"] == "res") for _ in range(16)]
        texts = [answer["payload"]["text"] for answer in answers]
        assert texts == [str(number) for number in range(16)]


@pytest.mark.req("GW-12")
async def test_seventeen_are_too_many(tmp_path: Path) -> None:
    async with running(tmp_path) as house, knocking(house) as (who, _):
        call = '{"type":"req","id":"2","method":"echo","params":{"text":"x"}}'
        for frame in (connect(), *[call] * 17):
            who.socket.protocol.send_text(frame.encode())
        who.socket.transport.write(b"".join(who.socket.protocol.data_to_send()))
        assert await who.closed() == (1008, "too many pending handshake frames")


@pytest.mark.req("GW-07")
async def test_so_many_silent_sockets_and_no_more(tmp_path: Path) -> None:
    async with running(tmp_path) as house, AsyncExitStack() as stack, guest(house) as inside:
        for _ in range(32):
            await stack.enter_async_context(knocking(house))
        with pytest.raises(InvalidStatus) as refused:
            await stack.enter_async_context(knocking(house))
        assert refused.value.response.status_code == 503
        assert refused.value.response.body == b"Too many unauthenticated sockets"
        assert await inside.call("echo", {"text": "still here"}) == {"text": "still here"}
        house.clock.move(15.0)
        house.gateway.beat()
        await asyncio.sleep(0.1)
        async with guest(house) as who:
            assert await who.call("echo", {"text": "x"}) == {"text": "x"}


@pytest.mark.req("GW-07")
async def test_silence_is_closed_after_fifteen_seconds(tmp_path: Path) -> None:
    async with running(tmp_path) as house, knocking(house) as (who, _):
        house.clock.move(14.9)
        house.gateway.beat()
        await who.socket.ping()
        house.clock.move(0.1)
        house.gateway.beat()
        assert await who.closed() == (1000, "")


@pytest.mark.req("BOOT-10")
async def test_while_it_starts_a_connect_is_told_to_come_again(tmp_path: Path) -> None:
    async with running(tmp_path, opened=False) as house:
        read, code, _ = await knock(house, connect())
        assert code == 1013
        error = read[0]["error"]
        assert (error["code"], error["retryable"], error["retryAfterMs"]) == ("UNAVAILABLE", True, 1000)
        assert error["details"]["reason"] == "startup-sidecars"


@pytest.mark.parametrize("place", ["token", "password"])
async def test_the_shared_secret_may_stand_in_either_place(tmp_path: Path, place: str) -> None:
    async with running(tmp_path) as house, guest(house, auth={place: TOKEN}) as who:
        assert who.hello["auth"]["method"] == "token"


@pytest.mark.parametrize(
    ("asked", "code", "detail"),
    [
        ({"auth": {"token": "wrong"}}, "INVALID_REQUEST", "AUTH_TOKEN_MISMATCH"),
        ({"auth": {}}, "NOT_PAIRED", "DEVICE_IDENTITY_REQUIRED"),
        ({"role": "node", "client": ("node-host", "node")}, "NOT_PAIRED", "DEVICE_IDENTITY_REQUIRED"),
        ({"client": ("openclaw-tui", "ui")}, "INVALID_REQUEST", "CONTROL_UI_DEVICE_IDENTITY_REQUIRED"),
        ({"client": ("openclaw-control-ui", "webchat")}, "INVALID_REQUEST", "CONTROL_UI_ORIGIN_NOT_ALLOWED"),
    ],
)
async def test_who_is_turned_away_without_a_device(
    tmp_path: Path, asked: dict[str, Any], code: str, detail: str
) -> None:
    async with running(tmp_path) as house:
        error, found = await refusal(guest(house, **asked))
        assert (error["code"], found) == (code, detail)


@pytest.mark.parametrize(("client", "kept"), [(("cli", "cli"), True), (("test", "test"), False)])
async def test_programs_without_a_device_keep_scopes_only_where_they_are_the_owners(
    tmp_path: Path, client: tuple[str, str], kept: bool
) -> None:
    async with running(tmp_path) as house, guest(house, client=client) as who:
        assert who.hello["auth"]["scopes"] == (list(ALL) if kept else [])
        if not kept:
            with pytest.raises(Refused, match=r"missing scope: operator\.read"):
                await who.call("echo", {"text": "x"})


async def test_with_mode_none_nothing_is_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path, Door(mode="none")) as house, guest(house, auth={}) as who:
        assert who.hello["auth"]["method"] == "none"


async def test_a_password_is_a_secret_like_a_token(tmp_path: Path) -> None:
    door = Door(mode="password", password=Secret("open sesame"))
    async with running(tmp_path, door) as house:
        async with guest(house, auth={"password": "open sesame"}) as who:
            assert who.hello["auth"]["method"] == "password"
        error, detail = await refusal(guest(house, auth={"password": "open"}))
        assert detail == "AUTH_PASSWORD_MISMATCH"
        assert "open sesame" not in json.dumps(error)


PROXIED = Door(mode="trusted-proxy", grounds=Grounds(proxies=networks(["127.0.0.1"])), allow_users=("ana",))


async def test_a_trusted_proxy_vouches_for_its_user(tmp_path: Path) -> None:
    headers = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-User": "ana"}
    async with running(tmp_path, PROXIED) as house:
        async with guest(house, headers=headers, auth={}) as who:
            assert who.hello["auth"]["method"] == "trusted-proxy"
        _, detail = await refusal(guest(house, headers={**headers, "X-Forwarded-User": "eve"}, auth={}))
        assert detail == "DEVICE_IDENTITY_REQUIRED"
        _, detail = await refusal(guest(house, auth={}))
        assert detail == "DEVICE_IDENTITY_REQUIRED"


async def test_an_empty_secret_opens_to_nobody(tmp_path: Path) -> None:
    async with running(tmp_path, Door()) as house:
        for auth in ({"token": ""}, {"token": " "}, {"password": ""}):
            error, _ = await refusal(guest(house, auth=auth))
            assert error["code"] in ("NOT_PAIRED", "INVALID_REQUEST")
