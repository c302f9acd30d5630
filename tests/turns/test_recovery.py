"""A restart goes on where the process stopped: every message is answered once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.core.ids import SessionKey
from garra.core.messages import Assistant, Message, Text, ToolCall, ToolResult, User
from garra.testing.model import Says, says
from garra.turns.recovery import Found, standing
from tests.turns.house import House, config, echo, house, message

KEY = SessionKey("agent:main:test:direct:1")


def user(run_id: str, text: str = "q") -> User:
    return User((Text(text),), 0, {"idempotencyKey": f"{run_id}:user"})


def words(text: str, run_id: str = "", **more: Any) -> Assistant:
    return Assistant((Text(text),), 0, meta={"__openclaw": {"runId": run_id}} if run_id else {}, **more)


def found(messages: list[Message], *runs: str) -> list[Found]:
    return standing(messages, KEY, runs)


def test_how_far_a_turn_had_come() -> None:
    called = Assistant((ToolCall("c", "exec", {}),), 0, stop="toolUse")
    result = ToolResult("c", "exec", (Text("x"),), 0)
    assert found([], "a") == [Found("a", KEY)]
    assert found([user("x"), words("other")], "a") == [Found("a", KEY)]
    assert found([user("a")], "a") == [Found("a", KEY, "q")]
    assert found([user("a"), called, result], "a") == [Found("a", KEY, "q")]
    assert found([user("a"), words("cut", stop="error")], "a") == [Found("a", KEY, "q")]
    assert found([user("a"), words("")], "a") == [Found("a", KEY, "q")]
    assert found([user("a"), called, result, words("yes", "a")], "a") == [Found("a", KEY, "q", True, ("yes",))]
    assert found([user("a"), words("NO_REPLY")], "a") == [Found("a", KEY, "q", True)]


def test_a_turn_that_waits_for_its_sub_agents_has_ended_with_its_last_words() -> None:
    asks = Assistant((Text("wait"), ToolCall("c", "sessions_yield", {})), 0, stop="toolUse")
    rests = ToolResult("c", "sessions_yield", (Text("This turn ends here"),), 0)
    assert found([user("a"), asks, rests], "a") == [Found("a", KEY, "q", True, ("wait",))]
    refused = ToolResult("c", "sessions_yield", (Text("nothing to wait for"),), 0, is_error=True)
    assert found([user("a"), asks, refused], "a") == [Found("a", KEY, "q")]


def test_words_that_another_turn_had_taken_end_with_it() -> None:
    steered: list[Message] = [user("a"), user("b"), words("both", "a")]
    assert found(steered, "a", "b") == [Found("a", KEY, "q", True, ("both",)), Found("b", KEY, "q", led_by="a")]
    assert found([user("a"), user("b")], "a", "b") == [Found("a", KEY, "q"), Found("b", KEY, "q", led_by="a")]
    after: list[Message] = [user("a"), words("first", "a"), user("b")]
    assert found(after, "a", "b") == [Found("a", KEY, "q", True, ("first",)), Found("b", KEY, "q")]
    apart: list[Message] = [user("a"), words("1", "a"), user("b"), words("2", "b")]
    assert [each.answer for each in found(apart, "a", "b")] == [("1",), ("2",)]
    late: list[Message] = [user("a"), words("1", "a"), user("b"), words("2", "a")]
    assert found(late, "a", "b") == [Found("a", KEY, "q", True, ("1", "2")), Found("b", KEY, "q", led_by="a")]


def test_words_that_a_turn_took_which_is_done_end_with_it() -> None:
    """The other was answered and its row finished, then the process died."""
    assert found([user("gone"), user("b"), words("both", "gone")], "b") == [Found("b", KEY, "q", led_by="gone")]


def test_what_had_begun_goes_on_first() -> None:
    assert [each.run_id for each in found([user("b"), user("c")], "a", "c", "b")] == ["b", "c", "a"]


@pytest.mark.req("MSG-02")
async def test_a_message_that_was_stored_but_not_begun_is_answered_after_the_restart(tmp_path: Path) -> None:
    async with house(tmp_path, echo, started=False) as h:
        await h.channel.say("one")
        taken = await h.channel.say("two")
        await h.inbox.claim(taken)
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert h.channel.words() == ["re: one", "re: two"]


def hanging(messages: tuple[Message, ...]) -> Says:
    return Says(("half an ans",), hangs=True)


@pytest.mark.req("MSG-02", "CH-20")
async def test_a_turn_that_was_under_way_goes_on_twice_in_a_row(tmp_path: Path) -> None:
    for _ in range(2):
        async with house(tmp_path, hanging) as h:
            if not h.model.requests and not await h.inbox.pending():
                await h.channel.say("hello")
            await h.until(lambda: h.model.streams)
            [row] = await h.inbox.pending()
            assert row.state == "adopted"
            assert not h.channel.sent
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert h.channel.words() == ["re: hello"]
        transcript = await h.sessions.transcript(KEY)
        assert sum(isinstance(each, User) for each in transcript.messages()) == 1


async def stored(h: House, texts: list[tuple[str, str]], *, why: str = "adopted") -> list[str]:
    """Messages whose run had them, as a crash leaves them: (words, run id)."""
    rows = []
    for text, run_id in texts:
        row = (await h.inbox.accept(message(text))).row_id
        await h.inbox.claim(row)
        await h.inbox.adopt(row, run_id or row, KEY)
        rows.append(row)
    return rows


async def test_an_answer_that_was_not_written_out_is_sent_without_asking_again(tmp_path: Path) -> None:
    async with house(tmp_path, echo, started=False) as h:
        first, second = await stored(h, [("one", ""), ("two", "")])
        await h.sessions.ensure(KEY, agent_id="main", cwd="/")
        transcript = await h.sessions.transcript(KEY)
        for said in (user(first, "one"), user(second, "two"), words("to both", first)):
            await transcript.append(said)
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert h.channel.words() == ["to both"]
        assert not h.model.requests
        assert [(await h.row(row)).why for row in (first, second)] == ["answered", "joined"]
        assert [row.draft.text for row in await h.outbox.answers(first)] == ["to both"]


async def test_two_answers_of_one_turn_are_written_out_as_its_end_would_have(tmp_path: Path) -> None:
    async with house(tmp_path, echo, started=False) as h:
        row, other = await stored(h, [("one", ""), ("two", "")])
        await h.sessions.ensure(KEY, agent_id="main", cwd="/")
        transcript = await h.sessions.transcript(KEY)
        for said in (user(row, "one"), words("first", row), user(other, "two"), words("second", row)):
            await transcript.append(said)
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert [each.key for each in await h.outbox.answers(row)] == [f"out:{row}:0", f"out:{row}:1"]


async def test_a_burst_that_was_under_way_is_one_turn_again(tmp_path: Path) -> None:
    async with house(tmp_path, echo, started=False) as h:
        first = (await stored(h, [("one", "")]))[0]
        rows = [first, *await stored(h, [("two", first)])]
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert h.channel.words() == ["re: one\ntwo"]
        assert [(await h.row(row)).why for row in rows] == ["answered"] * 2


async def test_a_message_that_came_too_late_for_its_burst_is_answered_by_itself(tmp_path: Path) -> None:
    """It was meant for the turn, and the process died before it knew that the turn had begun without it."""
    async with house(tmp_path, echo, started=False) as h:
        first = (await stored(h, [("one", "")]))[0]
        late = (await stored(h, [("two", first)]))[0]
        event = (await h.row(first)).event
        await h.sessions.ensure(KEY, agent_id="main", cwd="/")
        meta = {"idempotencyKey": f"{first}:user", "provenance": {"messages": [{"id": event.id}]}}
        await (await h.sessions.transcript(KEY)).append(User((Text("one"),), 0, meta))
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert h.channel.words() == ["re: one", "re: two"]
        assert (await h.row(late)).why == "answered"


async def test_what_a_turn_asked_is_asked_again_as_it_was(tmp_path: Path) -> None:
    """A group's history went into the stored prompt; a restart does not lose it."""
    async with house(tmp_path, hanging) as h:
        await h.channel.say("aside", "2", "-5")
        await h.channel.say("so?", "1", "-5", mentioned=True)
        await h.until(lambda: h.model.streams)
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert "Bob (2): aside" in h.channel.words()[0]


