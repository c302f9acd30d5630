"""Questions in several chats: who is shown one, who may answer it, and that one answer ends it everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.approvals import Approval, Source
from garra.core.errors import NotFound, UserError
from garra.domains.delivery.replies import Extra, Replies, settings
from garra.domains.exec.approvals import Verdict
from garra.sdk.channel import Address, Limits, SendFailed
from garra.testing.clock import settle
from garra.turns.approve import Speaker, given
from garra.turns.cards import Cards
from garra.turns.cardwords import text
from tests.domains.exec.asking import question
from tests.turns.carding import DIRECT, GROUP, OWN, Room, cards, room

OURS = Extra(own=True)
FAR = {"channel": "far", "to": "7"}
FAR_ROOM = {"channel": "far", "to": "channel:room", "threadId": 77}
NOBODY = Source(unattended=True)


def targets(*named: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"exec": {"enabled": True, "mode": "targets", "targets": list(named), **more}}


async def chats(place: Room) -> set[tuple[str, str, str]]:
    """Where the only question is shown."""
    await place.desk.asked()
    await place.desk.until(lambda: bool(place.cards.shown(place.desk.approvals.pending()[0].id)))
    while not (rows := await place.every()):
        await settle()
    return {(row.draft.address.channel, row.draft.address.chat, row.draft.address.thread) for row in rows}


HERE = ("test", "1", "")


@pytest.mark.req("TOOL-13")
@pytest.mark.parametrize(
    ("approvals", "source", "where"),
    [
        (targets(FAR), DIRECT, {HERE, ("far", "dm-7", "")}),
        (targets(FAR, FAR, FAR_ROOM), DIRECT, {HERE, ("far", "dm-7", ""), ("far", "room", "77")}),
        (targets({**FAR, "to": "user:7"}), NOBODY, {("far", "dm-7", "")}),
        (targets({"channel": "test", "to": "1"}), DIRECT, {HERE}),
        (targets(FAR, agentFilter=["other"]), DIRECT, {HERE}),
        (targets(FAR, sessionFilter=["agent:main:"]), DIRECT, {HERE, ("far", "dm-7", "")}),
        (targets(FAR, mode="everywhere"), DIRECT, {HERE}),
        (targets(FAR, enabled=False), DIRECT, {HERE}),
        ({"plugin": targets(FAR)["exec"]}, DIRECT, {HERE}),
        (targets({**FAR, "to": "user:8"}), DIRECT, {HERE}),
        (targets({**FAR, "to": "user:away"}), DIRECT, {HERE}),
        (targets({**FAR, "channel": "none"}), DIRECT, {HERE}),
        (targets({"channel": "test", "to": "strict"}), DIRECT, {HERE}),
    ],
)
async def test_a_question_is_shown_where_the_owner_named_a_chat_that_can_answer(
    tmp_path: Path, approvals: Any, source: Source, where: set[tuple[str, str, str]]
) -> None:
    async with room(tmp_path, source, approvals=approvals) as place:
        assert await chats(place) == where


async def test_a_known_chat_is_asked_by_who_is_in_it(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets({**FAR, "to": "dm-x"})) as place:
        place.wrote("dm-x", "8", channel="far")
        assert await chats(place) == {HERE}
    async with room(tmp_path / "b", approvals=targets({**FAR, "to": "dm-x"})) as place:
        place.wrote("dm-x", "7", channel="far")
        assert await chats(place) == {HERE, ("far", "dm-x", "")}


async def test_tools_are_forwarded_by_their_own_rule(tmp_path: Path) -> None:
    async with room(tmp_path, approvals={"plugin": targets(FAR)["exec"]}) as place:
        await place.desk.asked(kind="tool", tool="post")
        assert {each.address.chat for each in await place.shown("far")} == {"dm-7"}


async def test_the_chat_of_the_session_is_asked_where_its_person_may_answer(tmp_path: Path) -> None:
    session = {"exec": {"enabled": True}}
    for sender, wanted in (("1", True), ("2", False)):
        async with room(tmp_path / sender, Source(), approvals=session) as place:
            place.session = Address("test", "default", "dm", "direct")
            place.wrote("dm", sender)
            answered = place.desk.approvals
            if wanted:
                assert await chats(place) == {("test", "dm", "")}
            else:
                assert "nobody can be asked" in (await answered.ask(question())).reason
    async with room(tmp_path / "quiet", Source(), approvals=session) as place:
        place.session, place.quiet = OWN, {"test"}
        assert "nobody can be asked" in (await place.desk.approvals.ask(question())).reason


async def test_a_guest_s_question_reaches_neither_him_nor_his_group(tmp_path: Path) -> None:
    everywhere = {"exec": {"enabled": True, "mode": "both", "targets": [FAR]}}
    guest = Source("test", "default", "2", sender="2")
    async with room(tmp_path, guest, approvals=everywhere) as place:
        assert await chats(place) == {HERE, ("far", "dm-7", "")}
    strict = replace(GROUP, chat="strict")
    async with room(tmp_path / "b", strict, approvals=everywhere) as place:
        assert await chats(place) == {HERE, ("far", "dm-7", "")}


@pytest.mark.parametrize(
    ("told", "source", "where"),
    [
        ({"target": "dm"}, GROUP, {HERE}),
        ({"target": "channel"}, GROUP, {("test", "g", "")}),
        ({"target": "both"}, GROUP, {HERE, ("test", "g", "")}),
        ({"target": "dm", "approvers": ["1", "2"]}, GROUP, {HERE, ("test", "2", "")}),
        ({"target": "dm", "approvers": ["away", "2"]}, GROUP, {("test", "2", "")}),
        ({"agentFilter": ["main"], "enabled": "auto"}, DIRECT, {HERE}),
    ],
)
async def test_an_account_says_where_its_questions_are_asked(
    tmp_path: Path, told: Any, source: Source, where: set[tuple[str, str, str]]
) -> None:
    async with room(tmp_path, source, execApprovals=told) as place:
        assert await chats(place) == where


@pytest.mark.parametrize("told", [{"agentFilter": ["other"]}, {"sessionFilter": ["slack"]}, {"target": "dmm"}, "yes"])
async def test_questions_of_others_are_not_asked_there(tmp_path: Path, told: Any) -> None:
    async with room(tmp_path, execApprovals=told) as place:
        assert "nobody can be asked" in (await place.desk.approvals.ask(question())).reason


# ---- one answer ends it everywhere


@pytest.mark.req("TOOL-13")
async def test_an_answer_in_one_place_changes_every_card(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR, FAR_ROOM)) as place:
        waiting, asked = await place.desk.asked()
        await place.shown("far")
        await place.carry()
        await place.carry("far")
        await place.desk.approvals.decide(asked.id, Verdict("deny", "far:default:7"))
        assert not (await waiting).allowed
        while len(far := await place.sent("far")) < 2:
            await settle()
        near = await place.shown()
        assert [each.edits for each in near] == ["1-0"]
        assert {each.edits for each in far} == {"dm-7-0", "room-1"}
        assert all(each.text.endswith("Denied by far:default:7.") and not each.buttons for each in (*near, *far))


async def test_where_a_card_cannot_be_changed_a_line_says_it_but_to_who_answered(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        place.still = {"test", "far"}
        _, asked = await place.desk.asked()
        await place.shown("far")
        await place.carry()
        await place.carry("far")
        await place.desk.approvals.decide(asked.id, Verdict("allow-once", "test:default:1"))
        (far,) = await place.shown("far")
        assert (far.text, far.edits) == ("Allowed once by test:default:1.", "")
        assert not await place.sent()


async def test_a_card_that_waits_for_its_link_never_leaves_once_it_is_answered(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        _, asked = await place.desk.asked()
        await place.shown("far")
        await place.carry()
        await place.desk.approvals.decide(asked.id, Verdict("deny", "test:default:1"))
        while await place.sent("far"):
            await settle()
        assert [row.reason for row in await place.every() if row.draft.address.channel == "far"] == [
            "dropped by its answer"
        ]


async def test_a_card_on_its_way_is_changed_when_it_arrives(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        _, asked = await place.desk.asked()
        await place.shown("far")
        (row,) = await place.outbox.claim(await place.outbox.heads("far", "default"))
        await place.desk.approvals.decide(asked.id, Verdict("deny", "test:default:1"))
        while await place.sent():  # the other one is dropped
            await settle()
        await place.outbox.sent(row, "late")
        (draft,) = await place.shown("far")
        assert (draft.edits, draft.buttons) == ("late", ())


async def test_one_refused_card_of_two_leaves_the_question_open(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        waiting, asked = await place.desk.asked()
        await place.shown("far")
        for channel in ("far", "test"):
            assert asked.id in {each.id for each in place.desk.approvals.pending()}
            (row,) = await place.outbox.claim(await place.outbox.heads(channel, "default"))
            await place.outbox.failed(row, SendFailed("refused", "no such chat"))
            for _ in range(20):
                await settle()
        assert "did not take it" in (await waiting).reason


async def test_a_chat_that_cannot_hold_it_whole_is_left_out(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        place.quiet = set()
        _, asked = await place.desk.asked(subject="yw" * 2_500)
        await place.shown("far")
        assert len(place.files) == 2
        assert len(place.cards.shown(asked.id)) == 2


# ---- a restart


@pytest.mark.req("TOOL-13")
async def test_after_a_restart_no_card_is_doubled_and_all_are_changed(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        _, asked = await place.desk.asked()
        await place.shown("far")
        await place.carry()
        await place.carry("far")
        again = restarted(place)
        await again.load()
        assert {each.chat for each in again.shown(asked.id)} == {"1", "dm-7"}
        assert len(await place.every()) == 2
        await place.desk.approvals.decide(asked.id, Verdict("deny", "web"))
        assert (await place.shown())[0].edits
        assert (await place.shown("far"))[0].edits


async def test_a_question_without_a_card_gets_it_at_the_next_start(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        _, asked = await place.desk.asked()
        await place.shown("far")
        await place.desk.db.write(lambda c: c.execute("DELETE FROM outbox"))
        again = restarted(place)
        await again.load()
        await place.shown("far")
        assert len(again.shown(asked.id)) == 2


async def test_what_was_answered_while_nothing_ran_is_told_at_the_start(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        _, asked = await place.desk.asked()
        await place.shown()
        await place.carry()
        place.cards.close()
        await place.desk.approvals.decide(asked.id, Verdict("deny", "the command line"))
        assert len(await place.every()) == 1
        for _ in range(2):
            await cards(place).load()
            (draft,) = await place.shown()
            assert draft.text.endswith("Denied by the command line.")
        assert len(await place.every()) == 2


def restarted(place: Room) -> Cards:
    place.cards.close()
    again = cards(place)
    place.outbox.subscribe(again.heard)
    return again


# ---- who may answer


async def said(place: Room, words: str, address: Address, sender: str, *, owner: bool = False) -> str:
    ports: Any = type("P", (), {"approvals": place.desk.approvals, "clock": FAST, "cards": place.cards.shown})
    return await given(ports, words, Speaker(address, sender, owner))


class Fast:
    """A clock that does not wait."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


