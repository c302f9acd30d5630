"""A question moves by steps: registered before told, decided once, and worth one doing of what was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.approvals import (
    LIFE_MS,
    Accepted,
    Announce,
    Answer,
    Approval,
    Asked,
    Choice,
    Decided,
    Event,
    Give,
    Passed,
    Question,
    Refused,
    Registered,
    Resolve,
    Restarted,
    Store,
    Unheard,
    Withdrawn,
    alike,
    doing,
    said,
    same,
    short,
    step,
)
from garra.core.ids import AgentId, RunId, SessionKey

T = 1_000_000


def question(**changes: Any) -> Question:
    plain = Question(
        "exec", "rm -r x", "hash", SessionKey("agent:main:main"), AgentId("main"), RunId("run"), "call",
        choices=("allow-once", "allow-always", "deny"), remembers="rm of x",
    )  # fmt: skip
    return replace(plain, **changes)


def fresh(**changes: Any) -> Approval:
    return Approval("id-12345678", question(**changes), T)


def pending(**changes: Any) -> Approval:
    return step(fresh(**changes), Registered(T))[0]


def decided(choice: Choice, at: int = T + 1, by: str = "owner") -> Decided:
    return Decided(choice, by, at)


def test_is_told_once_it_is_registered() -> None:
    state, effects = step(fresh(), Registered(T))
    assert (state.phase, effects) == ("pending", (Announce(),))
    assert step(state, Registered(T)) == (state, ())


@pytest.mark.parametrize("choice", ["allow-once", "allow-always", "deny"])
def test_is_decided_once(choice: Choice) -> None:
    state, effects = step(pending(), decided(choice))
    answer = state.answer
    assert answer is not None
    assert effects == (Store(), Resolve(answer), Accepted())
    assert (state.phase, state.used, answer.by) == ("denied" if choice == "deny" else "allowed", True, "owner")
    assert bool(answer.reason) == (choice == "deny")

    assert step(state, decided(choice)) == (state, (Accepted(again=True),))
    other: Choice = "allow-once" if choice == "deny" else "deny"
    after, (refusal,) = step(state, decided(other))
    assert after == state
    assert isinstance(refusal, Refused)
    assert refusal.reason == "resolved"
    assert "handled already" in refusal.words


def test_an_answer_that_overtakes_the_registering_counts_when_it_is_registered() -> None:
    state, effects = step(fresh(), decided("allow-once"))
    assert (state.phase, effects) == ("registering", (Accepted(),))
    assert step(state, decided("allow-once"))[1] == (Accepted(again=True),)
    assert isinstance(step(state, decided("deny"))[1][0], Refused)
    state, effects = step(state, Registered(T + 2))
    assert state.phase == "allowed"
    assert effects == (Announce(), Store(), Resolve(Answer("allow-once", "owner")))


def test_only_what_is_offered_can_be_chosen() -> None:
    state = pending(choices=("allow-once", "deny"))
    after, (refusal,) = step(state, decided("allow-always"))
    assert after == state
    assert isinstance(refusal, Refused)
    assert refusal.reason == "not-offered"


def test_time_ends_it_with_its_fallback_and_late_answers_are_refused() -> None:
    state = pending()
    assert step(state, Passed(T + LIFE_MS - 1)) == (state, ())
    ended, effects = step(state, Passed(T + LIFE_MS))
    answer = ended.answer
    assert answer is not None
    assert (ended.phase, answer.choice, answer.allowed) == ("expired", "deny", False)
    assert effects == (Store(), Resolve(answer))
    assert [type(each) for each in step(ended, decided("allow-once", T + LIFE_MS + 1))[1]] == [Refused]

    late, effects = step(state, decided("allow-once", T + LIFE_MS))
    assert late.phase == "expired"
    assert [type(each) for each in effects] == [Store, Resolve, Refused]

    full, _ = step(pending(fallback="allow-once"), Passed(T + LIFE_MS))
    assert full.answer is not None
    assert full.answer.allowed


def test_is_taken_back() -> None:
    state, effects = step(pending(), Withdrawn(T + 5))
    assert state.phase == "withdrawn"
    assert [type(each) for each in effects] == [Store, Resolve]
    assert step(state, Withdrawn(T + 6)) == (state, ())
    (refusal,) = step(state, decided("allow-once"))[1]
    assert isinstance(refusal, Refused)
    assert refusal.reason == "withdrawn"


def test_where_nobody_can_be_asked_the_fallback_holds_at_once() -> None:
    state, effects = step(fresh(), Unheard(T, "nobody is here"))
    assert state.phase == "denied"
    assert effects == (Store(), Resolve(Answer("deny", "askFallback", "nobody is here")))
    assert step(state, Unheard(T, "again")) == (state, ())


def test_after_a_restart_the_same_question_is_joined() -> None:
    left, effects = step(fresh(), Restarted())
    assert (left.phase, left.waited, effects) == ("pending", False, ())
    again = question(call_id="other", run_id=RunId("later"))
    joined, effects = step(left, Asked(again, T + 5))
    assert (joined.waited, joined.question.call_id, joined.question.run_id) == (True, "other", "later")
    assert effects == (Store(),)
    assert step(joined, decided("allow-once"))[0].used


def test_an_answer_given_while_nobody_waits_is_worth_one_doing() -> None:
    left, _ = step(pending(), Restarted())
    allowed, effects = step(left, decided("allow-once"))
    assert (allowed.phase, allowed.used) == ("allowed", False)
    assert effects == (Store(), Resolve(Answer("allow-once", "owner")), Accepted())
    kept, _ = step(allowed, Restarted())
    assert kept == allowed
    used, effects = step(kept, Asked(question(call_id="other"), T + 9))
    assert used.used
    assert effects == (Store(), Give(Answer("allow-once", "owner")))
    assert step(used, Asked(question(), T + 10)) == (used, ())


def test_an_answer_nobody_came_for_expires_too() -> None:
    left, _ = step(pending(), Restarted())
    allowed, _ = step(left, decided("allow-once"))
    late, effects = step(allowed, Asked(question(), T + LIFE_MS))
    assert (late.used, effects) == (True, (Store(),))
    assert step(late, Passed(T + LIFE_MS)) == (late, ())


@pytest.mark.parametrize(
    "changes",
    [
        {"bound": "other"},
        {"session_key": SessionKey("agent:main:other")},
        {"agent_id": AgentId("other")},
        {"requester": "telegram:main:7"},
        {"subject": "rm -r y"},
        {"kind": "tool"},
    ],
)
def test_another_question_takes_no_answer_of_this_one(changes: dict[str, object]) -> None:
    left, _ = step(pending(), Restarted())
    allowed, _ = step(left, decided("allow-once"))
    assert step(allowed, Asked(question(**changes), T + 9)) == (allowed, ())
    assert not same(question(bound=""), question(bound=""))


def test_is_named() -> None:
    assert short("12345678-abcd") == "12345678"
    assert said(Answer("allow-once")) == "allowed once"
    assert said(Answer("deny", "ann")) == "denied by ann"
    assert said(Answer("deny", "openclaw-tui")) == "denied by the terminal chat"
    assert [doing("exec"), doing("tool", "post"), doing("egress"), doing("tool")] == [
        "run this command",
        "use post",
        "reach this host from its sandbox",
        "do this",
    ]
    assert said(Answer("allow-always", "ann")) == "allowed always by ann"


EVENTS = st.one_of(
    st.builds(Registered, st.integers(T, T + 9)),
    st.builds(
        Decided,
        st.sampled_from(["allow-once", "allow-always", "deny"]),
        st.sampled_from(["ann", "bob"]),
        st.integers(T, T + 2 * LIFE_MS),
    ),
    st.builds(Passed, st.integers(T, T + 2 * LIFE_MS)),
    st.builds(Withdrawn, st.integers(T, T + 9)),
    st.just(Restarted()),
    st.builds(Asked, st.just(question()), st.integers(T, T + 2 * LIFE_MS)),
    st.builds(Unheard, st.integers(T, T + 9), st.just("nobody")),
)


@given(st.lists(EVENTS, max_size=12))
def test_whatever_happens_it_is_answered_once_and_taken_once(events: list[Event]) -> None:
    state, given_out, resolved = fresh(), 0, 0
    for event in events:
        before = state
        state, effects = step(state, event)
        resolved += sum(isinstance(each, Resolve) for each in effects)
        given_out += sum(isinstance(each, Give) for each in effects)
        if before.answer is not None:
            assert state.answer == before.answer
        for effect in effects:
            if isinstance(effect, Resolve) and effect.answer.allowed:
                assert isinstance(event, Decided | Registered)
                assert "nobody" not in effect.answer.reason
    assert resolved <= 1
    assert given_out <= 1


def test_an_id_that_could_be_taken_for_another_is_known() -> None:
    open_ones = ("1a2b3c4d-5e6f", "77")
    assert alike("1a2b3c4d", open_ones) == alike("1a2b3c4d-0000", open_ones) == "1a2b3c4d-5e6f"
    assert alike("1a2b", open_ones) == "1a2b3c4d-5e6f"
    assert alike("77777777-1", open_ones) == "77"
    assert alike("1a2b3c4d-5e6f", open_ones) == alike("ffffffff-1", open_ones) == ""
