"""`channels.pairing.*` and `garra pairing`, with a gateway and without."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.domains.access.pairing import Pairing, Request
from garra.gateway.methods import pairing as methods
from garra.io.clock import SystemClock
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from tests.gateway.house import Refused
from tests.gateway.standing import CONFIG, Standing, standing


async def register(db: Database) -> Pairing:
    pairing = Pairing(lambda name: Shelf(db, name), SystemClock(), random.Random(1).randrange)
    await pairing.load()
    return pairing


async def knock(pairing: Pairing, sender: str = "42") -> Request:
    request = await pairing.knock({"channel": "toy", "account": "default", "sender": sender, "name": "Ann"})
    assert request is not None
    return request


@asynccontextmanager
async def kept(folder: Path, **channel: Any) -> AsyncIterator[tuple[Standing, Pairing]]:
    db = Database(folder / "pairing.db")
    async with standing(folder, {**CONFIG, "channels": {"toy": channel, "shut": {"dmPolicy": "open"}}}) as gateway:
        pairing = await register(db)
        gateway.host.more[methods.WHERE] = pairing
        end = methods.watch(gateway.host)
        yield gateway, pairing
        end()
    await db.close()


@pytest.mark.req("SEC-02")
async def test_who_waits_is_listed_told_of_and_let_in(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing), gateway.guest() as guest:
        request = await knock(pairing)
        told = await guest.event("channels.pairing.requested")
        assert told["payload"] | {"ts": 0} == {"channel": "toy", "accountId": "default", "senderId": "42", "ts": 0}
        found = await guest.call("channels.pairing.list", {"channel": "toy"})
        assert [row["channel"] for row in found["accounts"]] == ["toy"]
        assert found["limits"] == {"pendingPerAccount": 3, "ttlMs": 3_600_000}
        [row] = found["requests"]
        assert (row["senderId"], row["metadata"], row["code"]) == ("42", {"name": "Ann"}, request.code)
        answer = await guest.call(
            "channels.pairing.approve",
            {"channel": "toy", "accountId": "default", "requestId": row["requestId"], "notify": True},
        )
        assert (answer["senderId"], answer["notification"]) == ("42", "unsupported")
        assert answer["commandOwnerBootstrap"] == "not-requested"
        resolved = await guest.event("channels.pairing.resolved")
        assert resolved["payload"]["decision"] == "approved"
        assert pairing.allowed("toy", "default").ids == {"42"}
        [person] = (await guest.call("channels.pairing.list", {}))["people"]
        assert person["senderId"] == "42"
        await guest.call("channels.pairing.revoke", {"channel": "toy", "senderId": "42"})
        assert not pairing.allowed("toy", "default").ids


async def test_the_first_who_is_let_in_may_become_the_owner(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing), gateway.guest() as guest:
        for sender, owned in (("42", "configured"), ("43", "already-configured")):
            request = await knock(pairing, sender)
            params = {"channel": "toy", "code": request.code, "bootstrapCommandOwner": True}
            answer = await guest.call("channels.pairing.approve", params)
            assert answer["commandOwnerBootstrap"] == owned
        written = json.loads((tmp_path / "garra.json").read_text())
        assert written["commands"]["ownerAllowFrom"] == ["toy:42"]


async def test_an_ownership_goes_with_the_approval_that_gave_it(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing), gateway.guest() as guest:
        request = await knock(pairing)
        params = {"channel": "toy", "code": request.code, "bootstrapCommandOwner": True}
        await guest.call("channels.pairing.approve", params)
        async with gateway.guest(scopes=("operator.pairing",)) as other:
            gone = await other.call("channels.pairing.revoke", {"channel": "toy", "senderId": "42"})
        assert (gone["commandOwner"], gone["stillListed"]) == ("not-changed", ["commands.ownerAllowFrom"])
        again = await knock(pairing)
        await guest.call("channels.pairing.approve", {"channel": "toy", "code": again.code})
        gone = await guest.call("channels.pairing.revoke", {"channel": "toy", "senderId": "42"})
        assert (gone["commandOwner"], gone["stillListed"]) == ("removed", [])
        assert not json.loads((tmp_path / "garra.json").read_text())["commands"]["ownerAllowFrom"]


async def test_the_owner_of_the_codes_is_not_locked_out(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing), gateway.guest() as guest:
        request = await knock(pairing)
        for _ in range(7):
            with pytest.raises(Refused, match="no request with this code"):
                await guest.call("channels.pairing.approve", {"channel": "toy", "code": "AAAAAAAA"})
        answer = await guest.call("channels.pairing.approve", {"channel": "toy", "code": request.code})
        assert answer["senderId"] == "42"


async def test_lists_that_still_name_somebody_are_told(tmp_path: Path) -> None:
    async with kept(tmp_path, allowFrom=["toy:42"]) as (gateway, pairing), gateway.guest() as guest:
        await pairing.approve("toy", (await knock(pairing)).code)
        gone = await guest.call("channels.pairing.revoke", {"channel": "toy", "senderId": "42"})
        assert gone["stillListed"] == ["channels.toy.allowFrom"]


async def test_a_request_is_forgotten(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing), gateway.guest() as guest:
        request = await knock(pairing)
        params = {"channel": "toy", "accountId": "default", "requestId": request.id}
        with pytest.raises(Refused, match="no longer exists"):
            await guest.call("channels.pairing.dismiss", {**params, "accountId": "other"})
        assert (await guest.call("channels.pairing.dismiss", params))["senderId"] == "42"
        for method in ("channels.pairing.dismiss", "channels.pairing.approve"):
            with pytest.raises(Refused, match="no longer exists"):
                await guest.call(method, params)


async def test_rights_are_needed(tmp_path: Path) -> None:
    async with kept(tmp_path) as (gateway, pairing):
        request = await knock(pairing)
        async with gateway.guest(scopes=("operator.read", "operator.write")) as reader:
            for method in ("list", "approve", "dismiss", "revoke"):
                with pytest.raises(Refused, match="pairing"):
                    await reader.call(f"channels.pairing.{method}", {})
        async with gateway.guest(scopes=("operator.pairing",)) as guest:
            params = {"channel": "toy", "code": request.code, "bootstrapCommandOwner": True}
            with pytest.raises(Refused, match="admin"):
                await guest.call("channels.pairing.approve", params)
            with pytest.raises(Refused, match="requestId or a code"):
                await guest.call("channels.pairing.approve", {"channel": "toy"})
        assert not pairing.people()


async def test_without_chats_it_is_said(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        with pytest.raises(Refused, match="not ready"):
            await guest.call("channels.pairing.list", {})


def garra(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(state),
        "GARRA_STATE_DIR": str(state),
        "GARRA_GATEWAY_PORT": "1",  # nobody is there, also where a gateway runs
        "NO_COLOR": "1",
    }
    command = [sys.executable, "-m", "garra", "pairing", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=15, stdin=subprocess.DEVNULL)


@pytest.mark.req("SEC-02")
async def test_the_command_works_without_a_gateway_too(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    request = await knock(await register(db))
    await db.close()
    listed = await asyncio.to_thread(garra, tmp_path, "list", "toy")
    assert request.code in listed.stdout
    wrong = await asyncio.to_thread(garra, tmp_path, "approve", "toy", "WRONGCODE")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "no request with this code" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    done = await asyncio.to_thread(garra, tmp_path, "approve", "toy", request.code)
    assert "42 may write to the agent on toy now." in done.stdout
    assert "owner" in done.stdout
    people = await asyncio.to_thread(garra, tmp_path, "list", "--json")
    assert [row["senderId"] for row in json.loads(people.stdout)["people"]] == ["42"]
    gone = await asyncio.to_thread(garra, tmp_path, "revoke", "toy", "42")
    assert "may not write" in gone.stdout
    assert "no longer its owner" in gone.stdout
    empty = await asyncio.to_thread(garra, tmp_path)
    assert "Nobody waits" in empty.stdout
    half = await asyncio.to_thread(garra, tmp_path, "approve", "toy")
    assert "CHANNEL CODE" in half.stderr
    none = await asyncio.to_thread(garra, tmp_path, "dismiss", "toy", "42")
    assert "no request of 42" in none.stderr
