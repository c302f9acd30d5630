"""Devices at the door: pairing, tokens, revocation, wrong credentials. On real sockets with real signatures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from garra.core.secret import Secret
from garra.gateway.door import Door
from garra.gateway.origin import Grounds, networks
from tests.gateway.house import TOKEN, Guest, Key, Refused, Running, guest, refusal, running

AFAR = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "gateway.example"}
PROXIED = Door(token=Secret(TOKEN), grounds=Grounds(proxies=networks(["127.0.0.1"])))
READ = ("operator.read",)
TUI = ("openclaw-tui", "ui")


def knock(house: Running, key: Key | None = None, **options: Any) -> Any:
    usual: dict[str, Any] = {"client": ("cli", "cli"), "key": key or Key(), "headers": AFAR, "scopes": READ}
    return guest(house, **{**usual, **options})


async def approve(owner: Guest, error: dict[str, Any]) -> None:
    await owner.call("device.pair.approve", {"requestId": error["details"]["requestId"]})


@pytest.mark.req("GW-06")
def test_a_fixed_key_signs_the_fixed_text() -> None:
    sent = {
        "client": {
            "id": "openclaw-tui",
            "mode": "ui",
            "version": "2026.9.6",
            "platform": "Linux",
            "deviceFamily": "Linux",
        },
        "role": "operator",
        "scopes": ["operator.admin", "operator.read"],
        "auth": {"token": "shared"},
    }
    proof = Key().proof(sent, "5f1f0d4e-0000-4000-8000-000000000001", 1_796_044_794_906)
    assert proof == {
        "id": "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e",
        "publicKey": "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w",
        "signature": GOLDEN,
        "signedAt": 1_796_044_794_906,
        "nonce": "5f1f0d4e-0000-4000-8000-000000000001",
    }


GOLDEN = "Xr0IQ4AMKVWJMgO0CTm6J_CoZN-WUMAorETh3anckHE87T19XJqNbV73133seqtSw4EhzJeRVwjnE8sFArMkCA"


@pytest.mark.req("GW-15")
async def test_on_this_machine_the_shared_secret_pairs_silently(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        async with guest(house, key=Key(), client=TUI, scopes=READ) as who:
            first = who.hello["auth"]
            assert (first["method"], first["scopes"]) == ("token", ["operator.read"])
        async with guest(house, key=Key(), client=TUI, scopes=READ) as who:
            assert who.hello["auth"]["deviceToken"] == first["deviceToken"]
        async with guest(house, key=Key(), client=TUI, scopes=(*READ, "operator.write")) as who:
            assert who.hello["auth"]["deviceToken"] != first["deviceToken"]
        _, detail = await refusal(guest(house, key=Key(), client=TUI, auth={"deviceToken": first["deviceToken"]}))
        assert detail == "AUTH_DEVICE_TOKEN_MISMATCH"
        assert not house.devices.pending()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("place", ["token", "deviceToken"])
async def test_a_device_token_works_alone_in_either_place(tmp_path: Path, version: int, place: str) -> None:
    async with running(tmp_path) as house:
        async with guest(house, key=Key(), client=TUI, scopes=READ) as who:
            token = who.hello["auth"]["deviceToken"]
        async with guest(house, key=Key(), client=TUI, scopes=READ, auth={place: token}, version=version) as who:
            assert who.hello["auth"]["method"] == "device-token"
        both = {"token": "wrong", "deviceToken": token}
        async with guest(house, key=Key(), client=TUI, scopes=READ, auth=both) as who:
            assert who.hello["auth"]["method"] == "device-token"


@pytest.mark.parametrize(
    ("spoil", "detail"),
    [
        (lambda sent: sent["device"].update(nonce=" "), "DEVICE_AUTH_NONCE_REQUIRED"),
        (lambda sent: sent["device"].update(nonce="stale"), "DEVICE_AUTH_NONCE_MISMATCH"),
        (lambda sent: sent["device"].update(signature="AAAA"), "DEVICE_AUTH_SIGNATURE_INVALID"),
        (lambda sent: sent["device"].update(signature="no base64!"), "DEVICE_AUTH_SIGNATURE_INVALID"),
        (lambda sent: sent.update(scopes=["operator.admin"]), "DEVICE_AUTH_SIGNATURE_INVALID"),
        (lambda sent: sent["device"].update(id="0" * 64), "DEVICE_AUTH_DEVICE_ID_MISMATCH"),
        (lambda sent: sent["device"].update(publicKey="AAAA"), "DEVICE_AUTH_DEVICE_ID_MISMATCH"),
        (lambda sent: sent["device"].update(signedAt=1), "DEVICE_AUTH_SIGNATURE_EXPIRED"),
    ],
)
@pytest.mark.req("GW-06")
async def test_a_claim_that_was_changed_is_refused(tmp_path: Path, spoil: Any, detail: str) -> None:
    async with running(tmp_path) as house:
        error, found = await refusal(guest(house, key=Key(), client=TUI, scopes=READ, spoil=spoil))
        assert (error["code"], found) == ("INVALID_REQUEST", detail)


@pytest.mark.parametrize(
    ("auth", "detail", "retry"),
    [
        ({}, "AUTH_TOKEN_MISSING", False),
        ({"token": "wrong"}, "AUTH_TOKEN_MISMATCH", True),
        ({"deviceToken": "wrong"}, "AUTH_DEVICE_TOKEN_MISMATCH", False),
    ],
)
async def test_a_device_without_a_good_credential(
    tmp_path: Path, auth: dict[str, str], detail: str, retry: bool
) -> None:
    async with running(tmp_path) as house:
        error, found = await refusal(guest(house, key=Key(), client=TUI, auth=auth))
        assert found == detail
        assert error["details"]["canRetryWithDeviceToken"] is retry


@pytest.mark.req("GW-15")
async def test_from_afar_the_owner_approves_and_revokes(tmp_path: Path) -> None:
    async with running(tmp_path, PROXIED) as house, guest(house) as owner:
        error, detail = await refusal(knock(house))
        assert (error["code"], detail, error["details"]["reason"]) == ("NOT_PAIRED", "PAIRING_REQUIRED", "not-paired")
        asked = (await owner.event("device.pair.requested"))["payload"]
        assert asked["requestId"] == error["details"]["requestId"]
        again, _ = await refusal(knock(house))
        assert again["details"]["requestId"] == asked["requestId"]
        listed = await owner.call("device.pair.list")
        assert [row["deviceId"] for row in listed["pending"]] == [Key().id]
        await approve(owner, error)
        assert (await owner.event("device.pair.resolved"))["payload"]["decision"] == "approved"
        async with knock(house) as who:
            token = who.hello["auth"]["deviceToken"]
        async with knock(house, auth={"deviceToken": token}) as who:
            assert who.hello["auth"]["method"] == "device-token"
        _, detail = await refusal(knock(house, auth={"deviceToken": token}, scopes=("operator.admin",)))
        assert detail == "AUTH_SCOPE_MISMATCH"
        error, detail = await refusal(knock(house, Key(b"\x02" * 32), auth={"deviceToken": token}))
        assert detail == "AUTH_DEVICE_TOKEN_MISMATCH"


async def test_revoking_ends_live_connections_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as owner:
        async with guest(house, key=Key(), client=TUI, scopes=READ) as who:
            token = who.hello["auth"]["deviceToken"]
            await owner.call("device.token.revoke", {"deviceId": Key().id, "role": "operator"})
            assert await who.closed() == (4001, "device removed")
        _, detail = await refusal(guest(house, key=Key(), client=TUI, scopes=READ, auth={"deviceToken": token}))
        assert detail == "AUTH_DEVICE_TOKEN_MISMATCH"
        assert await owner.call("echo", {"text": "x"}) == {"text": "x"}


async def test_a_rotated_token_cannot_grow_and_ends_the_old_one(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as owner:
        async with guest(house, key=Key(), client=TUI, scopes=(*READ, "operator.pairing")) as who:
            token = who.hello["auth"]["deviceToken"]
            wider = {"deviceId": Key().id, "role": "operator", "scopes": ["operator.admin"]}
            with pytest.raises(Refused, match=r"missing scope: operator\.admin"):
                await who.call("device.token.rotate", wider)
            with pytest.raises(Refused, match="cannot hold more scopes"):
                await owner.call("device.token.rotate", wider)
            answer = await owner.call("device.token.rotate", {**wider, "scopes": ["operator.read"]})
            assert answer["tokenDelivery"] == "withheld-cross-device"
            assert "token" not in answer
            assert (await who.closed())[0] == 4001
        _, detail = await refusal(guest(house, key=Key(), client=TUI, scopes=READ, auth={"deviceToken": token}))
        assert detail == "AUTH_DEVICE_TOKEN_MISMATCH"


async def test_a_device_gets_its_own_new_token_in_band(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        async with guest(house, key=Key(), client=TUI, scopes=(*READ, "operator.pairing")) as who:
            answer = await who.call("device.token.rotate", {"deviceId": Key().id, "role": "operator"})
            token = answer["token"]
        async with guest(house, key=Key(), client=TUI, scopes=READ, auth={"deviceToken": token}) as who:
            assert who.hello["auth"]["method"] == "device-token"


async def test_nobody_approves_more_than_they_hold_nor_touches_others(tmp_path: Path) -> None:
    async with running(tmp_path, PROXIED) as house, guest(house) as owner:
        error, _ = await refusal(knock(house, scopes=("operator.admin",)))
        async with guest(house, scopes=("operator.pairing",)) as lesser:
            with pytest.raises(Refused, match=r"missing scope: operator\.admin"):
                await approve(lesser, error)
        await owner.call("device.pair.reject", {"requestId": error["details"]["requestId"]})
        assert (await owner.call("device.pair.list"))["pending"] == []
        async with (
            guest(house, key=Key(b"\x03" * 32), client=TUI, scopes=("operator.pairing",)) as other,
            guest(house, key=Key(), client=TUI, scopes=READ),
        ):
            with pytest.raises(Refused, match="may change itself only"):
                await other.call("device.pair.remove", {"deviceId": Key().id})
        await owner.call("device.pair.rename", {"deviceId": Key().id, "label": "My laptop"})
        await owner.call("device.pair.remove", {"deviceId": Key(b"\x03" * 32).id})
        listed = await owner.call("device.pair.list")
        assert [row["displayName"] for row in listed["paired"]] == ["My laptop"]
        with pytest.raises(Refused, match="no pairing request"):
            await approve(owner, error)


async def test_a_changed_platform_must_be_approved_anew(tmp_path: Path) -> None:
    async with running(tmp_path, PROXIED) as house, guest(house) as owner:
        error, _ = await refusal(knock(house))
        await approve(owner, error)
        async with knock(house) as who:
            token = who.hello["auth"]["deviceToken"]
        mac = {"id": "cli", "mode": "cli", "version": "1", "platform": "darwin"}

        class Moved(Key):
            def proof(self, params: dict[str, Any], nonce: str, at: int, version: int = 3) -> dict[str, Any]:
                params["client"] = mac
                return super().proof(params, nonce, at, version)

        error, detail = await refusal(knock(house, Moved(), auth={"deviceToken": token}))
        assert (detail, error["details"]["reason"]) == ("PAIRING_REQUIRED", "metadata-upgrade")
        assert error["details"]["approvedScopes"] == ["operator.read"]


async def test_what_is_stored_holds_no_token(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house, key=Key(), client=TUI, scopes=READ) as who:
        token = who.hello["auth"]["deviceToken"]
        files = await asyncio.to_thread(lambda: b"".join(path.read_bytes() for path in tmp_path.iterdir()))
        assert Key().id.encode() in files
        assert token.encode() not in files
        assert TOKEN.encode() not in files


@pytest.mark.req("GW-09")
async def test_wrong_credentials_from_afar_lock_missing_ones_do_not(tmp_path: Path) -> None:
    async with running(tmp_path, PROXIED) as house:
        for _ in range(20):
            _, detail = await refusal(guest(house, headers=AFAR, auth={}))
            assert detail == "DEVICE_IDENTITY_REQUIRED"
        for _ in range(10):
            _, detail = await refusal(guest(house, headers=AFAR, auth={"token": "wrong"}))
            assert detail == "AUTH_TOKEN_MISMATCH"
        error, detail = await refusal(guest(house, headers=AFAR))
        assert (error["code"], detail) == ("UNAVAILABLE", "AUTH_RATE_LIMITED")
        assert (error["retryable"], error["retryAfterMs"]) == (True, 300_000)
        async with guest(house, headers={"X-Forwarded-For": "203.0.113.8"}) as who:
            assert who.hello["type"] == "hello-ok"
        house.clock.move(301)
        async with guest(house, headers=AFAR) as who:
            assert who.hello["type"] == "hello-ok"


@pytest.mark.req("GW-09")
async def test_this_machine_is_not_locked_out(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        for _ in range(12):
            await refusal(guest(house, auth={"token": "wrong"}))
        async with guest(house) as who:
            assert who.hello["type"] == "hello-ok"


async def test_another_shared_secret_shows_out_who_came_in_by_the_old(tmp_path: Path) -> None:
    async with running(tmp_path) as house, guest(house) as who:
        async with guest(house, key=Key(), client=TUI, scopes=READ) as device:
            token = device.hello["auth"]["deviceToken"]
        async with guest(house, key=Key(), client=TUI, scopes=READ, auth={"deviceToken": token}) as device:
            house.door(token=Secret("another-token"))
            assert await who.closed() == (4001, "gateway auth changed")
            assert await device.call("echo", {"text": "x"}) == {"text": "x"}
        _, detail = await refusal(guest(house))
        assert detail == "AUTH_TOKEN_MISMATCH"


async def test_a_node_gets_what_nodes_get(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        async with guest(house, key=Key(), client=("node-host", "node"), role="node", scopes=()) as node:
            assert node.hello["auth"]["role"] == "node"
            assert node.hello["snapshot"]["presence"] == []
            assert await node.call("node.only") == {}
            for name in ("echo", "no.such.method"):
                with pytest.raises(Refused, match="unauthorized role: node"):
                    await node.call(name, {"text": "x"})
            house.gateway.hub.publish("chat", {"n": 1})
            house.gateway.hub.publish("tick", {"ts": 1})
            assert (await node.event("tick"))["seq"] == 1
        async with guest(house) as who:
            with pytest.raises(Refused, match="unauthorized role: operator"):
                await who.call("node.only")


async def test_nodes_are_listed_and_what_they_offer_waits(tmp_path: Path) -> None:
    offer: dict[str, Any] = {"caps": ["system"], "commands": ["system.run"]}
    async with running(tmp_path) as house, guest(house) as owner:
        assert (await owner.call("node.list"))["nodes"] == []
        async with guest(house, key=Key(), client=("node-host", "node"), role="node", scopes=(), **offer):
            (row,) = (await owner.call("node.list"))["nodes"]
            assert (row["nodeId"], row["connected"], row["commands"]) == (Key().id, True, [])
            assert (row["approvalState"], row["pendingDeclaredCommands"]) == ("pending-approval", ["system.run"])
            assert (await owner.call("node.describe", {"nodeId": Key().id}))["platform"] == "linux"
            listed = await owner.call("node.pair.list")
            assert (listed["pending"], listed["paired"]) == ([], [row])
        with pytest.raises(Refused, match="no node x is paired"):
            await owner.call("node.describe", {"nodeId": "x"})


async def test_every_refusal_is_one_line_without_secrets(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        for auth in ({"token": "guess-1"}, {"deviceToken": "guess-2"}, {"password": "guess-3"}):
            error, _ = await refusal(guest(house, key=Key(), client=TUI, auth=auth))
            assert "\n" not in error["message"]
            assert TOKEN not in json.dumps(error)
            assert "guess" not in json.dumps(error)


async def test_a_right_token_of_a_device_excuses_no_guess_at_the_shared_secret(tmp_path: Path) -> None:
    async with running(tmp_path, PROXIED) as house, guest(house) as owner:
        error, _ = await refusal(knock(house))
        await approve(owner, error)
        async with knock(house) as who:
            token = who.hello["auth"]["deviceToken"]
        for _ in range(9):
            await refusal(knock(house, auth={"token": "wrong"}))
        async with knock(house, auth={"deviceToken": token}):
            pass
        await refusal(knock(house, auth={"token": "wrong"}))
        _, detail = await refusal(knock(house))
        assert detail == "AUTH_RATE_LIMITED"
        async with knock(house, auth={"deviceToken": token}):
            pass


async def test_a_page_in_a_browser_of_this_machine_is_not_spared(tmp_path: Path) -> None:
    async with running(tmp_path) as house:
        page = {"Origin": f"http://127.0.0.1:{house.port}"}
        for _ in range(10):
            await refusal(guest(house, key=Key(), client=TUI, auth={"token": "wrong"}, headers=page))
        _, detail = await refusal(guest(house, key=Key(), client=TUI, headers=page))
        assert detail == "AUTH_RATE_LIMITED"
        async with guest(house):
            pass