FAST = Fast()
FAR_DM = Address("far", "default", "dm-7", "direct")


@pytest.mark.req("TOOL-13")
async def test_an_approver_answers_what_is_asked_in_his_account_and_nothing_else(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        _, asked = await place.desk.asked()
        await place.shown()
        for words in (asked.id, asked.id[:4], asked.id[:8] + " deny", ""):
            with pytest.raises(NotFound, match="waits"):
                await said(place, words, FAR_DM, "7")
        assert "Allowed once: touch x" in await said(place, asked.id[:8], OWN, "1", owner=True)


async def test_where_it_is_shown_it_is_answered_without_its_id(tmp_path: Path) -> None:
    async with room(tmp_path, approvals=targets(FAR)) as place:
        waiting, _ = await place.desk.asked()
        await place.shown("far")
        assert await said(place, "", FAR_DM, "7") == "Allowed once: touch x"
        assert (await waiting).by == "far:default:7"


async def test_other_topics_are_other_places(tmp_path: Path) -> None:
    async with room(tmp_path, replace(GROUP, thread="5")) as place:
        await place.desk.asked()
        await place.desk.asked(bound="b")
        await place.shown()
        topic = Address("test", "default", "g", "group", "6")
        with pytest.raises(NotFound, match="Nothing asked in this chat"):
            await said(place, "", topic, "1", owner=True)
        with pytest.raises(UserError, match="Which one"):
            await said(place, "", replace(topic, thread="5"), "1", owner=True)


# ---- nothing in a card hides what is asked


@pytest.mark.parametrize("trick", ["</think>", "<think>", "`</think>`", "[[reply_to: 5]]", "\n```\n", "<|im_end|>"])
@pytest.mark.parametrize("where", ["cwd", "why", "remembers", "tool", "host", "env", "subject"])
def test_nothing_that_others_chose_takes_a_word_out_of_a_card(trick: str, where: str) -> None:
    value: Any = (f"a {trick} b",) if where in {"why", "env"} else f"a {trick} b"
    kind = "tool" if where == "tool" else "exec"
    changes = {"kind": kind, where: value, "choices": ("allow-once", "allow-always", "deny")}
    asked = Approval("12345678-x", question(**{"subject": "touch x; rm -rf /", **changes}), 1)
    limits = Limits(text=4_000, formats=("plain",))
    (draft,) = Replies().drafts(
        "k", OWN, text(asked), limits=limits, settings=settings({}, limits, "direct", {}), extra=OURS
    )
    assert asked.question.subject in draft.text
    assert draft.text.startswith("May the agent main ")
    assert draft.text.endswith("/approve 12345678 allow-once")
    assert trick.strip() in draft.text
    assert not draft.reply_to
