"""Questions are kept, shown, waited for, answered once, and outlive the process that asked them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from garra.core.approvals import LIFE_MS, Answer, Question, Source
from garra.core.errors import Conflict, NotFound, UserError
from garra.core.execrules import Entry
from garra.core.ids import AgentId
from garra.domains.exec.approvals import Change, Verdict
from garra.testing.clock import ManualClock, settle
from tests.domains.exec.asking import Desk, answered, desk, question


@pytest.fixture
async def d(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(tmp_path) as found:
        yield found


async def test_waits_for_an_answer_and_gives_it(d: Desk) -> None:
    heard: list[Change] = []
    d.approvals.subscribe(heard.append)
    waiting, asked = await d.asked()
    await d.until(lambda: bool(d.way.shown))
    assert not await d.decide(asked)
    assert await answered(waiting) == Answer("allow-once", "owner")
    assert [each.answer for each in heard] == [None, Answer("allow-once", "owner")]
    assert not d.approvals.pending()


@pytest.mark.req("TOOL-13")
async def test_double_answers_are_handled_already_and_another_one_is_refused(d: Desk) -> None:
    waiting, asked = await d.asked()
    await d.decide(asked)
    assert await d.decide(asked)
    with pytest.raises(Conflict, match="handled already") as told:
        await d.decide(asked, "deny")
    assert told.value.details == {"reason": "APPROVAL_ALREADY_RESOLVED"}
    assert (await answered(waiting)).allowed


async def test_an_answer_that_overtakes_the_registering_counts(d: Desk) -> None:
    waiting = d.spawn(d.approvals.ask(question()), "asks")
    await d.until(lambda: bool(d.approvals._held))  # the row is on its way to the disk
    (name,) = d.approvals._held
    await d.approvals.decide(name, Verdict("allow-once", "owner"))
    assert (await answered(waiting)).allowed


@pytest.mark.req("TOOL-14")
async def test_nobody_answers_and_the_fallback_holds(d: Desk) -> None:
    waiting, asked = await d.asked()
    await d.clock.advance(LIFE_MS / 1000 - 1)
    assert not waiting.done()
    await d.clock.advance(2)
    answer = await answered(waiting)
    assert (answer.choice, answer.reason) == ("deny", "nobody answered in time")
    with pytest.raises(Conflict, match="Too late"):
        await d.decide(asked)


async def test_where_nobody_can_be_asked_it_is_denied_at_once(d: Desk) -> None:
    d.way.open = False
    answer = await d.approvals.ask(question())
    assert answer.choice == "deny"
    assert "nobody can be asked" in answer.reason
    (kept,) = await d.approvals.history(10)
    assert kept.phase == "denied"


async def test_a_card_that_cannot_be_shown_is_as_if_nobody_were_there(d: Desk) -> None:
    d.way.fault = "the disk is full"
    answer = await d.approvals.ask(question())
    assert "could not be shown: the disk is full" in answer.reason


async def test_a_stopped_run_takes_its_question_back(d: Desk) -> None:
    waiting, asked = await d.asked()
    waiting.cancel()
    await d.until(lambda: not d.approvals.pending())
    with pytest.raises(Conflict, match="not needed"):
        await d.decide(asked)


@pytest.mark.req("TOOL-13")
async def test_outlives_the_process_and_is_answered_for_the_run_that_asks_again(tmp_path: Path) -> None:
    clock = ManualClock()
    async with desk(tmp_path, clock) as first:
        _, asked = await first.asked()
        first.approvals.rest()
    async with desk(tmp_path, clock) as second:
        assert [each.id for each in second.approvals.pending()] == [asked.id]
        await second.decide(asked)
        other = second.spawn(second.approvals.ask(question(bound="other")), "asks")
        again = await second.approvals.ask(question(call_id="call-2"))
        assert again == Answer("allow-once", "owner")
        assert not other.done(), "the answer is for the very same thing"
        once_more = second.spawn(second.approvals.ask(question(call_id="call-3")), "asks")
        await second.until(lambda: len(second.approvals.pending()) == 2)
        assert not once_more.done(), "it was worth one doing"


async def test_a_run_that_asks_again_joins_what_still_waits(tmp_path: Path) -> None:
    async with desk(tmp_path) as first:
        _, asked = await first.asked()
        first.approvals.rest()
    async with desk(tmp_path) as second:
        waiting = second.spawn(second.approvals.ask(question(call_id="call-2")), "asks")
        await second.until(lambda: bool(second.approvals.waiting))
        await settle()
        assert [each.id for each in second.approvals.pending()] == [asked.id], "no second card"
        await second.decide(asked, "deny")
        assert not (await answered(waiting)).allowed


async def test_what_an_answer_remembers_is_kept_before_it_counts(d: Desk) -> None:
    entry = Entry("/usr/bin/rg", "^-n ")
    waiting, asked = await d.asked(
        choices=("allow-once", "allow-always", "deny"), remembers="rg -n in x", entries=(entry,)
    )
    twin, _ = await d.asked(
        choices=("allow-once", "allow-always", "deny"), remembers="rg -n in x", entries=(entry,), bound="twin"
    )
    await d.decide(asked, "allow-always")
    assert (await answered(waiting)).choice == "allow-always"
    assert (await answered(twin)).allowed, "what waits and is covered is not asked again"
    (kept,) = d.approvals.rulebook.rules.of("main").allowlist
    assert (kept.pattern, kept.arg_pattern, kept.source) == ("/usr/bin/rg", "^-n ", "allow-always")
    assert not d.approvals.rulebook.rules.of("other").allowlist


async def test_always_is_not_offered_where_nothing_says_what_it_means(d: Desk) -> None:
    _, asked = await d.asked(choices=("allow-once", "allow-always", "deny"))
    with pytest.raises(Conflict, match="not offered") as told:
        await d.decide(asked, "allow-always")
    assert told.value.details == {"reason": "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE"}


def host(**changes: object) -> dict[str, object]:
    return {
        "kind": "egress",
        "subject": "reach api.example.com:443",
        "choices": ("allow-once", "allow-always", "deny"),
        "covers": "host:api.example.com:443",
        "remembers": "api.example.com:443 for this agent",
        **changes,
    }


async def test_a_grant_lets_pass_until_it_is_revoked(d: Desk) -> None:
    _, asked = await d.asked(**host())
    await d.decide(asked, "allow-always")
    answer = await d.approvals.ask(question(**host(bound="other")))
    assert answer.allowed
    assert answer.by.startswith("grant ")
    (grant,) = d.approvals.grants.all()
    assert (grant.uses, grant.expires_at) == (1, 0)
    _, stranger = await d.asked(**host(agent_id=AgentId("other")))
    assert stranger.question.agent_id == "other"
    assert await d.approvals.revoke(grant.id[:8], "owner")
    assert not await d.approvals.revoke(grant.id, "owner")
    _, again = await d.asked(**host())
    assert again.open
    with pytest.raises(NotFound):
        await d.approvals.revoke("ffff", "owner")


async def test_once_may_hold_for_an_hour(d: Desk) -> None:
    _, asked = await d.asked(**host(once_ms=3_600_000))
    await d.decide(asked)
    assert (await d.approvals.ask(question(**host(bound="b")))).allowed
    await d.clock.advance(3_601)
    _, again = await d.asked(**host(once_ms=3_600_000))
    assert again.open


async def test_days_limit_what_always_means(d: Desk) -> None:
    _, asked = await d.asked(**host())
    await d.approvals.decide(asked.id, Verdict("allow-always", "owner", days=2))
    (grant,) = d.approvals.grants.all()
    assert grant.expires_at - grant.created_at == 2 * 86_400_000


async def test_is_found_by_the_beginning_of_its_id_where_it_is_clear(d: Desk) -> None:
    _, asked = await d.asked()
    _, other = await d.asked(bound="b")
    assert (await d.approvals.find(asked.id[:8])).id == asked.id
    with pytest.raises(UserError, match="several"):
        await d.approvals.find(asked.id[:4])
    for name in ("", "00", "ffffffff"):
        with pytest.raises(NotFound):
            await d.approvals.find(name)
    await d.decide(other)
    assert (await d.approvals.find(other.id[:8])).phase == "allowed"


async def test_a_reviewer_can_refuse_or_pass_on_and_no_more(tmp_path: Path) -> None:
    async def review(asked: Question) -> str:
        return "it deletes what is not its own" if asked.subject == "rm -r /" else ""

    async with desk(tmp_path, review=review) as d:
        answer = await d.approvals.ask(question(subject="rm -r /"))
        assert (answer.choice, answer.by, answer.reason) == ("deny", "reviewer", "it deletes what is not its own")
        _, asked = await d.asked()
        assert asked.open


async def test_the_source_of_a_question_is_kept_with_it(tmp_path: Path) -> None:
    async with desk(tmp_path, source=Source("telegram", "main", "7", sender="7")) as d:
        _, asked = await d.asked()
        assert (await d.approvals.find(asked.id)).source.channel == "telegram"


async def test_the_end_of_one_can_be_waited_for(d: Desk) -> None:
    _, asked = await d.asked()
    waiting = d.spawn(d.approvals.ended(asked.id), "waits")
    await settle()
    await d.decide(asked, "deny")
    assert (await waiting).phase == "denied"
    assert (await d.approvals.ended(asked.id)).phase == "denied"


async def test_what_is_old_is_forgotten(d: Desk) -> None:
    _, asked = await d.asked()
    await d.decide(asked)
    _, granted = await d.asked(**host(once_ms=1_000))
    await d.decide(granted)
    await d.approvals.sweep()
    assert len(await d.approvals.history(10)) == 2
    await d.clock.advance(31 * 86_400)
    await d.approvals.sweep()
    assert not await d.approvals.history(10)
    assert not d.approvals.grants.all()


async def test_a_document_that_cannot_be_read_lets_nothing_run(tmp_path: Path) -> None:
    async with desk(tmp_path) as d:
        await d.approvals.rulebook.set({"defaults": {"security": "full"}})
        with pytest.raises(Conflict):
            await d.approvals.rulebook.set({}, base_hash="stale")
        await d.approvals.rulebook._shelf.set("document", {"version": 3})
    async with desk(tmp_path) as d:
        assert d.approvals.rulebook.rules.of("main").security == "deny"
