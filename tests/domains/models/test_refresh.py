"""One refresher for each account."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from garra.core import oauth as pure
from garra.core.errors import FailureKind, NotFound, RunFailed
from garra.core.oauth import Tokens
from garra.core.profiles import OWNER, Profile
from garra.core.secret import Secret
from garra.domains.models import refresh
from garra.domains.models.logins import Logins
from garra.domains.models.oauth import OAuth
from garra.domains.models.refresh import Renewals, Sources
from garra.io.http import GuardedHttp
from garra.io.store.db import Connection, Database
from garra.io.tasks import Tasks
from garra.sdk.ports import DIRECT, Via
from garra.testing.clock import ManualClock, settle
from garra.testing.issuer import Issuer
from tests.domains.models.renewing import issuer as of

ROOT = Path(__file__).parents[3]


@dataclass
class Stand:
    """A refresher over a real store and a real issuer, with a clock that stands."""

    issuer: Issuer
    logins: Logins
    renewals: Renewals
    clock: ManualClock
    db: Database
    tasks: Tasks
    borrowed: Profile | None = None
    lost: bool = False

    async def login(self, ends_in_ms: int = -1, **more: Any) -> Profile:
        """A login whose access ends then."""
        refresh_token = Secret(more.pop("refresh", "") or self.issuer.given())
        ends = self.clock.now_ms() + ends_in_ms
        return await self.logins.put(
            Profile(more.pop("id", "fake:a"), "fake", "oauth", Secret("old"), refresh_token, ends, **more)
        )

    @property
    def renewed(self) -> int:
        return self.issuer.uses["refresh_token"]


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Stand]:
    clock, http, db = ManualClock(), GuardedHttp(), Database(tmp_path / "state.db")
    async with Issuer() as issuer, Tasks() as tasks:
        logins = Logins(db, clock)

        def source(_: Profile) -> tuple[pure.Issuer, Via]:
            if stand.lost:
                raise NotFound("no such provider")
            return of(issuer.url), DIRECT

        sources = Sources(source, lambda _: stand.borrowed)
        ask = OAuth(http, clock, tasks).ask
        renewals = Renewals(logins, ask, clock, tasks, locks=tmp_path / "locks", sources=sources)
        stand = Stand(issuer, logins, renewals, clock, db, tasks)
        yield stand
        await renewals.close()
    await db.close()
    await http.close()


async def process(state: Path, issuer: Issuer, count: int) -> asyncio.subprocess.Process:
    """A process that is ready to have that many turns; a line to it lets it begin."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.domains.models.renewing", str(state), str(count), issuer.url,
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.req("MODEL-05")
async def test_a_login_near_its_end_is_renewed_once(at: Stand) -> None:
    old = await at.login(60_000)
    found = await asyncio.gather(*(at.renewals.fresh(old) for _ in range(20)))
    assert at.renewed == 1
    assert len({each.secret for each in found}) == 1
    stored = await at.logins.get("", "fake:a")
    assert stored is not None
    assert stored.refresh.reveal() in at.issuer.live
    assert (stored.extra["accountId"], stored.email) == ("acc", "a@example.org")
    assert await at.renewals.fresh(old) == stored
    assert at.renewed == 1


@pytest.mark.req("MODEL-05")
async def test_twenty_turns_in_two_processes(tmp_path: Path) -> None:
    """At the end of an access: one renewal, twenty answers."""
    async with Issuer(delay_s=0.3) as issuer:
        db = Database(tmp_path / "state.db")
        login = Profile("fake:a", "fake", "oauth", Secret("old"), Secret(issuer.given()), 1)
        await Logins(db, ManualClock()).put(login)
        await db.close()
        both = [await process(tmp_path, issuer, 10) for _ in range(2)]
        said = await asyncio.gather(*(each.communicate(b"\n") for each in both))
        found = [secret for out, _ in said for secret in json.loads(out)]
        assert (len(found), len(set(found))) == (20, 1)
        assert found[0] in issuer.access
        assert issuer.uses["refresh_token"] == 1


