"""Which login a call takes, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.cooldowns import Fault
from garra.core.errors import Failure, FailureKind, NotFound, RunFailed
from garra.core.profiles import Profile
from garra.core.secret import Secret
from garra.domains.models.catalog import Entry
from garra.domains.models.logins import Logins, kept
from garra.domains.models.profiles import Asked, Line, Profiles
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.provider import Provider
from garra.testing.clock import ManualClock, settle

K = FailureKind
OPENAI = Entry(Provider("openai", "OpenAI", "openai-completions", key_env=("OPENAI_API_KEY",)))
ROUTER = Entry(Provider("openrouter", "OR", "openai-completions", key_env=("OR_KEY",), aggregator=True))


@dataclass
class Stand:
    """Profiles over a real store, with a clock that stands."""

    clock: ManualClock
    db: Database
    logins: Logins
    profiles: Profiles
    env: dict[str, str] = field(default_factory=dict)
    config: Config = field(default_factory=Config)
    learned: list[str] = field(default_factory=list)
    renewed: list[str] = field(default_factory=list)

    def asked(self, model: str = "m", entry: Entry = OPENAI, **more: Any) -> Asked:
        return Asked(entry, model, self.env, **more)

    async def restarted(self) -> Profiles:
        """Another one over the same store, when all is written."""
        await self.db.write(lambda _: None)
        return Profiles(lambda: self.config, self.clock, self.profiles._spawn, logins=self.logins)

    async def ids(self, *words: Any, **more: Any) -> list[str]:
        return [each.id for each in (await self.profiles.line(self.asked(*words, **more))).profiles]

    async def fail(self, kind: FailureKind, asked: Asked, wait_ms: int | None = None) -> str:
        """One call that fails; by whom it went."""
        line = await self.profiles.line(asked)
        now = self.clock.now_ms()
        fault = Fault(asked.model, Failure(kind, "x", retry_after_ms=wait_ms), now, now)
        self.profiles.report(asked, line, line.profiles[0], fault)
        return line.profiles[0].id

    async def answer(self, asked: Asked) -> str:
        line = await self.profiles.line(asked)
        self.profiles.report(asked, line, line.profiles[0], None)
        return line.profiles[0].id


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Stand]:
    clock, db = ManualClock(), Database(tmp_path / "state.db")
    async with Tasks() as tasks:
        logins = Logins(db, clock, tmp_path / "agents")

        async def fresh(profile: Profile) -> Profile:
            stand.renewed.append(profile.id)
            return replace(profile, secret=Secret("new"), expires_ms=clock.now_ms() + 3_600_000)

        profiles = Profiles(
            lambda: stand.config,
            clock,
            tasks,
            logins=logins,
            fresh=fresh,
            learn=lambda text: stand.learned.append(text),
        )
        stand = Stand(clock, db, logins, profiles)
        yield stand
    await db.close()


async def keys(at: Stand, *ids: str, agent: str = "") -> None:
    for id_ in ids:
        await at.logins.put(Profile(f"openai:{id_}", "openai", "api_key", Secret(f"sk-{id_}"), agent=agent))


@pytest.mark.req("MODEL-06")
async def test_thirty_calls_over_three_keys(at: Stand) -> None:
    await keys(at, "a", "b", "c")
    taken = []
    for _ in range(30):
        taken.append(await at.answer(at.asked()))
        await at.clock.advance(1)
    assert {id_: taken.count(f"openai:{id_}") for id_ in "abc"} == {"a": 10, "b": 10, "c": 10}


async def test_a_conversation_stays_with_its_login_also_after_a_restart(at: Stand) -> None:
    await keys(at, "a", "b")
    first = [await at.answer(at.asked(session=name)) for name in ("s", "t", "s", "s", "t")]
    assert first == ["openai:a", "openai:b", "openai:a", "openai:a", "openai:b"]
    again = await at.restarted()
    line = await again.line(at.asked(session="t"))
    assert [each.id for each in line.profiles] == ["openai:b", "openai:a"]


async def test_conversations_that_begin_together_take_different_logins(at: Stand) -> None:
    await keys(at, "a", "b", "c")
    lines = [await at.profiles.line(at.asked(session=str(number))) for number in range(9)]
    taken = [line.profiles[0].id for line in lines]
    assert {id_: taken.count(f"openai:{id_}") for id_ in "abc"} == {"a": 3, "b": 3, "c": 3}


async def test_a_pin_moves_when_its_login_rests(at: Stand) -> None:
    await keys(at, "a", "b")
    asked = at.asked(session="s")
    assert await at.answer(asked) == "openai:a"
    assert await at.fail(K.RATE_LIMIT, asked) == "openai:a"
    assert await at.answer(asked) == "openai:b"
    await at.clock.advance(31)
    assert await at.answer(asked) == "openai:b"


async def test_what_was_chosen_for_another_provider_changes_nothing(at: Stand) -> None:
    await keys(at, "a", "b")
    chosen = at.asked(session="s", prefer="anthropic:work")
    assert [await at.answer(chosen) for _ in range(3)] == ["openai:a"] * 3


async def test_what_a_person_chose_comes_first_and_back(at: Stand) -> None:
    await keys(at, "a", "b")
    chosen = at.asked(session="s", prefer="openai:b")
    assert await at.fail(K.RATE_LIMIT, chosen) == "openai:b"
    assert await at.answer(chosen) == "openai:a"
    await at.clock.advance(31)
    assert await at.answer(chosen) == "openai:b"


@pytest.mark.req("MODEL-09")
async def test_a_limit_is_one_models_until_a_second_is_limited(at: Stand) -> None:
    await keys(at, "a")
    at.profiles._probed["openai"] = at.clock.now_ms() + 31_000
    await at.fail(K.RATE_LIMIT, at.asked("m1"))
    assert await at.ids("m1") == ["openai:a"], "nobody said how long, and there is nobody else"
    await at.clock.advance(31)
    await at.fail(K.RATE_LIMIT, at.asked("m1"), 30_000)
    assert await at.ids("m2") == ["openai:a"]
    with pytest.raises(RunFailed):
        await at.ids("m1")
    await at.fail(K.RATE_LIMIT, at.asked("m2"))
    with pytest.raises(RunFailed) as refused:
        await at.ids("m3")
    assert (refused.value.failure.kind, refused.value.failure.retry_after_ms) == (K.RATE_LIMIT, 30_000)


@pytest.mark.req("MODEL-11")
async def test_an_aggregator_does_not_rest(at: Stand) -> None:
    at.env["OR_KEY"] = "k"
    for _ in range(3):
        assert await at.fail(K.RATE_LIMIT, at.asked(entry=ROUTER)) == "openrouter:env"
    assert not at.profiles.resting(ROUTER, "m", at.env)


@pytest.mark.req("MODEL-16")
async def test_one_probe_in_half_a_minute_and_it_ends_the_rest(at: Stand) -> None:
    at.env["OPENAI_API_KEY"] = "k"
    asked = at.asked()
    probes = 0
    await at.fail(K.RATE_LIMIT, asked, 3_000_000)
    for _ in range(20):
        with suppress(RunFailed):
            await at.fail(K.RATE_LIMIT, asked, 3_000_000)
            probes += 1
        await at.clock.advance(5)
    assert probes == 4
    await at.clock.advance(30)
    assert await at.answer(asked) == "openai:env"
    assert await at.ids() == ["openai:env"]


async def test_who_comes_during_a_probe_waits_for_it(at: Stand) -> None:
    at.env["OPENAI_API_KEY"] = "k"
    asked = at.asked()
    await at.fail(K.BILLING, asked)
    probe = await at.profiles.line(asked)
    assert probe.probe
    other = asyncio.ensure_future(at.profiles.line(asked))
    await settle()
    assert not other.done()
    at.profiles.report(asked, probe, probe.profiles[0], None)
    assert (await other).profiles == probe.profiles


async def test_a_short_rest_is_waited_for_where_nobody_else_could_answer(at: Stand) -> None:
    at.env["OPENAI_API_KEY"] = "k"
    at.profiles._probed["openai"] = at.clock.now_ms()
    await at.fail(K.RATE_LIMIT, at.asked(), 5_000)
    with pytest.raises(RunFailed, match="too many requests"):
        await at.profiles.line(at.asked(patient=False))
    waiting: asyncio.Future[Line] = asyncio.ensure_future(at.profiles.line(at.asked()))
    await at.clock.advance(5)
    assert [each.id for each in (await waiting).profiles] == ["openai:env"]


async def test_one_refused_key_is_asked_again_at_once(at: Stand) -> None:
    at.env["OPENAI_API_KEY"] = "k"
    await at.fail(K.AUTH, at.asked())
    assert await at.answer(at.asked()) == "openai:env"


async def test_another_key_is_another_login(at: Stand) -> None:
    at.env["OPENAI_API_KEY"] = "old"
    await at.fail(K.BILLING, at.asked())
    assert at.profiles.resting(OPENAI, "m", at.env)
    at.env["OPENAI_API_KEY"] = "new"
    assert not at.profiles.resting(OPENAI, "m", at.env)


async def test_several_keys_of_the_environment(at: Stand) -> None:
    at.env |= {"OPENAI_API_KEY": "one", "OPENAI_API_KEYS": "two, three;two", "OPENAI_API_KEY_4": "four",
               "OPENAI_API_KEY_FILE": "/x"}  # fmt: skip
    line = await at.profiles.line(at.asked())
    assert [each.secret.reveal() for each in line.profiles] == ["two", "three", "one", "four"]
    assert [each.id for each in line.profiles][:2] == ["openai:env", "openai:env2"]
    assert at.learned == ["two", "three", "one", "four"]
    await at.fail(K.RATE_LIMIT, at.asked())
    assert (await at.profiles.credential(at.asked())).secret == "three"
    at.env["GARRA_LIVE_OPENAI_KEY"] = "only"
    assert (await at.profiles.credential(at.asked())).secret == "only"


@pytest.mark.req("MODEL-05")
async def test_an_agents_file_is_read_and_closed_to_others(at: Stand, tmp_path: Path) -> None:
    path = tmp_path / "agents" / "work" / "agent" / "auth-profiles.json"
    path.parent.mkdir(parents=True)
    body = {"profiles": {"openai:w": {"type": "token", "provider": "openai", "token": "tok"}, "x": {}}}
    path.write_text(json.dumps(body))
    path.chmod(0o644)
    await keys(at, "a", agent="main")
    assert (await at.profiles.credential(at.asked(agent="work"))).profile_id == "openai:w"
    assert (await at.profiles.credential(at.asked(agent="other"))).profile_id == "openai:a"
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(at.learned) == ["sk-a", "tok"]


@pytest.mark.req("MODEL-05")
async def test_an_oauth_login_near_its_end_is_renewed(at: Stand) -> None:
    soon = at.clock.now_ms() + 60_000
    login = Profile("openai:me", "openai", "oauth", Secret("old"), Secret("r"), soon)
    await at.logins.put(login)
    assert (await at.profiles.credential(at.asked())).secret == "new"
    assert (await at.profiles.credential(at.asked())).secret == "new"
    assert at.renewed == ["openai:me"]


async def test_orders(at: Stand) -> None:
    await keys(at, "a", "b", "c")
    at.config = Config.model_validate({"auth": {"profiles": {"openai:b": {"provider": "openai"}}}})
    assert await at.ids() == ["openai:b"]
    at.config = Config.model_validate({"auth": {"order": {"openai": ["openai:c", "openai:b"]}}})
    assert await at.ids() == ["openai:c", "openai:b"]
    await at.logins.order("main", "openai", ("openai:a",))
    await at.profiles.read()
    assert await at.ids() == ["openai:a"]
    await at.logins.order("main", "openai", None)
    await at.profiles.read()
    assert await at.ids() == ["openai:c", "openai:b"]


async def test_rests_outlast_a_restart_and_a_new_key_ends_them(at: Stand) -> None:
    await keys(at, "a")
    await at.fail(K.BILLING, at.asked())
    fresh = await at.restarted()
    await fresh.read()
    assert fresh.resting(OPENAI, "m", at.env)
    await at.logins.put(Profile("openai:a", "openai", "api_key", Secret("sk-other")))
    await fresh.read()
    assert not fresh.resting(OPENAI, "m", at.env)


async def test_a_login_made_meanwhile_is_found_before_a_call_fails_for_want_of_one(at: Stand) -> None:
    with pytest.raises(RunFailed, match="no key for openai"):
        await at.profiles.line(at.asked())
    await keys(at, "late")
    await at.clock.advance(1)
    assert await at.ids() == ["openai:late"]
    assert at.profiles.has("openai")
    assert (at.profiles.key("openai"), at.profiles.key("groq")) == ("sk-late", "")


async def test_a_key_that_stands_elsewhere(at: Stand, tmp_path: Path) -> None:
    def look(source: str, provider: str, name: str) -> str:
        if name != "X":
            raise NotFound(f"no {name}")
        return f"{source} {provider} secret"

    logins = Logins(at.db, at.clock, look=look)
    for id_ in "XY":
        extra = {"keyRef": {"source": "env", "provider": "default", "id": id_}}
        await logins.put(Profile(f"openai:{id_}", "openai", "api_key", extra=extra))
    profiles = Profiles(lambda: at.config, at.clock, at.profiles._spawn, logins=logins)
    line = await profiles.line(at.asked())
    assert [(each.id, each.secret.reveal()) for each in line.profiles] == [("openai:X", "env default secret")]


async def test_programs_without_a_loop_can_look(at: Stand, tmp_path: Path) -> None:
    await keys(at, "a")
    found = await asyncio.to_thread(kept, tmp_path / "state.db", tmp_path / "agents", at.clock)
    assert [each.id for each in found.profiles.values()] == ["openai:a"]


async def test_of_two_who_change_a_login_one_wins(at: Stand) -> None:
    await keys(at, "a")
    old = await at.logins.get("", "openai:a")
    assert old is not None
    new = replace(old, secret=Secret("x"))
    assert await at.logins.swap(old, new) is not None
    assert await at.logins.swap(old, new) is None
    assert await at.logins.remove("", "openai:a")
    assert not await at.logins.remove("", "openai:a")
