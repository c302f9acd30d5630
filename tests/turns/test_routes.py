"""Routes are remembered, but not for ever and not against the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.turns.routes import Routes, spot
from tests.turns.house import config, echo, house, message


def agents(*bindings: dict[str, Any]) -> Any:
    return config({"agents": {"list": [{"id": "main"}, {"id": "work"}]}, "bindings": list(bindings)})


WORK = {"agentId": "work", "match": {"channel": "test", "peer": {"kind": "direct", "id": "2"}}}


@pytest.mark.req("CH-07")
def test_four_thousand_places_are_remembered_and_a_new_binding_counts_at_once() -> None:
    settings = [agents()]
    routes = Routes(lambda: settings[0])
    for number in range(5_000):
        assert routes.find(spot(message(user=str(number)))).agent == "main"
    assert len(routes) == 4_000
    assert routes.find(spot(message(user="2"))).agent == "main"
    settings[0] = agents(WORK)
    assert routes.find(spot(message(user="2"))).agent == "work"
    assert len(routes) == 1


def test_a_binding_to_an_agent_that_is_not_there_leads_home() -> None:
    routes = Routes(lambda: agents({**WORK, "agentId": "gone"}))
    assert routes.find(spot(message(user="2"))).agent == "main"


@pytest.mark.req("CH-05")
async def test_two_agents_on_one_gateway_share_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, echo, agents(WORK)) as h:
        await h.channel.say("for home", "1")
        await h.channel.say("for work", "2")
        await h.idle()
        home = await h.sessions.need("agent:main:test:direct:1")
        work = await h.sessions.need("agent:work:test:direct:2")
        paths = [(await h.sessions.transcript(each.key)).path for each in (home, work)]
        assert [path.parent.parent.name for path in paths] == ["main", "work"]
        assert "for home" not in paths[1].read_text()
        headers = [(await h.sessions.transcript(each.key)).header["cwd"] for each in (home, work)]
        assert headers[0] != headers[1]
