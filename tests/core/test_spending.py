"""Caps on what may be spent: when the owner is told, when a run ends, and in which words."""

from __future__ import annotations

import pytest

from garra.core.messages import Usage
from garra.core.spending import FREE, Account, Cap, Scope, Span, Used, dollars, judge, near, over, share, used

DAY = Account("day", "", "day", "2026-11-30")


def cap(tokens: int = 10_000, cost: float = 0.0, account: Account = DAY, key: str = "budget.day") -> Cap:
    return Cap(account, tokens, cost, key)


def test_nothing_is_said_of_what_is_far_from_its_end() -> None:
    assert judge([]) == FREE
    assert judge([(cap(), Used(4_999))]) == FREE
    assert judge([(cap(0), Used(10**9, 10.0**6))]) == FREE


def test_each_step_is_told_once() -> None:
    first = judge([(cap(), Used(5_000))])
    assert [warned.text for warned in first.warnings] == [
        "50 % of the budget for today is used: 5,000 of 10,000 tokens (budget.day)."
    ]
    told = set(first.warnings[0].names)
    assert judge([(cap(), Used(7_999))], told) == FREE
    second = judge([(cap(), Used(8_100))], told)
    assert second.warnings[0].text.startswith("81 %")
    told |= set(second.warnings[0].names)
    third = judge([(cap(), Used(10_000))], told)
    assert third.stop == third.warnings[0].text
    told |= set(third.warnings[0].names)
    assert judge([(cap(), Used(10_001))], told).warnings == ()


def test_a_leap_over_several_steps_is_one_word() -> None:
    leap = judge([(cap(), Used(12_000))])
    assert len(leap.warnings) == 1
    assert len(leap.warnings[0].names) == 3
    assert judge([(cap(), Used(5_000))], leap.warnings[0].names) == FREE


def test_the_line_says_which_how_much_until_when_and_how_to_raise_it() -> None:
    line = judge([(cap(), Used(10_500))], zone="Europe/Berlin").stop
    assert line == (
        "Stopped: the budget for today is used up (10,500 of 10,000 tokens). "
        "It is free again when 2026-11-30 is over (Europe/Berlin). "
        "To raise it: garra config set budget.day.maxTokens NUMBER"
    )


def test_who_is_no_owner_reads_no_figures() -> None:
    verdict = judge([(cap(), Used(10_500))], whole=False)
    assert verdict.stop == "Stopped: the budget for today is used up. It is free again when 2026-11-30 is over."
    assert "10,500" in verdict.warnings[0].text


def test_the_first_cap_that_is_used_up_speaks() -> None:
    run = cap(100, account=Account("run", "r1", "run", "r1"), key="budget.run")
    verdict = judge([(run, Used(100)), (cap(), Used(10_000))])
    assert "one run" in verdict.stop
    assert len(verdict.warnings) == 2


def test_money_counts_as_tokens_do() -> None:
    both = cap(10_000, 2.0)
    assert share(both, Used(1_000, 1.0)) == 50
    assert share(both, Used(9_000, 1.0)) == 90
    line = over(both, Used(1_000, 2.5, unpriced=1))
    assert "(1,000 of 10,000 tokens, $2.50 of $2.00, 1 call without a known price not counted)" in line
    assert line.endswith("garra config set budget.day.maxCostUsd NUMBER")
    assert "3 calls without" in near(both, Used(1, 1.0, unpriced=3))
    assert "($1.00 of $2.00)" not in near(cap(0, 2.0), Used(1, 1.0))
    assert near(cap(0, 2.0), Used(1, 1.0)).endswith("is used: $1.00 of $2.00 (budget.day).")


@pytest.mark.parametrize(
    ("scope", "span", "id_", "words"),
    [
        ("run", "run", "r1", "one run is"),
        ("month", "month", "", "this month is"),
        ("session", "day", "agent:main:main", "this conversation today is"),
        ("sender", "month", "telegram:default:7", "telegram:default:7 this month is"),
        ("sender", "day", "", "the owner at the screen today is"),
        ("agent", "total", "main", "the agent main as a whole is"),
        ("job", "day", "j1", "the job j1 today is"),
    ],
)
def test_whom_it_is_for(scope: Scope, span: Span, id_: str, words: str) -> None:
    line = over(cap(1, account=Account(scope, id_, span, "2026-11")), Used(1))
    assert f"the budget for {words} used up" in line


def test_until_when() -> None:
    ends = {span: over(cap(1, account=Account("agent", "a", span, "2026-11")), Used(1)) for span in SPANS}
    assert "The next message begins a new run" in ends["run"]
    assert "when the month 2026-11 is over" in ends["month"]
    assert "It stays so until it is raised" in ends["total"]


SPANS: tuple[Span, ...] = ("run", "month", "total")


def test_what_was_used_adds_up_and_a_price_that_nobody_knows_is_none() -> None:
    usage = Usage(10, 5, 3, 2, 0.25)
    assert used(usage, priced=True) + used(usage, priced=False) == Used(40, 0.25, 1)
    assert Used(40, 0.5, 1) - Used(30, 0.25, 1) == Used(10, 0.25, 0)


def test_small_sums_have_more_digits() -> None:
    assert [dollars(each) for each in (0.0, 0.0042, 12.3)] == ["$0.00", "$0.0042", "$12.30"]
