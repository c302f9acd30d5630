"""Who is let in: by immutable id, by lists that are closed where they are absent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garra.core.access import (
    NOBODY,
    REFUSALS,
    Admitted,
    Dispatch,
    Drop,
    Facts,
    Handled,
    Observe,
    People,
    Policy,
    Room,
    Verdict,
    judge,
    outside,
    owners,
    people,
)

ANN = People(frozenset({"42"}))
EVERYONE = People(anyone=True)
DIRECT = Facts("message", "42", "42")
GROUP = Facts("message", "42", "-100", mentioned=True, room=Room(listed=True))


def admitted(verdict: Verdict) -> Admitted:
    assert isinstance(verdict, Dispatch)
    return verdict.admitted


@pytest.mark.req("MSG-06", "CH-02")
def test_only_the_gate_admits() -> None:
    with pytest.raises(TypeError, match="only core"):
        Admitted("42", "42", True, True, True, False)
    with pytest.raises(TypeError, match="only core"):
        Admitted("42", "42", True, True, True, False, seal=object())
    assert "seal" not in repr(admitted(judge(Policy(allow=ANN), DIRECT)))


def test_approvers_answer_alone_where_they_are_named() -> None:
    boss, clerk = People(frozenset({"1"})), People(frozenset({"42"}))
    both = People(frozenset({"1", "42"}))
    plain, named = Policy(allow=both, owners=boss), Policy(allow=both, owners=boss, approvers=clerk)
    for policy, sender, owner, answers in (
        (plain, "1", True, True),
        (plain, "42", False, False),
        (named, "1", True, False),
        (named, "42", False, True),
    ):
        found = admitted(judge(policy, replace(DIRECT, sender=sender)))
        assert (found.owner, found.approver) == (owner, answers)
    assert not admitted(judge(replace(plain, approvers=EVERYONE), replace(DIRECT, sender="42"))).approver


@pytest.mark.req("MSG-05")
@pytest.mark.parametrize("event", ["edit", "reaction", "membership", "other", "whatever"])
def test_events_that_start_no_turn_are_handled_for_friend_and_stranger(event: str) -> None:
    for policy in (Policy(allow=ANN), Policy(dm="open", allow=EVERYONE), Policy()):
        assert judge(policy, replace(DIRECT, event=event)) == Handled(f"event-{event}")
        assert judge(policy, replace(GROUP, event=event)) == Handled(f"event-{event}")


def test_what_the_bot_said_itself_and_what_nobody_said_ends_here() -> None:
    assert judge(Policy(allow=ANN), replace(DIRECT, own=True)) == Drop("own")
    assert judge(Policy(dm="open", allow=EVERYONE), replace(DIRECT, sender="")) == Drop("no-sender-id")


@pytest.mark.req("SEC-01", "SEC-03")
def test_each_policy_of_direct_messages() -> None:
    assert Policy().dm == "pairing"
    assert judge(Policy(), DIRECT) == Drop("not-paired", knock=True)
    assert admitted(judge(Policy(allow=ANN), DIRECT)).named
    assert admitted(judge(Policy(paired=ANN), DIRECT)).named
    assert judge(Policy(dm="allowlist", paired=ANN), DIRECT) == Drop("dm-not-listed")
    assert admitted(judge(Policy(dm="allowlist", allow=ANN), DIRECT)).named
    assert judge(Policy(dm="disabled", allow=ANN, paired=ANN), DIRECT) == Drop("dm-disabled")
    assert judge(Policy(dm="open"), DIRECT) == Drop("dm-not-listed")
    assert judge(Policy(dm="open", paired=ANN), DIRECT) == Drop("dm-not-listed")
    assert admitted(judge(Policy(dm="open", allow=ANN), DIRECT)).named
    assert judge(Policy(dm="open", allow=ANN), replace(DIRECT, sender="43")) == Drop("dm-not-listed")
    guest = admitted(judge(Policy(dm="open", allow=EVERYONE), DIRECT))
    assert guest.direct
    assert not guest.named


@pytest.mark.req("CH-24")
def test_a_role_lets_in_as_a_guest() -> None:
    room = Room(listed=True, allow=ANN, roles=frozenset({"70"}))
    stranger = replace(GROUP, sender="43", room=room)
    assert judge(Policy(), stranger) == Drop("group-sender-not-listed")
    assert not admitted(judge(Policy(), replace(stranger, roles=("1", "70")))).named
    assert admitted(judge(Policy(), replace(GROUP, room=room))).named


def test_an_owner_is_named_and_no_bot() -> None:
    policy = Policy(dm="open", allow=EVERYONE, owners=ANN, bots="all")
    assert admitted(judge(policy, DIRECT)).owner
    assert admitted(judge(policy, DIRECT)).named
    bot = admitted(judge(policy, replace(DIRECT, bot=True)))
    assert bot.bot
    assert not bot.owner
    assert not admitted(judge(policy, replace(DIRECT, sender="43"))).owner


@pytest.mark.req("SEC-06")
def test_groups_are_closed_by_default() -> None:
    assert Policy().group == "allowlist"
    assert judge(Policy(), GROUP) == Drop("group-sender-not-listed")
    assert judge(Policy(group="disabled", group_allow=ANN), GROUP) == Drop("group-disabled")
    off = replace(GROUP, room=Room(listed=True, enabled=False))
    assert judge(Policy(group="open"), off) == Drop("group-disabled")
    for group in ("open", "allowlist"):
        policy = Policy(group=group, group_allow=ANN)
        assert judge(policy, replace(GROUP, room=Room())) == Drop("group-not-listed")
    assert admitted(judge(Policy(group_allow=ANN), GROUP)).named
    assert not admitted(judge(Policy(group_allow=EVERYONE), GROUP)).named
    assert not admitted(judge(Policy(group="open"), GROUP)).named


@pytest.mark.req("SEC-05")
def test_a_pairing_opens_no_group_and_gives_no_rights_there() -> None:
    paired = Policy(paired=ANN, allow=NOBODY)
    assert isinstance(judge(paired, DIRECT), Dispatch)
    assert judge(paired, GROUP) == Drop("group-sender-not-listed")
    assert not admitted(judge(replace(paired, group="open"), GROUP)).named


def test_a_group_may_have_its_own_people() -> None:
    bob = replace(GROUP, room=Room(listed=True, allow=People(frozenset({"7"}))))
    assert judge(Policy(group_allow=ANN), bob) == Drop("group-sender-not-listed")
    assert judge(Policy(group="open"), bob) == Drop("group-sender-not-listed")
    assert admitted(judge(Policy(), replace(bob, sender="7"))).named
    seen = replace(bob, sender="8")
    assert judge(Policy(recorded=True), seen) == Observe("group-sender-not-listed")


def test_a_group_is_no_sender() -> None:
    policy = Policy(group="open", group_allow=EVERYONE)
    assert judge(policy, replace(GROUP, sender="-100")) == Drop("sender-is-group")


@pytest.mark.req("MSG-06")
def test_who_is_not_addressed_is_observed() -> None:
    policy = Policy(group_allow=ANN)
    quiet = replace(GROUP, mentioned=False)
    assert judge(policy, quiet) == Observe("not-mentioned")
    always = replace(quiet, room=Room(listed=True, mention=False))
    assert isinstance(judge(policy, always), Dispatch)
    assert isinstance(judge(policy, replace(quiet, command=True)), Dispatch)
    assert judge(Policy(group="open"), replace(quiet, command=True)) == Observe("not-mentioned")


@pytest.mark.req("CH-23")
def test_bots_are_heard_where_the_owner_says_so() -> None:
    bot, policy = replace(GROUP, bot=True), Policy(group_allow=ANN, allow=ANN)
    assert judge(policy, bot) == Drop("bot")
    assert judge(policy, replace(DIRECT, bot=True)) == Drop("bot")
    assert judge(Policy(), replace(DIRECT, bot=True)) == Drop("bot")
    mentions = replace(policy, bots="mentions")
    assert isinstance(judge(mentions, bot), Dispatch)
    assert judge(mentions, replace(bot, mentioned=False)) == Drop("bot")
    assert isinstance(judge(mentions, replace(DIRECT, bot=True)), Dispatch)
    own = replace(bot, room=Room(listed=True, bots="all"))
    assert isinstance(judge(policy, own), Dispatch)
    assert judge(replace(policy, bots="all"), replace(own, room=Room(listed=True, bots="none"))) == Drop("bot")


def test_a_list_of_ids() -> None:
    found = people(
        [42, " 43 ", "tg:44", "Telegram:45", "discord:46", "@ann", "", None, True, {}], "telegram", {}, ["tg"]
    )
    assert found == People(frozenset({"42", "43", "44", "45", "discord:46"}))
    assert people(["*"], "telegram") == EVERYONE
    assert people("*", "telegram") == NOBODY
    assert people({"*": 1}, "telegram") == NOBODY
    assert not EVERYONE.holds("")
    assert not People(frozenset({""})).names("")


def test_a_near_miss_is_nobody() -> None:
    allow = people(["1234567", "@ann:home.example", "ann"], "matrix")
    for sender in ("123456", "12345678", "01234567", "1234567 ", "ann:other.example", "ANN", "", "@ann"):
        assert judge(Policy(dm="allowlist", allow=allow), replace(DIRECT, sender=sender)) in (
            Drop("dm-not-listed"),
            Drop("no-sender-id"),
        )


def test_a_whole_id_may_begin_with_the_sign_of_names() -> None:
    allow = people(["@ann:home.example", "matrix:@bob:home.example", "@carl"], "matrix")
    assert allow == People(frozenset({"@ann:home.example", "@bob:home.example"}))
    assert isinstance(judge(Policy(dm="allowlist", allow=allow), replace(DIRECT, sender="@ann:home.example")), Dispatch)


def test_an_access_group_stands_for_its_members() -> None:
    named: dict[str, Any] = {
        "team": {"type": "message.senders", "members": {"*": ["1"], "telegram": ["telegram:2"], "discord": ["3"]}},
        "odd": {"type": "discord.channelAudience", "members": {"telegram": ["4"]}},
        "empty": {"type": "message.senders"},
        "broken": "5",
    }
    entries = ["accessGroup:team", "accessGroup:odd", "accessGroup:empty", "accessGroup:broken", "accessGroup:gone"]
    assert people(entries, "telegram", named) == People(frozenset({"1", "2"}))


def test_owners_name_their_channel_and_never_everybody() -> None:
    entries = ["telegram:1", "tg:2", "discord:3", "4", "telegram:*", "*", "telegram:@ann"]
    assert owners(entries, "telegram", ["tg"]) == People(frozenset({"1", "2"}))


POLICIES = st.builds(
    Policy,
    dm=st.sampled_from(["pairing", "allowlist", "open", "disabled"]),
    group=st.sampled_from(["open", "allowlist", "disabled"]),
    allow=st.sampled_from([NOBODY, ANN, EVERYONE]),
    group_allow=st.sampled_from([NOBODY, ANN, EVERYONE]),
    paired=st.sampled_from([NOBODY, ANN]),
    owners=st.sampled_from([NOBODY, ANN]),
    bots=st.sampled_from(["none", "mentions", "all"]),
)
ROOMS = st.builds(Room, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([None, NOBODY, ANN, EVERYONE]))
FACTS = st.builds(
    Facts,
    event=st.sampled_from(["message", "button", "edit", "reaction"]),
    sender=st.sampled_from(["42", "43", "-100", ""]),
    chat=st.sampled_from(["42", "-100"]),
    mentioned=st.booleans(),
    command=st.booleans(),
    own=st.booleans(),
    bot=st.booleans(),
    room=st.none() | ROOMS,
)
TAKEN: dict[str, Any] = {"allow": NOBODY, "group_allow": NOBODY, "paired": NOBODY, "owners": NOBODY, "bots": "none"}


@given(POLICIES, FACTS, st.sets(st.sampled_from(sorted(TAKEN))))
def test_what_is_taken_from_a_policy_never_lets_more_in(policy: Policy, facts: Facts, gone: set[str]) -> None:
    before = judge(policy, facts)
    after = judge(replace(policy, **{name: TAKEN[name] for name in gone}), facts)
    if isinstance(after, Dispatch):
        assert isinstance(before, Dispatch)
        assert after.admitted.named <= before.admitted.named
        assert after.admitted.owner <= before.admitted.owner
        assert facts.sender
        assert facts.event in ("message", "button")


OUTSIDE: tuple[tuple[bool, Policy, dict[str, Any]], ...] = (
    (True, Policy(), {}),
    (True, Policy(dm="disabled"), {"event": "edit"}),
    (True, Policy(dm="allowlist"), {"mentioned": True}),
    (True, Policy(), {"sender": ""}),
    (True, Policy(), {"bot": True}),
    (False, Policy(), {"own": True}),
    (False, Policy(allow=ANN), {}),
    (False, Policy(paired=ANN), {}),
    (False, Policy(dm="disabled", owners=ANN), {}),
    (False, Policy(dm="open", allow=EVERYONE), {}),
    (True, Policy(allow=People(frozenset({"1"}))), {}),
    (True, Policy(), {"room": Room()}),
    (True, Policy(), {"room": Room(listed=True)}),
    (False, Policy(group="open"), {"room": Room(listed=True)}),
    (False, Policy(recorded=True), {"room": Room(listed=True)}),
    (False, Policy(allow=ANN), {"room": Room()}),
    (False, Policy(), {"room": Room(allow=ANN)}),
    (False, Policy(), {"room": Room(listed=True, roles=frozenset({"r"})), "roles": ("r",)}),
    (False, Policy(group="open", bots="mentions"), {"room": Room(listed=True), "bot": True}),
    (True, Policy(group="open"), {"room": Room(listed=True), "bot": True}),
)


@pytest.mark.parametrize(("expected", "policy", "changes"), OUTSIDE)
def test_who_is_outside_is_told_by_the_rules_alone(expected: bool, policy: Policy, changes: dict[str, Any]) -> None:
    facts = GROUP if "room" in changes else DIRECT
    assert outside(policy, replace(facts, **changes)) is expected


DM = ("pairing", "allowlist", "open", "disabled")
LISTS = st.builds(People, st.frozensets(st.sampled_from(("1", "42"))), st.booleans())
ANY_ROOM: st.SearchStrategy[Room | None] = st.none() | st.builds(
    Room, st.booleans(), st.booleans(), st.booleans(), st.none() | LISTS, st.sampled_from((None, "none", "all"))
)
RULES = st.builds(
    Policy,
    st.sampled_from(DM),
    st.sampled_from(("open", "allowlist", "disabled")),
    LISTS,
    LISTS,
    LISTS,
    LISTS,
    st.sampled_from(("none", "mentions", "all")),
    st.booleans(),
)


FACTS = st.builds(
    Facts,
    st.just("message"),
    st.sampled_from(("1", "42", "66", "-100", "")),
    st.just("-100"),
    mentioned=st.booleans(),
    command=st.booleans(),
    bot=st.booleans(),
    room=ANY_ROOM,
)


@given(RULES, FACTS)
def test_nobody_outside_is_ever_let_in_or_recorded(policy: Policy, facts: Facts) -> None:
    verdict = judge(policy, facts)
    if outside(policy, facts):
        assert isinstance(verdict, Drop)
        assert verdict.reason in REFUSALS
