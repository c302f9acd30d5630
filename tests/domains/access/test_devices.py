"""The register of devices, on a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from garra.core.devices import Pending, digest
from garra.core.errors import NotFound, UserError
from garra.domains.access.devices import PENDING_MS, WAITING, Devices
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf

ASKED = Pending("", "d" * 64, "key", "cli", "cli", "operator", ("operator.read",), "linux", "", "laptop")


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.ms = 1_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def register(folder: Path, clock: Clock | None = None) -> AsyncIterator[Devices]:
    db = Database(folder / "state.db")
    devices = Devices(Shelf(db, "device"), Shelf(db, "pairing"), clock or Clock())
    await devices.load()
    yield devices
    await db.close()


async def test_what_was_paired_is_there_after_a_restart_without_its_token(tmp_path: Path) -> None:
    async with register(tmp_path) as devices:
        device, token = await devices.pair(ASKED, "silent")
        assert await devices.token(device.id, "operator") == token
    async with register(tmp_path) as devices:
        found = devices.paired(device.id)
        assert found.grants["operator"].hashes == (digest(token),)
        assert (found.name, found.approved_via) == ("laptop", "silent")
        other = await devices.token(device.id, "operator")
        assert other != token
        assert devices.granted(device.id, "operator").hashes == (digest(token), digest(other))


async def test_one_request_a_device_and_role_and_a_larger_one_takes_its_place(tmp_path: Path) -> None:
    async with register(tmp_path) as devices:
        first, new = await devices.ask(ASKED)
        assert new
        assert await devices.ask(ASKED) == (first, False)
        more = replace(ASKED, scopes=("operator.admin",))
        second, new = await devices.ask(more)
        assert new
        assert second.request_id != first.request_id
        assert list(devices.pending()) == [second]
        node, _ = await devices.ask(replace(ASKED, role="node"))
        assert len(devices.pending()) == 2
        assert not node.repair
    async with register(tmp_path) as devices:
        assert len(devices.pending()) == 2


async def test_requests_are_few_and_do_not_wait_for_ever(tmp_path: Path) -> None:
    clock = Clock()
    async with register(tmp_path, clock) as devices:
        for number in range(WAITING + 5):
            clock.ms += 1
            await devices.ask(replace(ASKED, device_id=f"{number:064}"))
        assert len(devices.pending()) == WAITING
        first = devices.pending()[-1]
        assert first.device_id == f"{5:064}"
        clock.ms += PENDING_MS + 10
        assert not devices.pending()
        with pytest.raises(NotFound, match="no pairing request"):
            await devices.approve(first.request_id)


async def test_the_owner_says_yes_or_no(tmp_path: Path) -> None:
    async with register(tmp_path) as devices:
        request, _ = await devices.ask(ASKED)
        device = await devices.approve(request.request_id)
        assert device.grants["operator"].hashes == ()
        assert not devices.pending()
        again, _ = await devices.ask(replace(ASKED, scopes=("operator.write",)))
        assert again.repair
        assert await devices.reject(again.request_id) == again
        assert devices.paired(device.id).grants["operator"].scopes == ("operator.read",)


async def test_names_tokens_and_ends(tmp_path: Path) -> None:
    async with register(tmp_path) as devices:
        device, token = await devices.pair(ASKED, "silent")
        assert (await devices.rename(device.id, " Desk ")).name == "Desk"
        with pytest.raises(UserError, match="1 to 128"):
            await devices.rename(device.id, " ")
        grant, other = await devices.rotate(device.id, "operator", None)
        assert grant.hashes == (digest(other),)
        with pytest.raises(UserError, match="cannot hold more"):
            await devices.rotate(device.id, "operator", ("operator.admin",))
        revoked = await devices.revoke(device.id, "operator")
        assert (revoked.hashes, revoked.revoked_at) == ((), 1_000_000_000)
        paired, fresh = await devices.pair(ASKED, "silent")
        assert fresh not in (token, other)
        assert paired.name == "Desk"
        await devices.remove(device.id)
        for lost in (devices.paired, lambda found: devices.granted(found, "operator")):
            with pytest.raises(NotFound, match="no paired device"):
                lost(device.id)
        with pytest.raises(NotFound):
            await devices.remove(device.id)
    async with register(tmp_path) as devices:
        assert not devices.every()


async def test_a_role_that_was_never_granted(tmp_path: Path) -> None:
    async with register(tmp_path) as devices:
        device, _ = await devices.pair(ASKED, "silent")
        devices.seen(device.id)
        devices.seen("nobody")
        assert devices.paired(device.id).seen_at == 1_000_000_000
        with pytest.raises(NotFound, match="holds no role node"):
            await devices.revoke(device.id, "node")


async def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    async with register(tmp_path) as devices:
        asked = [replace(ASKED, device_id=f"{number:064}", scopes=("operator.read",)) for number in range(20)]
        await asyncio.gather(*(devices.pair(one, "silent") for one in asked))
        roles = [replace(ASKED, role=role) for role in ("operator", "node")] * 3
        await asyncio.gather(*(devices.pair(one, "silent") for one in roles))
        assert len(devices.every()) == 21
        assert set(devices.paired(ASKED.device_id).grants) == {"operator", "node"}
