"""An owner is asked in a chat, whole, and answers there by the words of a command."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from garra.core.approvals import LIFE_MS, Answer, Approval, Source
from garra.core.errors import NotFound, UserError
from garra.domains.exec.approvals import Verdict
from garra.io.clock import SystemClock
from garra.sdk.channel import Address, SendFailed
from garra.turns.approve import Answering, Asked, answer, parse
from garra.turns.cardwords import ended, fenced, text
from tests.domains.exec.asking import question
from tests.turns.carding import DIRECT, GROUP, OWN, Room, room


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", Asked("", "allow-once")),
        ("abcd1234", Asked("abcd1234", "allow-once")),
        ("ABCD1234 allow-once", Asked("abcd1234", "allow-once")),
        ("`abcd1234` always", Asked("abcd1234", "allow-always")),
        ("exec:abcd1234 deny not now please", Asked("abcd1234", "deny", "not now please")),
        ("deny", Asked("", "deny")),
        ("allow-always", Asked("", "allow-always")),
    ],
)
def test_what_is_written_is_an_answer(words: str, wanted: Asked) -> None:
    assert parse(words, deny=False) == wanted


def test_deny_takes_a_reason_and_approve_none() -> None:
    assert parse("abcd1234 too dangerous", deny=True) == Asked("abcd1234", "deny", "too dangerous")
    assert parse("abcd1234 allow-once", deny=True) == Asked("abcd1234", "deny")
    assert parse("not like this", deny=True) == Asked("", "deny", "not like this")
    for words in ("abcd1234 perhaps", "abcd1234 allow-once and more", "rm -rf"):
        with pytest.raises(UserError, match="It reads"):
            parse(words, deny=False)


def here(place: Room, address: Address = OWN) -> Answering:
    return Answering(place.desk.approvals, SystemClock(), "test:default:1", lambda each: at(each, address))


def at(approval: Approval, address: Address) -> bool:
    return (approval.source.chat, approval.source.thread) == (address.chat, address.thread)


@pytest.mark.req("TOOL-13")
async def test_a_card_is_shown_whole_and_ends_with_what_to_type(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        command = "echo one\necho `two`\n" + "xw" * 150
        waiting, asked = await place.desk.asked(subject=command, why=("it is new",), cwd="/w", host="gateway")
        await place.shown()
        rows = await place.desk.db.read(lambda c: c.execute("SELECT key FROM outbox ORDER BY place").fetchall())
        drafts = [(await place.outbox.get(key)).draft for (key,) in rows]
        whole = "".join(each.text for each in drafts)
        assert command in whole
        assert "Because it is new" in whole
        assert whole.endswith(f"/approve {asked.id[:8]} allow-once")
        assert [bool(each.buttons) for each in drafts[:-1]] == [False] * (len(drafts) - 1)
        (row,) = drafts[-1].buttons
        assert [each.label for each in row] == ["Allow once", "Deny"]
        assert all(len(each.data.encode()) <= 64 for each in row)
        assert "Allowed once: echo one" in await answer(here(place), parse(asked.id[:8], deny=False))
        assert (await waiting).by == "test:default:1"
        assert "handled already" in await answer(here(place), parse(asked.id, deny=False))


async def test_the_only_question_of_a_chat_needs_no_id(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        waiting, _ = await place.desk.asked()
        assert await answer(here(place), parse("not now", deny=True)) == "Denied: touch x"
        assert (await waiting).reason == "not now"
        await place.desk.asked(bound="a")
        await place.desk.asked(bound="b")
        with pytest.raises(UserError, match="Which one"):
            await answer(here(place), parse("", deny=False))


async def test_an_answer_that_comes_before_its_question_waits_for_it(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        early = asyncio.create_task(answer(here(place), parse("", deny=False)))
        await asyncio.sleep(0)
        waiting, _ = await place.desk.asked()
        assert "Allowed once" in await early
        assert (await waiting).allowed


async def test_an_unknown_id_is_told(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        elsewhere = replace(OWN, chat="7")
        await place.desk.asked()
        for words in ("ffffffff", ""):
            with pytest.raises(NotFound, match="waits"):
                await answer(here(place, elsewhere), parse(words, deny=False))


@pytest.mark.parametrize(
    ("source", "own", "chat"),
    [
        (DIRECT, None, "1"),
        (GROUP, None, "g"),
        (replace(GROUP, chat="strict"), OWN, "1"),
        (Source("test", "default", "2", sender="2"), OWN, "1"),
        (Source("test", "default", "2", sender="2"), None, None),
        (replace(DIRECT, unattended=True), OWN, None),
        (Source(), OWN, None),
    ],
)
async def test_whom_a_question_reaches(tmp_path: Path, source: Source, own: Address | None, chat: str | None) -> None:
    async with room(tmp_path, source, own) as place:
        if chat is None:
            assert "nobody can be asked" in (await place.desk.approvals.ask(question())).reason
            return
        await place.desk.asked()
        assert {each.address.chat for each in await place.shown()} == {chat}


async def test_what_is_longer_than_a_chat_takes_is_sent_as_a_file(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        await place.desk.asked(subject="yw" * 2_500)
        await place.shown()
        assert place.files == [b"yw" * 2_500]


async def test_what_cannot_be_shown_whole_is_not_asked(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        answered = await place.desk.approvals.ask(replace(question(), subject="yw" * 25_000))
        assert not answered.allowed
        assert "too long to be shown whole" in answered.reason


async def test_a_card_the_platform_refused_is_one_that_nobody_sees(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        waiting, _ = await place.desk.asked()
        await place.shown()
        rows = await place.outbox.claim(await place.outbox.heads("test", "default"))
        await place.outbox.failed(rows[0], SendFailed("refused", "no such chat"))
        assert "the chat did not take it" in (await waiting).reason


async def test_the_card_says_what_became_of_it(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        _, asked = await place.desk.asked()
        await place.shown()
        (row,) = await place.outbox.claim(await place.outbox.heads("test", "default"))
        await place.outbox.sent(row, "m1")
        await place.desk.approvals.decide(asked.id, Verdict("allow-once", "web"))
        (draft,) = await place.shown()
        assert draft.edits == "m1"
        assert draft.text.endswith("Allowed once by web.")
        assert not draft.buttons


async def test_one_that_expired_is_told(tmp_path: Path) -> None:
    async with room(tmp_path) as place:
        await place.desk.asked(subject="zw" * 125)  # of two messages: it cannot be changed into another
        await place.shown()
        while rows := await place.outbox.claim(await place.outbox.heads("test", "default")):
            await place.outbox.sent(rows[0], "m")
        await place.desk.clock.advance(LIFE_MS / 1000 + 1)
        (draft,) = await place.shown()
        assert "has expired" in draft.text


def test_words_about_an_end() -> None:
    approval = Approval("12345678-x", question(), 1, phase="withdrawn")
    assert "not needed" in ended(approval, Answer("deny"))
    assert "`use" not in text(replace(approval, question=replace(question(), kind="egress")))


def test_code_ends_where_it_should() -> None:
    assert fenced("a ``` b ```` c").startswith("`````\n")


@pytest.mark.parametrize(
    ("told", "source", "chat"),
    [
        ({"approvers": ["test:2"]}, DIRECT, None),
        ({"approvers": ["test:2"]}, Source("test", "default", "2", sender="2"), "2"),
        ({"approvers": ["1"]}, Source("test", "default", "2", sender="2"), "1"),
        ({"enabled": False}, DIRECT, None),
    ],
)
async def test_an_account_s_own_approvers_are_asked_in_its_chats(
    tmp_path: Path, told: dict[str, Any], source: Source, chat: str | None
) -> None:
    async with room(tmp_path, source, execApprovals=told) as place:
        if chat is None:
            assert "nobody can be asked" in (await place.desk.approvals.ask(question())).reason
            return
        await place.desk.asked()
        assert {each.address.chat for each in await place.shown()} == {chat}
