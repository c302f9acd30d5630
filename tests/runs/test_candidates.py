"""Which models may answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from garra.core.errors import NotFound
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.domains.sessions.changes import apply
from garra.domains.sessions.session import Session
from garra.runs.candidates import candidates, profile
from garra.runs.run import Turn
from garra.sdk.tool import Origin
from tests.domains.models.desk import Desk, desk

KEY, MAIN = SessionKey("agent:main:main"), AgentId("main")


@pytest.fixture
async def at() -> AsyncIterator[Desk]:
    async with desk() as ready:
        yield ready


def refs(at: Desk, agents: dict[str, Any], origin: Origin = "channel", **more: Any) -> list[str]:
    at.configure({**at.provider(), "agents": agents})
    turn = Turn(RunId("r"), KEY, MAIN, "hi", origin=origin, model=more.pop("model", None))
    session = Session(KEY, SessionId("s"), MAIN, 0, 0, 0, **more)
    return [model.id for model in candidates(at.models, at.config, turn, session)]


CHAIN = {"defaults": {"model": {"primary": "fake/a", "fallbacks": ["fake/b", "nobody/x", "fake/c", "fake/a"]}}}


def test_the_one_that_is_meant_then_those_behind_it(at: Desk) -> None:
    assert refs(at, CHAIN) == ["a", "b", "c"]


@pytest.mark.parametrize("origin", ["channel", "operator"])
def test_who_chose_by_hand_gets_that_or_a_word_why_not(at: Desk, origin: Origin) -> None:
    assert refs(at, CHAIN, origin, model="fake/z") == ["z"]
    assert refs(at, CHAIN, origin, provider_override="fake", model_override="y") == ["y"]


def test_what_a_program_chose_has_the_chain_and_the_configured_one_behind_it(at: Desk) -> None:
    assert refs(at, CHAIN, "job", model="fake/z") == ["z", "b", "c", "a"]


def test_an_agents_own_model_stands_alone_unless_it_says_otherwise(at: Desk) -> None:
    assert refs(at, CHAIN | {"list": [{"id": "main", "model": "fake/own"}]}) == ["own"]
    own = {"primary": "fake/own", "fallbacks": ["fake/c"]}
    assert refs(at, CHAIN | {"list": [{"id": "main", "model": own}]}) == ["own", "c"]
    assert refs(at, CHAIN | {"list": [{"id": "main", "model": {"fallbacks": []}}]}) == ["a"]


def test_none_that_can_be_found(at: Desk) -> None:
    with pytest.raises(NotFound):
        refs(at, {"defaults": {"model": {"primary": "nobody/x"}}})


def test_a_login_chosen_with_the_model() -> None:
    session = Session(KEY, SessionId("s"), MAIN, 0, 0, 0)
    chosen = apply(session, {"model": "openai/gpt-5@openai:work", "unread": True})
    assert (chosen.override, profile(chosen.extra), chosen.extra["unread"]) == ("openai/gpt-5", "openai:work", True)
    plain = apply(session, {"model": "cloud/@cf/x"})
    assert (plain.override, profile(plain.extra)) == ("cloud/@cf/x", "")