async def test_a_turn_that_is_stopped_does_not_stop_the_renewal(at: Stand) -> None:
    at.issuer.delay_s = 0.2
    old = await at.login()
    turn = at.tasks(at.renewals.fresh(old), "a turn")
    await at.issuer.renewing.wait()
    turn.cancel()
    await at.renewals.close()
    stored = await at.logins.get("", "fake:a")
    assert stored is not None
    assert stored.refresh.reveal() in at.issuer.live


async def test_a_process_that_is_killed_while_it_renews(at: Stand, tmp_path: Path) -> None:
    """The token is spent and the answer lost; that is said, and the issuer is not asked a third time."""
    at.issuer.delay_s = 30
    old = await at.login()
    child = await process(tmp_path, at.issuer, 1)
    assert child.stdin is not None
    child.stdin.write(b"\n")
    await child.stdin.drain()
    await at.issuer.renewing.wait()
    child.kill()
    await child.wait()
    at.issuer.delay_s = 0
    for _ in range(3):
        with pytest.raises(RunFailed, match=r"a process was ended while it renewed.*garra models auth login") as failed:
            await at.renewals.fresh(old)
        assert failed.value.failure.kind is FailureKind.AUTH
    assert at.renewed == 2


async def test_the_answer_was_lost_and_the_issuer_is_patient(at: Stand) -> None:
    """Issuers with a grace period take the old token once more."""
    at.issuer.mute = True
    old = await at.login()
    with pytest.raises(RunFailed) as failed:
        await at.renewals.fresh(old)
    assert failed.value.failure.kind is FailureKind.NETWORK
    at.issuer.mute = False
    at.issuer.live.add(old.refresh.reveal())
    assert (await at.renewals.fresh(old)).secret.reveal() in at.issuer.access


async def test_a_login_that_is_refused_for_good(at: Stand) -> None:
    old = await at.login(60_000, refresh="revoked")
    assert (await at.renewals.fresh(old)).secret.reveal() == "old"
    assert (await at.renewals.fresh(old)).secret.reveal() == "old"
    assert at.renewed == 1
    stored = await at.logins.get("", "fake:a")
    assert stored is not None
    assert "invalid_grant" in refresh.refused(stored)
    await at.clock.advance(61)
    with pytest.raises(RunFailed, match="log in again") as failed:
        await at.renewals.fresh(old)
    assert "revoked" not in str(failed.value)
    await at.login()
    assert (await at.renewals.fresh(old)).secret.reveal() in at.issuer.access


async def test_an_issuer_that_is_down_is_let_be_while_the_access_holds(at: Stand) -> None:
    old = await at.login(120_000)
    at.issuer.broken = 2
    assert (await at.renewals.fresh(old)).secret.reveal() == "old"
    assert (await at.renewals.fresh(old)).secret.reveal() == "old"
    assert at.renewed == 1
    await at.clock.advance(31)
    assert (await at.renewals.fresh(old)).secret.reveal() == "old"
    await at.clock.advance(31)
    assert (await at.renewals.fresh(old)).secret.reveal() in at.issuer.access


async def test_an_issuer_that_is_down_when_the_access_is_over(at: Stand) -> None:
    old = await at.login()
    at.issuer.broken = 1
    with pytest.raises(RunFailed, match="could not be renewed now"):
        await at.renewals.fresh(old)
    assert (await at.renewals.fresh(old)).secret.reveal() in at.issuer.access


async def test_somebody_who_logs_in_meanwhile_wins(at: Stand) -> None:
    at.issuer.delay_s = 0.2
    old = await at.login()
    turn = at.tasks(at.renewals.fresh(old), "a turn")
    await at.issuer.renewing.wait()
    await at.login(3_600_000)
    new = await turn
    stored = await at.logins.get("", "fake:a")
    assert stored is not None
    assert new == stored


