"""Strangers, codes, and who was let in: one authority, on disk."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Conflict, NotFound, UserError
from garra.domains.access.pairing import Happened, Pairing, Request
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf
from garra.testing.clock import ManualClock

HOUR = 3_600.0


@asynccontextmanager
async def register(folder: Path, clock: ManualClock | None = None, seed: int = 1) -> AsyncIterator[Pairing]:
    db = Database(folder / "state.db")
    pairing = Pairing(lambda name: Shelf(db, name), clock or ManualClock(), random.Random(seed).randrange)
    await pairing.load()
    yield pairing
    await db.close()


async def knock(pairing: Pairing, sender: str = "42", account: str = "default", **more: str) -> Request | None:
    return await pairing.knock({"channel": "telegram", "account": account, "sender": sender, "chat": sender, **more})


@pytest.mark.req("SEC-02")
async def test_a_code_is_eight_plain_letters_and_stays_the_one(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        codes = set()
        for sender in ("1", "2", "3"):
            request = await knock(pairing, sender)
            assert request is not None
            assert re.fullmatch(r"[A-HJ-NP-Z2-9]{8}", request.code)
            codes.add(request.code)
            again = await knock(pairing, sender)
            assert again is not None
            assert (again.code, again.created_at) == (request.code, request.created_at)
        assert len(codes) == 3
        assert await knock(pairing, "4") is None
        assert await knock(pairing, "4", account="other") is not None


@pytest.mark.req("SEC-02")
async def test_whoever_has_the_code_is_let_in_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        request = await knock(pairing, name="Ann", handle="ann")
        assert request is not None
        seen: list[Happened] = []
        stop = pairing.subscribe(seen.append)
        assert not pairing.allowed("telegram", "default").ids
        person = await pairing.approve("telegram", f" {request.code.lower()} ")
        assert (person.sender, person.name) == ("42", "Ann")
        assert not pairing.waiting()
        assert seen == [Happened("approved", "telegram", "default", "42")]
        stop()
    async with register(tmp_path) as pairing:
        assert pairing.allowed("telegram", "default").ids == {"42"}
        assert not pairing.allowed("telegram", "other").ids
        assert not pairing.allowed("discord", "default").ids
        await pairing.revoke("telegram", "42")
        assert not pairing.allowed("telegram", "default").ids
        with pytest.raises(NotFound, match="nobody"):
            await pairing.revoke("telegram", "42")


@pytest.mark.req("SEC-02")
async def test_a_code_is_good_for_an_hour(tmp_path: Path) -> None:
    clock = ManualClock()
    async with register(tmp_path, clock) as pairing:
        request = await knock(pairing)
        assert request is not None
        await clock.advance(HOUR + 60)
        with pytest.raises(NotFound, match="expired"):
            await pairing.approve("telegram", request.code)
        with pytest.raises(NotFound):
            await pairing.approve_request(request.id)
        again = await knock(pairing)
        assert again is not None
        assert again.code != request.code
        assert (await pairing.approve("telegram", again.code)).sender == "42"


async def test_a_waiting_code_outlives_the_program_and_stays_the_one(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        request = await knock(pairing)
    async with register(tmp_path, seed=2) as pairing:
        assert request is not None
        assert await knock(pairing) == request
        assert [each.code for each in pairing.waiting()] == [request.code]


async def test_five_wrong_codes_lock_the_channel_for_an_hour_also_over_a_restart(tmp_path: Path) -> None:
    clock = ManualClock()
    async with register(tmp_path, clock) as pairing:
        request = await knock(pairing)
        assert request is not None
        for account in ("", "default", "", "default", ""):
            with pytest.raises(NotFound):
                await pairing.approve("telegram", "AAAAAAAA", account)
        with pytest.raises(Conflict, match=r"60 more minutes.*garra pairing approve telegram CODE"):
            await pairing.approve("telegram", request.code)
    async with register(tmp_path, clock) as pairing:
        with pytest.raises(Conflict, match="5 wrong codes"):
            await pairing.approve("telegram", request.code)
        await pairing.approve_request(request.id)
        await clock.advance(HOUR)
        fresh = await knock(pairing, "43")
        assert fresh is not None
        assert (await pairing.approve("telegram", fresh.code)).sender == "43"


async def test_who_is_shown_the_codes_is_not_locked_out_and_locks_nobody_out(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        first, second = await knock(pairing, "1"), await knock(pairing, "2")
        assert first is not None
        assert second is not None
        for _ in range(9):
            with pytest.raises(NotFound):
                await pairing.approve("telegram", "AAAAAAAA", guessing=False)
        assert (await pairing.approve("telegram", first.code)).sender == "1"
        for _ in range(5):
            with pytest.raises(NotFound):
                await pairing.approve("telegram", "AAAAAAAA")
        with pytest.raises(Conflict):
            await pairing.approve("telegram", second.code)
        assert (await pairing.approve("telegram", second.code, guessing=False)).sender == "2"


@pytest.mark.req("SEC-04")
@pytest.mark.parametrize("sender", ["*", "", "  "])
async def test_nothing_stored_stands_for_everybody(tmp_path: Path, sender: str) -> None:
    async with register(tmp_path) as pairing:
        with pytest.raises(UserError, match="no sender"):
            await knock(pairing, sender)
        with pytest.raises(NotFound):
            await pairing.approve_request(f"telegram:default:{sender}")
    async with register(tmp_path) as pairing:
        allowed = pairing.allowed("telegram", "default")
        assert (allowed.ids, allowed.anyone) == (frozenset(), False)
        assert not pairing.people()


async def test_a_request_may_be_forgotten_and_made_again(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        request = await knock(pairing)
        assert request is not None
        assert (await pairing.dismiss(request.id)).sender == "42"
        with pytest.raises(NotFound, match="no longer"):
            await pairing.dismiss(request.id)
        assert await knock(pairing) is not None


async def test_a_name_cannot_pass_for_another_row(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        request = await knock(pairing, name="A\x1b[31m\n\u202e9999 Owner\u2028x", handle="a\nb")
        assert request is not None
        assert (request.name, request.handle) == ("A [31m 9999 Owner x", "a b")


async def test_a_long_name_is_cut(tmp_path: Path) -> None:
    async with register(tmp_path) as pairing:
        long: dict[str, Any] = {"name": "x" * 10_000}
        request = await knock(pairing, **long)
        assert request is not None
        assert len(request.name) == 256
