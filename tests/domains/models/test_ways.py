"""The ways to log in, where calls by a login go, and the logins of other programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from garra.config.sections import Config
from garra.core.errors import NotFound, UserError
from garra.core.profiles import Profile
from garra.core.secret import Secret
from garra.domains.models import borrowed, catalog, route, ways
from garra.domains.models.call import Ports
from garra.domains.models.catalog import Entry
from garra.domains.models.logins import Logins
from garra.domains.models.registry import Models
from garra.io.store.db import Database
from garra.sdk.model import Model, ModelRequest
from garra.sdk.provider import Provider
from tests.domains.models.desk import Desk, desk

SHIPPED = {provider.id: provider for provider in catalog.shipped()}
OPENAI, ANTHROPIC = Entry(SHIPPED["openai"]), Entry(SHIPPED["anthropic"])


def test_what_the_providers_in_the_box_offer() -> None:
    assert [(each.id, each.kind) for each in ways.ways(OPENAI)] == [("oauth", "oauth"), ("api-key", "api_key")]
    assert [each.id for each in ways.ways(ANTHROPIC)] == ["api-key", "setup-token"]
    assert [each.id for each in ways.ways(Entry(SHIPPED["groq"]))] == ["api-key"]
    assert ways.ways(Entry(SHIPPED["local"])) == ()
    assert ways.way(OPENAI).id == "oauth"
    assert ways.way(ANTHROPIC, kind="token").prefix == "sk-ant-oat01-"
    with pytest.raises(NotFound, match="no login 'x'; there are: oauth, api-key"):
        ways.way(OPENAI, "x")
    with pytest.raises(NotFound, match="kind oauth"):
        ways.way(ANTHROPIC, kind="oauth")
    with pytest.raises(NotFound, match="no provider gone"):
        ways.known({}, "gone")


def test_every_way_in_the_box_can_be_read() -> None:
    for provider in SHIPPED.values():
        assert all(each.name for each in ways.ways(Entry(provider)))


def test_an_issuer_of_ones_own() -> None:
    settings = {
        "openai": {"logins": {"oauth": {"tokenUrl": "https://own.example/token"}}},
        "mine": {
            "baseUrl": "https://m.example", "models": [],
            "logins": {"sso": {"kind": "oauth", "clientId": "c", "tokenUrl": "https://m.example/token"}},
        },
    }  # fmt: skip
    config = Config.model_validate({"models": {"providers": settings}})
    entries = catalog.entries(config, SHIPPED.values())
    changed = ways.way(entries["openai"]).issuer
    assert changed is not None
    assert (changed.origin, changed.client_id[:4]) == ("https://own.example", "app_")
    mine = ways.way(entries["mine"])
    assert (mine.id, mine.issuer and mine.issuer.client_id) == ("sso", "c")


def test_data_that_cannot_be_read() -> None:
    with pytest.raises(UserError, match="kind 'magic'"):
        ways.ways(Entry(Provider("x", "X", "f", logins=({"id": "a", "kind": "magic"},))))
    with pytest.raises(UserError, match="client_id and token_url"):
        ways.ways(Entry(Provider("x", "X", "f", logins=({"id": "a", "kind": "oauth"},))))


def test_a_login_remembers_who_gave_it() -> None:
    way = ways.way(OPENAI)
    login = ways.marked(Profile("openai:a", "openai", "oauth"), way)
    assert login.extra == {"method": "oauth", "issuer": "https://auth.openai.com"}
    assert ways.issuer(OPENAI, login) == way.issuer
    with pytest.raises(NotFound, match="could renew"):
        ways.issuer(ANTHROPIC, login)


def test_calls_by_a_login_go_elsewhere() -> None:
    model = Model("openai", "m", "openai-completions", "https://api.openai.com/v1", headers={"x": "y"})
    request = ModelRequest(model, "", ())
    key = Profile("k", "openai", "api_key", Secret("k"))
    assert route.routed(request, key, OPENAI) is request
    login = Profile("o", "openai", "oauth", Secret("a"), extra={"method": "oauth", "accountId": "acc"})
    found = route.routed(request, login, OPENAI).model
    assert (found.api, found.base_url) == ("openai-responses", "https://chatgpt.com/backend-api/codex")
    assert (found.headers["chatgpt-account-id"], found.headers["x"]) == ("acc", "y")
    bare = route.routed(request, replace(login, extra={}), OPENAI).model
    assert "chatgpt-account-id" not in bare.headers
    assert route.routed(request, replace(login, extra={"method": "other"}), OPENAI) is request
    assert route.routed(request, login, ANTHROPIC) is request


# ---- other programs


def claude(folder: Path, **login: Any) -> None:
    """As Claude's command line leaves it."""
    folder.mkdir(exist_ok=True)
    body = {"accessToken": "sk-ant-oat01-x", "refreshToken": "never", "expiresAt": 9_999_999_999_999, **login}
    (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": body}))


@pytest.mark.req("MODEL-21")
def test_the_login_of_claudes_command_line(tmp_path: Path) -> None:
    assert borrowed.found({}) == ()
    assert borrowed.found({"HOME": str(tmp_path)}) == ()
    claude(tmp_path / ".claude", subscriptionType="max")
    (login,) = borrowed.found({"HOME": str(tmp_path)})
    assert (login.id, login.kind, login.secret) == ("anthropic:claude-cli", "oauth", Secret("sk-ant-oat01-x"))
    assert not login.refresh
    assert login.extra == {"managedBy": "claude", "plan": "max"}
    claude(tmp_path / "other", accessToken="two")
    env = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "other")}
    assert borrowed.found(env)[0].secret == Secret("two")
    again = borrowed.again(login, env)
    assert again is not None
    assert again.secret == Secret("two")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"claudeAiOauth": {}}', '{"claudeAiOauth": {"accessToken": 1}}'])
