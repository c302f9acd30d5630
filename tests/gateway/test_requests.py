"""What happens after hello-ok: requests, answers, events, on real sockets."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from garra.core.scopes import READ
from garra.gateway.dispatch import IN_FLIGHT
from garra.gateway.method import Method, Registry, inside
from tests.gateway.house import Key, Refused, guest, running

TUI = ("openclaw-tui", "ui")


@pytest.mark.req("GW-01")
async def test_junk_is_ignored_and_a_bad_frame_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        for frame in ("junk", "[1]", '{"type":"req","id":7,"method":"echo"}', '{"type":"req","id":"a","method":""}'):
            await who.socket.send(frame)
        answers = [await who.next() for _ in range(3)]
        assert [answer["id"] for answer in answers] == ["invalid", 7, "a"]
        assert [answer["error"]["message"] for answer in answers] == [
            "invalid request frame: must be object",
            "invalid request frame: at /id: must be string",
            "invalid request frame: at /method: must NOT have fewer than 1 characters",
        ]
        assert await who.call("echo", {"text": "still open"}) == {"text": "still open"}


async def test_binary_frames_and_pieces_hold_json_too(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        frame = json.dumps({"type": "req", "id": "b", "method": "echo", "params": {"text": "x"}}).encode()
        await who.socket.send(frame)
        assert (await who.answer("b"))["ok"]
        await who.socket.send([frame[:20], frame[20:30], frame[30:]])
        assert (await who.answer("b"))["ok"]


@pytest.mark.req("GW-04")
async def test_an_unknown_method_is_an_error_and_no_end(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        with pytest.raises(Refused) as refused:
            await who.call("no.such.method")
        assert refused.value.error == {"code": "INVALID_REQUEST", "message": "unknown method: no.such.method"}
        with pytest.raises(Refused, match="connect is only valid as the first request"):
            await who.call("connect", {})
        assert await who.call("echo", {"text": "x"}) == {"text": "x"}


@pytest.mark.req("GW-18")
@pytest.mark.parametrize("name", ["config.set", "no.such.method", "connect", "exec.approvals.set"])
async def test_without_the_right_it_is_forbidden_known_or_not(tmp_path: Path, name: str) -> None:
    async with running(tmp_path) as house, guest(house, scopes=("operator.read", "operator.write")) as who:
        with pytest.raises(Refused) as refused:
            await who.call(name, {})
        assert refused.value.error == {
            "code": "FORBIDDEN",
            "message": "missing scope: operator.admin",
            "details": {
                "code": "MISSING_SCOPE",
                "missingScope": "operator.admin",
                "requiredScopes": ["operator.admin"],
            },
        }


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "invalid echo params: must have required property 'text'"),
        ({"text": 1}, "invalid echo params: at /text: must be string"),
        ({"text": "x", "more": 1}, "invalid echo params: at root: unexpected property 'more'"),
        ([], "invalid echo params: must be object"),
        (None, "invalid echo params: must have required property 'text'"),
    ],
)
async def test_parameters_are_closed(tmp_path: Path, params: Any, message: str) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        with pytest.raises(Refused) as refused:
            await who.call("echo", params)
        assert refused.value.error == {"code": "INVALID_REQUEST", "message": message}


async def test_a_method_may_answer_twice(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        request = await who.ask("twice", {"text": "x"})
        assert (await who.answer(request))["payload"] == {"status": "accepted"}
        assert (await who.answer(request))["payload"] == {"status": "ok"}


@pytest.mark.req("GW-01")
async def test_requests_run_at_once_and_answers_come_as_they_are_ready(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        house.events.update(slow=asyncio.Event(), quick=asyncio.Event())
        slow, quick = await who.ask("wait", {"text": "slow"}), await who.ask("wait", {"text": "quick"})
        house.events["quick"].set()
        assert (await who.next(lambda frame: frame["type"] == "res"))["id"] == quick
        house.events["slow"].set()
        assert (await who.answer(slow))["payload"] == {"text": "slow"}


async def test_only_so_many_requests_of_one_connection_run_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        house.events["never"] = asyncio.Event()
        for _ in range(IN_FLIGHT):
            await who.ask("wait", {"text": "never"})
        with pytest.raises(Refused) as refused:
            await who.call("echo", {"text": "x"})
        assert (refused.value.error["code"], refused.value.error["retryable"]) == ("UNAVAILABLE", True)


async def test_a_fault_nobody_foresaw_is_told_without_its_details(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        with caplog.at_level(logging.ERROR), pytest.raises(Refused) as refused:
            await who.call("broken")
        assert refused.value.error["code"] == "INTERNAL"
        assert "secret" not in refused.value.error["message"]
        assert "ZeroDivisionError" in caplog.text


async def test_an_expected_profile_that_is_another(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house, key=Key(), client=TUI) as who:
        assert await who.call("echo", {"text": "x"}, expectedProfileId="gateway-owner") == {"text": "x"}
        with pytest.raises(Refused) as refused:
            await who.call("echo", {"text": "x"}, expectedProfileId="another")
        assert refused.value.error["details"] == {"reason": "EXPECTED_PROFILE_MISMATCH", "execution": "not_started"}


@pytest.mark.req("BOOT-10")
async def test_a_method_of_the_whole_house_waits_for_it(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        assert await who.call("late") == {"late": True}
        house.gateway.phase = "starting"
        with pytest.raises(Refused) as refused:
            await who.call("late")
        assert refused.value.error["retryable"] is True
        assert await who.call("echo", {"text": "x"}) == {"text": "x"}


def numbers(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["seq"] for frame in frames if "seq" in frame]


async def test_broadcasts_are_numbered_per_connection_without_gaps(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as reader, guest(house, scopes=("operator.pairing",)) as other:
        for number in range(3):
            house.gateway.hub.publish("chat", {"n": number})
        house.gateway.hub.publish("device.pair.requested", {"requestId": "r"})
        await reader.event("device.pair.requested")
        heard = await other.event("device.pair.requested")
        assert numbers(reader.heard) == [1, 2, 3, 4]
        assert heard["seq"] == 1
        assert "recipientProfileId" not in heard


async def test_an_event_without_a_row_is_for_admins_and_aimed_ones_have_no_number(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as admin, guest(house, scopes=("operator.read",)) as reader:
        house.gateway.hub.publish("something.new", {"secret": True})
        house.gateway.hub.publish(
            "chat", {"n": 1}, where=lambda link: link.who.conn_id == admin.hello["server"]["connId"]
        )
        house.gateway.hub.publish("tick", {"ts": 1})
        await reader.event("tick")
        await admin.event("tick")
        assert [frame.get("event") for frame in reader.heard][-1:] == ["tick"]
        assert numbers(reader.heard) == [1]
        assert numbers(admin.heard) == [1, 2, 3]


async def test_presence_and_health_carry_versions_that_grow(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house, key=Key(), client=TUI) as who:
        house.gateway.beat()
        event = await who.event("presence")
        assert event["recipientProfileId"] == "gateway-owner"
        assert event["stateVersion"]["presence"] == who.hello["snapshot"]["stateVersion"]["presence"] + 1
        assert [row.get("clientId") for row in event["payload"]["presence"]] == [None, "openclaw-tui"]
        assert await who.call("system-presence") == house.gateway.rows()
        assert (await who.call("health"))["ok"] is True


@pytest.mark.req("GW-11")
async def test_time_brings_pings_ticks_and_the_end_of_the_dead(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as alive:
        house.clock.move(25.0)
        house.gateway.beat()
        house.clock.move(5.0)
        house.gateway.beat()
        assert (await alive.event("tick"))["payload"] == {"ts": house.clock.now_ms()}
        await alive.call("echo", {"text": "x"})
        peer = next(iter(house.gateway.hub.peers.values()))
        assert not peer.state.pinged  # the client's library answered
        peer.state = type(peer.state)("open", peer.state.due, (), True)
        house.clock.move(25.0)
        house.gateway.beat()
        assert (await alive.closed())[0] == 1006
        assert not house.gateway.hub.peers


async def test_subscriptions_live_as_long_as_the_connection(tmp_path: Path) -> None:
    def subscribe(host: Any, caller: Any, params: Any) -> dict[str, Any]:
        caller.watching.add("sessions")
        return {}

    row = Method("subscribe", READ, None, subscribe)
    async with running(tmp_path, extra=(row,)) as house:
        async with guest(house) as who:
            assert not house.gateway.hub.watched("sessions")
            await who.call("subscribe")
            assert house.gateway.hub.watched("sessions")
        await asyncio.sleep(0.05)
        assert not house.gateway.hub.watched("sessions")


@pytest.mark.req("GW-14")
async def test_nothing_is_replayed_after_a_reconnect(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        async with guest(house):
            house.gateway.hub.publish("chat", {"n": 1})
        house.gateway.hub.publish("chat", {"n": 2})
        async with guest(house) as who:
            house.gateway.hub.publish("chat", {"n": 3})
            heard = await who.event("chat")
            assert (heard["payload"], heard["seq"]) == ({"n": 3}, 1)


async def test_the_farewell_is_an_event_and_a_close(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        ending = asyncio.create_task(house.gateway.close())
        assert (await who.event("shutdown"))["payload"] == {"reason": "gateway stopping"}
        assert await who.closed() == (1012, "service restart")
        await ending


def test_a_name_has_one_row() -> None:
    row = Method("a", READ, None, lambda host, caller, params: None)
    with pytest.raises(ValueError, match="two rows"):
        Registry.of((row,), (row,))


def test_a_caller_inside_has_the_rights_it_was_given() -> None:
    caller = inside(("operator.read",))
    assert caller.may(READ)
    assert not caller.may("operator.write")
    caller.watching.add("x")
    caller.send("event", {})
    caller.respond_early({})
    assert caller.role == "operator"
    assert caller.loopback
