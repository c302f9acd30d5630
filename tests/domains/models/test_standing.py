"""How logins stand, and whether they answer when they are tried."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.cooldowns import Health, Rest
from garra.core.profiles import OWNER, Profile
from garra.core.secret import Secret
from garra.domains.models import probing, standing
from garra.domains.models.call import Ports
from garra.domains.models.logins import Kept, Logins
from garra.domains.models.probing import Limits, Target
from garra.domains.models.registry import Models
from garra.io.store.db import Database
from garra.testing.model_dialects import Cut
from garra.testing.model_server import Fail, Silence
from tests.domains.models.desk import KNOWN, Desk, desk

NOW = 1_790_000_000_000
DAY = 86_400_000


def login(kind: Any = "oauth", ends: int | None = None, **more: Any) -> Profile:
    return Profile("x:a", "x", kind, Secret("top-secret"), expires_ms=ends, **more)


@pytest.mark.parametrize(
    ("profile", "stands"),
    [
        (login(ends=1, refresh=Secret("r")), "ok"),
        (login("api_key"), "static"),
        (login("token", NOW + 2 * DAY), "ok"),
        (login("token", NOW + DAY), "expiring"),
        (login("token", NOW), "expired"),
        (login("token", -1), "expired"),
        (login(ends=NOW + 1, extra={OWNER: "claude"}), "ok"),
        (Profile("x:a", "x", "api_key"), "missing"),
    ],
)
def test_how_one_stands(profile: Profile, stands: str) -> None:
    assert standing.standing(profile, NOW) == stands
    assert "top-secret" not in str(standing.row(profile, NOW))


def test_all_of_them_in_the_originals_words() -> None:
    profiles = {("", "x:a"): login("token", NOW + DAY, email="a@b.c"), ("", "x:b"): login(refresh=Secret("r"))}
    rests = Health(
        whole=Rest("billing", NOW, NOW + 5_000), models={"m": Rest("rate_limit", NOW, NOW + 9), "n": Rest("x", 1, 2)}
    )
    told = standing.overview(Kept(profiles, {("", "x:a"): rests}, {}), {"y": "env"}, NOW)
    assert told["providersWithOAuth"] == ["x (2)"]
    assert [(each["provider"], each["effective"]["kind"]) for each in told["providers"]] == [
        ("x", "profiles"),
        ("y", "env"),
    ]
    assert told["providers"][0]["profiles"]["labels"] == ["x:a (a@b.c)", "x:a"]
    assert [(each["kind"], each["reason"], each.get("model")) for each in told["unusableProfiles"]] == [
        ("disabled", "billing", None), ("cooldown", "rate_limit", "m"),
    ]  # fmt: skip
    assert told["oauth"]["providers"][0]["status"] == "ok"
    assert told["oauth"]["profiles"][0]["remainingMs"] == DAY
    assert standing.best(()) == "missing"


# ---- tried


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[tuple[Desk, Models, Logins]]:
    async with desk() as own:
        db = Database(tmp_path / "state.db")
        ports = own.models._ports
        logins = Logins(db, ports.clock)
        own.models = Models(
            lambda: own.config, Ports(ports.apis, lambda: own.env, ports.spawn, ports.clock, logins=logins), KNOWN
        )
        row = {"id": "m", "name": "m"}
        provider = {"api": "openai-completions", "baseUrl": f"{own.server.url}/v1", "models": [row]}
        own.config = Config.model_validate(
            {"models": {"providers": {"x": provider, "bare": {**provider, "models": []}}}}
        )
        yield own, own.models, logins
        await db.close()


async def test_each_login_is_tried_with_one_request(at: tuple[Desk, Models, Logins]) -> None:
    own, models, logins = at
    await logins.put(Profile("x:a", "x", "api_key", Secret("first-key-0123")))
    await logins.put(Profile("x:b", "x", "token", Secret("old"), expires_ms=1))
    await logins.put(Profile("x:c", "x", "api_key", Secret("third")))
    await logins.order("", "x", ("x:a", "x:b"))
    listed = await probing.targets(models, "x")
    assert [(each.profile, each.reason) for each in listed] == [
        ("x:a", ""), ("x:b", "expired"), ("x:c", "excluded_by_auth_order"),
    ]  # fmt: skip
    found = await probing.tried(models, listed)
    assert [each["status"] for each in found] == ["ok", "auth", "auth"]
    assert found[0]["latencyMs"] >= 0
    assert "log in again" in found[1]["error"]
    assert [each.key for each in own.server.requests] == ["first-key-0123"]
    assert own.server.requests[0].body["max_completion_tokens"] == probing.TOKENS
    only = await probing.targets(models, "x", only=["x:c"])
    assert [each.profile for each in only] == ["x:c"]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Fail(401, "the key first-key-0123 is wrong"), "auth"),
        (Fail(402, "no credit"), "billing"),
        (Fail(400, "bad field"), "format"),
        (Fail(404, "no such model"), "no_model"),
        (Fail(500, "boom"), "unknown/server_error"),
        (Cut("o"), "unknown/cut_stream"),
    ],
)
async def test_what_a_failure_is_called(at: tuple[Desk, Models, Logins], reply: Any, status: str) -> None:
    own, models, logins = at
    await logins.put(Profile("x:a", "x", "api_key", Secret("first-key-0123")))
    own.server.then(*[reply] * 4)
    (found,) = await probing.tried(models, await probing.targets(models, "x"))
    assert "/".join(filter(None, (found["status"], found.get("reasonCode")))) == status
    assert "first-key-0123" not in found["error"]


async def test_one_that_is_silent(at: tuple[Desk, Models, Logins]) -> None:
    own, models, _ = at
    own.server.then(Silence())
    (found,) = await probing.tried(models, await probing.targets(models, "x"), Limits(timeout_s=0.2))
    assert found["status"] == "timeout"


async def test_where_there_is_nothing_to_try(at: tuple[Desk, Models, Logins]) -> None:
    _, models, _ = at
    (bare,) = await probing.tried(models, await probing.targets(models, "bare"))
    assert (bare["status"], bare["reasonCode"]) == ("no_model", "no_model")
    assert await probing.targets(models, "groq") == []
    (lost,) = await probing.tried(models, [Target("nosuch/x", "nosuch")])
    assert lost["status"] == "no_model"
    assert "x" in probing.usable(models)
