"""To whose account calls go, and which caps hold for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from garra.config.sections import Config
from garra.core.errors import FailureKind
from garra.core.groups import Place
from garra.core.ids import AgentId, RunId, SessionId, SessionKey
from garra.core.messages import Assistant, Text, Usage
from garra.core.spending import Payer, Warned
from garra.io.clock import SystemClock
from garra.runs import bounds
from garra.runs.purse import Books, Purse, capped, caps_of
from garra.runs.run import Run, Turn
from garra.sdk.model import Model, ModelRequest
from tests.domains.spending.test_ledger import Hands, opened

MODEL = Model("p", "m", "fake", "http://x")
ANN = Place("telegram", "default", "7", "7", group=False, owner=True)
CHILD = "agent:main:subagent:c1"


def config(**budget: Any) -> Config:
    return Config.model_validate({"budget": budget})


CAPPED, FREE = config(run={"maxTokens": 100}), config()


def a_run(key: str = "agent:main:main", run_id: str = "r1", place: Place | None = None) -> Run:
    return Run(Turn(RunId(run_id), SessionKey(key), AgentId("main"), "hello", place=place), SessionId("s1"), 1)


def parent(key: str) -> tuple[str, str, Place | None] | None:
    return {CHILD: ("agent:main:main", "r1", ANN), f"{CHILD}x": (CHILD, "c1", None)}.get(key)


def answer(purse: Purse, run: Run, tokens: int) -> None:
    said = Assistant((Text("x"),), 0, usage=Usage(tokens, 0))
    purse.spent(ModelRequest(MODEL, "", (), payer=purse.payer(run)), said, True)


async def test_helpers_pay_from_the_run_that_began_them(tmp_path: Path) -> None:
    async with opened(tmp_path, Hands()) as (ledger, _):
        purse = Purse(Books(ledger, lambda: CAPPED, SystemClock(), parent, lambda: ""))
        told: list[Warned] = []
        purse.tellers.append(lambda _, warned: told.append(warned))
        first, child, grandchild = a_run(place=ANN), a_run(CHILD, "c1"), a_run(f"{CHILD}x", "c2")
        assert purse.payer(grandchild) == Payer("c2", "r1", f"{CHILD}x", "main", "telegram:default:7")
        assert await purse.may(first) is None
        answer(purse, child, 60)
        assert await purse.may(first) is None
        assert [warned.text.split(" of")[0] for warned in told] == ["60 %"]
        answer(purse, grandchild, 60)
        for run in (first, child, grandchild):
            failure = await purse.may(run)
            assert failure is not None
            assert failure.kind is FailureKind.BUDGET
            assert "one run is used up (120 of 100 tokens)" in failure.message
        assert len(told) == 2
        assert await purse.may(a_run(run_id="r2")) is None


async def test_a_call_beside_all_runs_keeps_to_the_budget_too(tmp_path: Path) -> None:
    payer = Payer("", "", "", "main")
    async with opened(tmp_path, Hands()) as (ledger, _):
        purse = Purse(Books(ledger, lambda: config(day={"maxTokens": 100}), SystemClock(), parent, lambda: ""))
        assert await purse.refusal(payer) is None
        answer(purse, a_run(), 120)
        failure = await purse.refusal(payer)
        assert failure is not None
        assert failure.kind is FailureKind.BUDGET
        assert await Purse(Books(ledger, lambda: FREE, SystemClock(), parent, lambda: "")).refusal(payer) is None
    assert await Purse().refusal(payer) is None


async def test_without_caps_nothing_is_asked_of_the_store() -> None:
    assert await Purse().may(a_run()) is None
    assert Purse().payer(a_run()) is None
    assert not capped(FREE.budget)
    assert capped(config(sender={"byId": {"x": {"maxTokens": 1}}}).budget)


def test_single_senders_have_caps_of_their_own() -> None:
    budget = config(
        sender={"maxTokens": 10, "per": "month", "byId": {"telegram:default:7": {"maxCostUsd": 1}}},
        session={"maxTokens": 5}, agent={"maxTokens": 7, "per": "total"}, job={"maxTokens": 3},
        day={"maxTokens": 20}, month={"maxTokens": 30},
    ).budget  # fmt: skip
    own = list(caps_of(budget, Payer("r", "r", "s", "main", "telegram:default:7"), "2026-11-30"))
    assert [cap.key for cap in own] == [
        "budget.session", 'budget.sender.byId["telegram:default:7"]', "budget.agent", "budget.day", "budget.month",
    ]  # fmt: skip
    assert [cap.account.period for cap in own] == ["2026-11-30", "2026-11", "", "2026-11-30", "2026-11"]
    operator = list(caps_of(budget, Payer("r", "r", "s", "main", "", "j1"), "2026-11-30"))
    assert [cap.key for cap in operator][1:4] == ["budget.sender", "budget.agent", "budget.job"]


def test_an_agent_has_its_own_limits() -> None:
    settings = Config.model_validate(
        {
            "agents": {
                "defaults": {"maxTurns": 50},
                "list": [{"id": "a", "maxToolCalls": 7, "tools": {"loopDetection": {"enabled": False}}}],
            },
            "tools": {"loopDetection": {"criticalThreshold": 30, "maxRefusals": 2, "detectors": {"pingPong": False}}},
        }
    )
    assert (bounds.limits(settings, "a").turns, bounds.limits(settings, "a").calls) == (50, 7)
    assert bounds.limits(settings, "a").refusals == 0
    assert not bounds.guard(settings, "a").on
    assert (bounds.limits(settings, "b").calls, bounds.limits(settings, "b").refusals) == (1_000, 2)
    assert (bounds.guard(settings, "b").limit, bounds.guard(settings, "b").ping_pong) == (30, False)
