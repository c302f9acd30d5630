"""A child is asked for, runs, waits for its own, ends, and is told once; who may start whom, and how many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.lineage import (
    TRIES,
    Began,
    Child,
    Ended,
    Event,
    Home,
    Limits,
    Restarted,
    Settled,
    Stopped,
    Targets,
    Told,
    headline,
    refusal,
    spent,
    starters,
    step,
    target,
)
from garra.core.taint import Mark

HOME = Home("agent:main:main", "r0", "main")
CHILD = Child("r1", "agent:main:subagent:u1", "main", "look around", HOME, "t1", 1_000)
RUNNING, _ = step(CHILD, Began(2_000))
MARK = Mark("web", "https://example.org/")


def test_it_begins_once() -> None:
    assert (RUNNING.state, RUNNING.started_at) == ("running", 2_000)
    assert step(RUNNING, Began(3_000)) == (RUNNING, ())
    assert RUNNING.active
    assert RUNNING.open


def test_its_end_is_stored_with_its_report_before_its_parent_is_told() -> None:
    ended, effects = step(
        RUNNING, Ended(9_000, "ok", "found it", tokens_in=10, tokens_out=2, cost=0.5, marks=(MARK, MARK))
    )
    assert effects == ("tell",)
    assert (ended.state, ended.outcome, ended.report, ended.ended_at) == ("ended", "ok", "found it", 9_000)
    assert (ended.tokens_in, ended.tokens_out, ended.cost, ended.marks) == (10, 2, 0.5, (MARK,))
    told, effects = step(ended, Told(9_500))
    assert (told.state, effects) == ("told", ())
    assert not told.open
    for late in (Told(1), Stopped(1), Ended(1, "error"), Settled(1), Began(1), Restarted(1)):
        assert step(told, late) == (told, ())


def test_one_with_children_of_its_own_waits_for_them_and_keeps_its_last_words() -> None:
    waiting, effects = step(RUNNING, Ended(9_000, "ok", "half of it", open=1))
    assert (waiting.state, effects) == ("waiting", ())
    assert step(waiting, Settled(9_100, 1)) == (waiting, ())
    ended, effects = step(waiting, Settled(9_200))
    assert (ended.state, ended.report, effects) == ("ended", "half of it", ("tell",))
    again, effects = step(waiting, Ended(9_300, "ok", "all of it"))
    assert (again.state, again.report, effects) == ("ended", "all of it", ("tell",))
    silent, _ = step(waiting, Ended(9_300, "ok"))
    assert silent.report == "half of it"


def test_what_goes_wrong_is_an_end_too_and_ends_its_own_children() -> None:
    ended, effects = step(RUNNING, Ended(9_000, "timeout", "", "after 5 s", open=2))
    assert (ended.state, ended.outcome, ended.fault) == ("ended", "timeout", "after 5 s")
    assert effects == ("cascade", "tell")


@pytest.mark.parametrize("child", [CHILD, RUNNING, replace(RUNNING, state="waiting")])
def test_stopping_tells_the_parent_unless_the_parent_was_stopped_with_it(child: Child) -> None:
    ended, effects = step(child, Stopped(9_000))
    assert (ended.state, ended.outcome, effects) == ("ended", "stopped", ("cascade", "tell"))
    quiet, effects = step(child, Stopped(9_000, quiet=True))
    assert (quiet.state, effects) == ("told", ("cascade",))


def test_one_that_is_not_to_be_kept_is_put_away_when_its_parent_has_it() -> None:
    ended, _ = step(replace(RUNNING, cleanup="delete"), Ended(9_000, "ok", "x"))
    assert step(ended, Told(9_100))[1] == ("clean",)


def test_a_restart_goes_on_with_what_ran_and_gives_up_what_restarts_again_and_again() -> None:
    child = RUNNING
    for _ in range(TRIES):
        child, effects = step(child, Restarted(9_000))
        assert effects == ("resume",)
    lost, effects = step(child, Restarted(9_000))
    assert (lost.state, lost.outcome, effects) == ("ended", "lost", ("cascade", "tell"))
    assert step(lost, Restarted(9_000)) == (lost, ("tell",))
    assert step(CHILD, Restarted(9_000)) == (CHILD, ())
    waiting = replace(RUNNING, state="waiting")
    assert step(waiting, Restarted(9_000)) == (waiting, ("resume",))


_EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Began, st.just(1)),
    st.builds(
        Ended, st.just(1), st.sampled_from(["ok", "error", "timeout"]), st.text(max_size=3), open=st.integers(0, 2)
    ),
    st.builds(Settled, st.just(1), st.integers(0, 2)),
    st.builds(Stopped, st.just(1), st.booleans()),
    st.builds(Told, st.just(1)),
    st.builds(Restarted, st.just(1)),
)


@given(st.lists(_EVENTS, max_size=20))
def test_whatever_happens_it_is_told_at_most_once_a_start_and_never_comes_back(events: list[Event]) -> None:
    child, tells = CHILD, 0
    for event in events:
        before = child
        child, effects = step(child, event)
        tells += "tell" in effects and not isinstance(event, Restarted)
        if before.state == "told":
            assert child == before
            assert not effects
        if before.state == "ended":
            assert child.state in ("ended", "told")
            assert replace(child, state="ended") == before
        assert bool(child.outcome) == (not child.active)
    assert tells <= 1


def test_so_many_run_at_once_and_those_that_wait_for_their_own_take_no_place() -> None:
    queued = [replace(CHILD, run_id=f"q{at}", created_at=at) for at in (3, 1, 2)]
    assert [each.run_id for each in starters([RUNNING, *queued], 3)] == ["q1", "q2"]
    assert starters([RUNNING, *queued], 1) == ()
    assert len(starters([replace(RUNNING, state="waiting"), *queued], 1)) == 1


def test_depth_and_number_of_children_are_limited_with_words() -> None:
    assert refusal(0, 4, Limits()) == ""
    assert "maxChildrenPerAgent" in refusal(0, 5, Limits())
    assert "maxSpawnDepth" in refusal(1, 0, Limits())
    assert refusal(1, 0, Limits(depth=2)) == ""


def test_an_agent_starts_itself_and_others_only_where_its_owner_says_so() -> None:
    known = ("main", "work", "box")
    assert target("", Targets("main", known)) == ("main", "")
    assert target("MAIN", Targets("main", known)) == ("main", "")
    assert "no agent work" in target("work", Targets("main", known))[1]
    assert target("work", Targets("main", known, ("Work",))) == ("work", "")
    assert "no agent main" in target("main", Targets("main", known, ("work",)))[1]
    assert target("box", Targets("main", known, ("*",))) == ("box", "")
    assert "no agent gone" in target("gone", Targets("main", known, ("*", "gone")))[1]
    assert "less shut in" in target("box", Targets("main", known, ("*",), weaker=frozenset({"box"})))[1]
    assert "agentId" in target(" ", Targets("main", known, required=True))[1]


def test_what_one_child_may_use_up() -> None:
    assert spent(10**9, 99.0, Limits()) == ""
    assert "maxTokens" in spent(101, 0.0, Limits(tokens=100))
    assert spent(100, 0.0, Limits(tokens=100)) == ""
    assert "maxCostUsd" in spent(0, 2.0, Limits(cost=1.5))
    assert spent(0, 1.0, Limits(cost=1.5)) == ""


def test_its_name_is_its_label_or_the_first_words_of_its_task() -> None:
    assert CHILD.name == "look around"
    assert replace(CHILD, label="scout").name == "scout"
    assert len(headline("word " * 100)) == 80
    assert CHILD.report_id == "r1:report"