async def test_who_is_no_longer_let_in_is_not_answered(tmp_path: Path) -> None:
    async with house(tmp_path, hanging) as h:
        row = await h.channel.say("hello")
        await h.until(lambda: h.model.streams)
    async with house(tmp_path, echo, config(allowFrom=["2"])) as h:
        await h.idle()
        assert (await h.row(row)).why == "no longer admitted"
        assert not h.model.requests


async def test_a_command_before_the_words_is_not_carried_out_twice(tmp_path: Path) -> None:
    async with house(tmp_path, hanging) as h:
        await h.channel.say("/new what is new?")
        await h.until(lambda: h.model.streams)
        session = await h.sessions.need(KEY)
    async with house(tmp_path, echo) as h:
        await h.idle()
        assert h.channel.words() == ["re: what is new?"]
        assert (await h.sessions.need(KEY)).session_id == session.session_id


async def test_several_agents_answer_one_group_each_in_its_own_session(tmp_path: Path) -> None:
    settings = config(
        {
            "agents": {"list": [{"id": "main"}, {"id": "writer"}, {"id": "reviewer"}]},
            "broadcast": {"test:-5": {"agents": ["writer", "reviewer", "nobody"]}},
        }
    )
    async with house(tmp_path, echo, settings) as h:
        row = await h.channel.say("look", "1", "-5", mentioned=True)
        await h.idle()
        assert sorted(h.channel.words()) == ["reviewer: re: Ann (1): look", "writer: re: Ann (1): look"]
        assert sorted(turn.session_key for turn in h.turns) == [
            "agent:reviewer:test:group:-5",
            "agent:writer:test:group:-5",
        ]
        assert (await h.row(row)).why == "answered"
        await h.channel.say("@writer alone", "1", "-5", mentioned=True)
        await h.idle()
        assert len(h.turns) == 3
    async with house(tmp_path, hanging, settings) as h:
        await h.channel.say("again", "1", "-5", mentioned=True)
        await h.until(lambda: len(h.model.streams) == 2)
    async with house(tmp_path, [says("fine")], settings) as h:
        await h.idle()
        assert sorted(h.channel.words()) == ["reviewer: fine", "writer: fine"]