def test_a_login_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / ".credentials.json").write_text(text)
    assert borrowed.found({"CLAUDE_CONFIG_DIR": str(tmp_path)}) == ()


@dataclass
class Borrower:
    """A registry whose anthropic is the scripted server, with a login of Claude's on this machine."""

    desk: Desk
    models: Models
    home: Path

    async def keys(self, env: dict[str, str]) -> str | None:
        self.desk.env = env
        await self.models.stream(self.desk.request("anthropic/claude-sonnet-5")).result()
        return self.desk.server.requests[-1].key


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Borrower]:
    async with desk() as own:
        db = Database(tmp_path / "state.db")
        logins = Logins(db, own.models._ports.clock, None, lambda: borrowed.found({"HOME": str(tmp_path)}))
        own.configure({"models": {"providers": {"anthropic": {"baseUrl": own.server.url}}}})
        ports = own.models._ports
        own.models = Models(
            lambda: own.config, Ports(ports.apis, lambda: own.env, ports.spawn, ports.clock, logins=logins),
            tuple(SHIPPED.values()),
        )  # fmt: skip
        yield Borrower(own, own.models, tmp_path)
        await db.close()


@pytest.mark.req("MODEL-21")
async def test_it_is_used_where_there_is_no_key(at: Borrower) -> None:
    """Found without any configuration; a key of one's own comes before it; the file is not touched."""
    await asyncio.to_thread(claude, at.home / ".claude")
    file = at.home / ".claude" / ".credentials.json"
    before = await asyncio.to_thread(file.read_bytes)
    assert await at.keys({}) == "sk-ant-oat01-x"
    sent = at.desk.server.requests[-1].headers
    assert (sent["authorization"], sent["anthropic-beta"]) == ("Bearer sk-ant-oat01-x", "oauth-2025-04-20")
    assert "x-api-key" not in sent
    assert await at.keys({"ANTHROPIC_API_KEY": "sk-ant-own"}) == "sk-ant-own"
    assert await asyncio.to_thread(file.read_bytes) == before