async def test_a_change_beside_the_tokens_is_kept(at: Stand) -> None:
    at.issuer.delay_s = 0.2
    old = await at.login()
    turn = at.tasks(at.renewals.fresh(old), "a turn")
    await at.issuer.renewing.wait()
    current = await at.logins.get("", "fake:a")
    assert current is not None
    await at.logins.swap(current, replace(current, email="new@example.org"))
    new = await turn
    assert (new.email, new.secret.reveal() in at.issuer.access) == ("new@example.org", True)


async def test_a_login_that_is_removed_meanwhile_is_gone(at: Stand) -> None:
    at.issuer.delay_s = 0.2
    old = await at.login()
    turn = at.tasks(_failure(at, old), "a turn")
    await at.issuer.renewing.wait()
    await at.logins.remove("", "fake:a")
    assert "was removed" in await turn
    assert await at.logins.get("", "fake:a") is None
    assert "was removed" in await _failure(at, old)


async def _failure(at: Stand, profile: Profile) -> str:
    with pytest.raises(RunFailed) as failed:
        await at.renewals.fresh(profile)
    return failed.value.failure.message


async def test_copies_of_a_login_live_on(at: Stand) -> None:
    old = await at.login()
    await at.login(refresh=old.refresh.reveal(), agent="work")
    new = await at.renewals.fresh(old)
    other = await at.logins.get("work", "fake:a")
    assert other is not None
    assert (other.secret, other.refresh) == (new.secret, new.refresh)


async def test_what_was_renewed_but_not_stored_is_used_and_stored_later(at: Stand) -> None:
    old = await at.login()

    def forbid(connection: Connection) -> None:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON auth_profiles WHEN instr(NEW.body, 'accountId') "
            "BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )

    await at.db.write(forbid)
    new = await at.renewals.fresh(old)
    assert new.secret.reveal() in at.issuer.access
    await at.db.write(lambda connection: connection.execute("DROP TRIGGER full"))
    assert (await at.renewals.fresh(old)).secret == new.secret
    stored = await at.logins.get("", "fake:a")
    assert stored is not None
    assert (stored.refresh, at.renewed) == (new.refresh, 1)


async def test_a_refresh_token_goes_to_its_own_issuer_alone(at: Stand) -> None:
    old = await at.login()
    await at.logins.put(replace(old, extra={refresh.ISSUER: "https://issuer.example"}))
    assert "given by https://issuer.example" in await _failure(at, old)
    at.lost = True
    assert "no such provider" in await _failure(at, old)
    assert at.renewed == 0


async def test_a_login_of_another_program_is_only_read(at: Stand) -> None:
    mine = Profile("x:cli", "x", "oauth", Secret("a"), expires_ms=1, extra={OWNER: "claude"})
    assert "use claude once" in await _failure(at, mine)
    at.borrowed = replace(mine, secret=Secret("b"), expires_ms=at.clock.now_ms() + 9_999)
    assert (await at.renewals.fresh(mine)).secret == Secret("b")


async def test_a_login_without_a_refresh_token(at: Stand) -> None:
    old = await at.login(60_000)
    old = await at.logins.put(replace(old, refresh=Secret("")))
    assert await at.renewals.fresh(old) == old
    await at.clock.advance(60)
    assert "no refresh token" in await _failure(at, old)


def test_what_is_taken_keeps_the_rest() -> None:
    old = Profile("x", "x", "oauth", Secret("a"), Secret("r"), 5, "e@x.y", extra={"plan": "p", "renewal": {}})
    new = refresh.taken(old, Tokens(Secret("b"), Secret(""), 9))
    assert (new.secret, new.refresh, new.expires_ms, new.email) == (Secret("b"), Secret("r"), 9, "e@x.y")
    assert new.extra == {"plan": "p"}


async def test_it_waits_for_nothing_when_nothing_runs(at: Stand) -> None:
    before = len(asyncio.all_tasks())
    await at.renewals.close()
    await settle()
    assert len(asyncio.all_tasks()) <= before
