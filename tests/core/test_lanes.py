"""One run at a time, and nothing that was told of is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.lanes import (
    Arrived,
    Cancelled,
    Configured,
    Consumed,
    Dropped,
    Effect,
    Ended,
    Event,
    Interrupt,
    Item,
    Mode,
    Opened,
    Queued,
    Refused,
    Settings,
    Start,
    State,
    Steer,
    Wake,
    Woke,
    step,
)


def item(name: str, at_ms: int = 0, route: str = "", mode: Mode | None = None) -> Item:
    return Item(name, at_ms, name, route, mode)


def play(*events: Event, mode: Mode = "steer", cap: int = 20, overflow: str = "summarize") -> list[Effect]:
    state = State(Settings(mode, 500, cap, overflow))  # type: ignore[arg-type]
    effects: list[Effect] = []
    for event in events:
        state, more = step(state, event)
        effects += more
    return effects


def kinds(effects: list[Effect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def started(effects: list[Effect]) -> list[list[str]]:
    return [[one.id for one in effect.items] for effect in effects if isinstance(effect, Start)]


@pytest.mark.req("CH-09", "MSG-10")
def test_steer_hands_over_to_a_run_that_takes_it() -> None:
    effects = play(Arrived(item("a")), Opened(True), Arrived(item("b")), Consumed(frozenset("b")), Ended(9000))
    assert kinds(effects) == ["Start", "Steer"]


@pytest.mark.req("CH-09")
def test_a_message_of_another_place_or_right_is_not_handed_to_the_run() -> None:
    here, there = item("a", route="here"), item("b", route="there")
    effects = play(Arrived(here), Opened(True), Arrived(there), Arrived(item("c", route="here")), Ended(9000))
    assert kinds(effects) == ["Start", "Queued", "Steer", "Start"]
    assert started(effects) == [["a"], ["c"]]


def test_steer_waits_for_a_run_that_does_not_take_it() -> None:
    effects = play(Arrived(item("a")), Arrived(item("b", 100)), Ended(1000))
    assert kinds(effects) == ["Start", "Queued", "Start"]


def test_what_a_run_did_not_take_starts_the_next_at_once() -> None:
    effects = play(Arrived(item("a")), Opened(True), Arrived(item("b", 1)), Arrived(item("c", 2)), Ended(3), Ended(4))
    assert started(effects) == [["a"], ["b", "c"]]


def test_a_refused_message_waits_first() -> None:
    effects = play(
        Arrived(item("a")),
        Opened(True),
        Arrived(item("x", 1, mode="followup")),
        Arrived(item("b", 2)),
        Refused("b"),
        Ended(9000),
        Ended(9001),
    )
    assert started(effects) == [["a"], ["b"], ["x"]]


@pytest.mark.req("CH-09")
def test_followup_runs_one_by_one_and_knows_a_message_that_comes_twice() -> None:
    effects = play(
        Arrived(item("a")),
        Arrived(item("b", 100)),
        Arrived(item("b", 100)),
        Arrived(item("c", 200)),
        Ended(5000),
        Ended(6000),
        mode="followup",
    )
    assert started(effects) == [["a"], ["b"], ["c"]]
    assert [effect.reason for effect in effects if isinstance(effect, Dropped)] == ["duplicate"]


@pytest.mark.req("CH-09")
def test_collect_joins_what_may_be_joined_after_a_quiet_time() -> None:
    effects = play(
        Arrived(item("a")),
        Arrived(item("b", 1000, "x")),
        Arrived(item("c", 1100, "x")),
        Arrived(item("d", 1200, "y")),
        Ended(1300),
        Woke(1700),
        Ended(1800),
        mode="collect",
    )
    assert Wake(1700) in effects
    assert started(effects) == [["a"], ["b", "c"], ["d"]]


def test_messages_during_the_quiet_time_prolong_it_but_not_for_ever() -> None:
    events: list[Event] = [Arrived(item("a")), Arrived(item("q0", 0)), Ended(0)]
    events += [Arrived(item(f"q{n}", n * 400)) for n in range(1, 20)]
    effects = play(*events, mode="collect")
    assert started(effects)[1] == [f"q{n}" for n in range(14)]


def test_waking_early_sets_the_next_time() -> None:
    effects = play(Arrived(item("a")), Arrived(item("b", 100)), Ended(100), Woke(200), mode="collect")
    assert effects[-2:] == [Wake(600), Wake(600)]


@pytest.mark.req("CH-09")
def test_interrupt_stops_once_and_runs_the_newest_first() -> None:
    effects = play(
        Arrived(item("a")),
        Arrived(item("other", 1, "y", "followup")),
        Arrived(item("b", 2)),
        Arrived(item("c", 3)),
        Ended(4),
        Ended(9000),
        mode="interrupt",
    )
    assert [effect for effect in effects if isinstance(effect, Interrupt)] == [Interrupt("a")]
    assert started(effects) == [["a"], ["b", "c"], ["other"]]


@pytest.mark.req("CH-09")
def test_drop_says_so() -> None:
    effects = play(Arrived(item("a")), Arrived(item("b")), mode="drop")
    assert isinstance(effects[-1], Dropped)
    assert effects[-1].reason == "busy"


@pytest.mark.parametrize(
    ("overflow", "runs", "reason", "told"),
    [
        ("new", [["a"], ["b"], ["c"]], "full", ""),
        ("old", [["a"], ["c"], ["d"]], "full", ""),
        ("summarize", [["a"], ["c"], ["d"]], "summarized", "b"),
    ],
)
def test_a_full_queue(overflow: str, runs: list[list[str]], reason: str, told: str) -> None:
    effects = play(
        *(Arrived(item(name)) for name in "abcd"), Ended(9000), Ended(9000), mode="followup", cap=2, overflow=overflow
    )
    assert started(effects) == runs
    assert [effect.reason for effect in effects if isinstance(effect, Dropped)] == [reason]
    assert "".join(one.id for effect in effects if isinstance(effect, Start) for one in effect.summary) == told


def test_stop_drops_what_waits_and_stops_the_run_once() -> None:
    effects = play(Arrived(item("a")), Arrived(item("b")), Cancelled(), Cancelled(), Ended(9000), mode="followup")
    assert kinds(effects) == ["Start", "Queued", "Dropped", "Interrupt"]


def test_one_waiting_message_can_be_cancelled() -> None:
    effects = play(
        Arrived(item("a")), Opened(True), Arrived(item("b")), Cancelled(frozenset("b")), Ended(9000), Cancelled()
    )
    assert kinds(effects) == ["Start", "Steer", "Dropped"]


def test_nothing_is_steered_into_a_run_that_stops() -> None:
    effects = play(Arrived(item("a")), Opened(True), Cancelled(frozenset("a")), Arrived(item("b")))
    assert isinstance(effects[-1], Queued)


def test_settings_change_under_way() -> None:
    effects = play(Arrived(item("a")), Configured(Settings("drop")), Opened(True), Arrived(item("b")))
    assert kinds(effects) == ["Start", "Dropped"]


MODES = st.sampled_from(["steer", "followup", "collect", "interrupt", "drop", None])
NAMES = st.integers(0, 40).map(str)
EVENTS = st.one_of(
    st.builds(lambda n, r, m: Arrived(item(n, 0, r, m)), NAMES, st.sampled_from("xy"), MODES),
    st.builds(Opened, st.booleans()),
    st.just(Ended(0)),
    st.just(Woke(0)),
    st.builds(Cancelled, st.none() | st.frozensets(NAMES, max_size=3)),
    st.just("consume"),
    st.just("refuse"),
)


class Driver:
    """Carries effects out in its head, and fails when two runs would be at work."""

    def __init__(self, settings: Settings) -> None:
        self.state = State(settings)
        self.running = False
        self.now = 0
        self.arrived: set[str] = set()
        self.fate: Counter[str] = Counter()

    def feed(self, event: Event) -> None:
        if isinstance(event, Ended):
            self.running = False
        self.state, effects = step(self.state, event)
        for effect in effects:
            self.carry(effect)
        assert (self.state.running is not None) is self.running

    def carry(self, effect: Effect) -> None:
        match effect:
            case Start(items):
                assert not self.running, "two runs at once"
                self.running = True
                self.fate.update(one.id for one in items)
            case Dropped(one, reason) if reason != "duplicate":
                self.fate[one.id] += 1
            case Steer() | Interrupt():
                assert self.running
            case _:
                pass

    def play(self, raw: Event | str) -> None:
        self.now += 3
        steered = self.state.steered
        match raw:
            case Arrived(one):
                self.arrived.add(one.id)
                self.feed(Arrived(Item(one.id, self.now, one.text, one.route, one.mode)))
            case Ended() | Woke():
                self.tick() if self.running is isinstance(raw, Ended) else None
            case "consume":
                self.fate.update(one.id for one in steered)
                self.feed(Consumed(frozenset(one.id for one in steered)))
            case "refuse":
                self.feed(Refused(steered[0].id if steered else "none"))
            case Opened() | Cancelled():
                self.feed(raw)
            case _:
                pass

    def tick(self) -> None:
        self.feed(Ended(self.now) if self.running else Woke(self.now))


@pytest.mark.req("CH-08")
@given(
    st.lists(EVENTS, max_size=60),
    st.sampled_from(["summarize", "old", "new"]),
    st.integers(1, 4),
    st.sampled_from([0, 7]),
)
def test_any_sequence_keeps_one_run_and_loses_nothing(
    script: list[Event | str], overflow: str, cap: int, quiet: int
) -> None:
    driver = Driver(Settings("steer", quiet, cap, overflow))  # type: ignore[arg-type]
    for raw in script:
        driver.play(raw)
    for _ in range(200):
        driver.now += 1000
        driver.tick()
    assert not driver.state.queue
    assert not driver.state.steered
    assert set(driver.fate) == driver.arrived
    assert set(driver.fate.values()) <= {1}


@pytest.mark.req("CH-09")
def test_a_message_is_not_handed_over_before_one_that_found_no_room() -> None:
    effects = play(
        Arrived(item("a")),
        Opened(True),
        Arrived(item("b", 1)),
        Arrived(item("c", 2)),
        Arrived(item("d", 3)),
        Consumed(frozenset({"b", "c"})),
        Arrived(item("e", 4)),
        Ended(9000),
        Ended(9001),
        Ended(9002),
        cap=2,
    )
    assert started(effects) == [["a"], ["d"], ["e"]]
