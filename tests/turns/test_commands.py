"""What a chat's commands do, and who may give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import UserError
from garra.core.lanes import Settings
from garra.domains.sessions.session import Session
from garra.turns import commands, queueing
from garra.turns.commands import parse
from tests.turns.house import House, config, echo, house


async def answer(h: House, text: str, user: str = "1", chat: str = "", **more: Any) -> str:
    """The words that answer a command."""
    before = len(h.channel.words())
    await h.channel.say(text, user, chat, **more)
    await h.idle()
    return "\n".join(h.channel.words()[before:])


def test_a_command_is_known_by_its_name_alone() -> None:
    for text, name in (
        ("/status", "status"),
        ("  /STATUS  ", "status"),
        ("/status@my_bot now", "status"),
        ("/t high", "think"),
        ("/think:high", "think"),
        ("/bot_me", "bot-me"),
    ):
        given = parse(text)
        assert given is not None
        assert given.command.name == name
    for text in (
        "status",
        "/unknown",
        "/ status",
        "//status",
        "/usr/bin/ls",
        "/statuses",
        "hello /status",
        "/status/x",
        "",
    ):
        assert parse(text) is None
    assert parse("/status@other_bot", mentioned=False) is None
    assert parse("/status", mentioned=False) is not None


def test_every_command_does_something() -> None:
    from garra.turns.chores import CHORES  # noqa: PLC0415 - its own table

    assert set(CHORES) == {command.name for command in commands.COMMANDS}


async def test_an_unknown_command_is_ordinary_text(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        assert await answer(h, "/frobnicate now") == "re: /frobnicate now"


@pytest.mark.req("MSG-09")
async def test_what_the_reading_commands_say(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        told = await answer(h, "/help")
        assert "/status" in told
        assert "/pair" not in told
        assert "/config" not in told
        assert "No tokens" in await answer(h, "/usage")
        await answer(h, "hi")
        assert "read 10 tokens" in await answer(h, "/usage")
        status = await answer(h, "/status")
        assert "Model: scripted/scripted" in status
        assert "agent:main:test:direct:1" in status
        assert "at rest" in status
        assert len(h.model.requests) == 1


@pytest.mark.req("CH-25")
async def test_a_person_learns_their_id_in_private_only(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        assert await answer(h, "/bot-me") == "Your id here is 1"
        told = await answer(h, "/bot-me", chat="-5", mentioned=True)
        assert "private" in told
        assert " 1" not in told
        assert '"test:1"' in await answer(h, "/whoami")


async def test_new_begins_another_conversation_and_keeps_the_one_before(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        await answer(h, "the old")
        first = await h.sessions.need("agent:main:test:direct:1")
        assert "new conversation" in await answer(h, "/new")
        second = await h.sessions.need("agent:main:test:direct:1")
        assert second.session_id != first.session_id
        assert second.extra["previousSessionId"] == first.session_id
        assert await answer(h, "/reset and hello") == "re: and hello"
        assert "the old" not in str(h.model.requests[-1])
        session = await h.sessions.need("agent:main:test:direct:1")
        assert await answer(h, "/new scripted/other hello again") == "re: hello again"
        third = await h.sessions.need("agent:main:test:direct:1")
        assert third.session_id != session.session_id
        assert third.override == "scripted/other"
        assert "with scripted/other" in await answer(h, "/new scripted/other")
        assert await answer(h, "/new either/or is a book") == "re: either/or is a book"


async def test_model_think_verbose_reply_are_set_for_the_session(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        assert "scripted/scripted" in await answer(h, "/model")
        assert "scripted/other" in await answer(h, "/model scripted/other")
        assert "no model" in await answer(h, "/model nope/nope")
        session = await h.sessions.need("agent:main:test:direct:1")
        assert session.override == "scripted/other"
        await answer(h, "/model default")
        assert "high" in await answer(h, "/think high")
        assert "unknown thinking level" in await answer(h, "/think deeply")
        assert "full" in await answer(h, "/verbose full")
        assert "takes" in await answer(h, "/verbose loud")
        assert "off" in await answer(h, "/reply off")
        assert "takes" in await answer(h, "/reply never")
        session = await h.sessions.need("agent:main:test:direct:1")
        assert (session.override, session.thinking, session.verbose) == (None, "high", "full")
        assert session.extra["replyToMode"] == "off"
        assert "as configured" in await answer(h, "/think default")


async def test_a_value_with_words_behind_it_holds_for_these_alone(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        assert await answer(h, "/think high why?") == "re: why?"
        assert await answer(h, "/model other who?") == "re: who?"
        assert [(turn.thinking, turn.model) for turn in h.turns] == [("high", None), (None, "scripted/other")]
        assert "no model" in await answer(h, "/model nope who?")
        session = await h.sessions.need("agent:main:test:direct:1")
        assert (session.thinking, session.override) == (None, None)


async def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    async with house(tmp_path, echo, config({"commands": {"ownerAllowFrom": ["test:1"]}})) as h:
        assert "cannot be summed up" in await answer(h, "/compact")
        assert "Nothing waits" in await answer(h, "/approve 1")
        assert "Nothing waits" in await answer(h, "/deny")
        assert "garra config" in await answer(h, "/config show")


@pytest.mark.req("SEC-05")
async def test_who_may_give_which_command(tmp_path: Path) -> None:
    settings = config(dmPolicy="pairing", allowFrom=["1"], groupPolicy="open", groups={"*": {}})
    async with house(tmp_path, echo, settings) as h:
        await h.channel.say("let me in", "7")
        await h.idle()
        await h.pairing.approve("test", h.pairing.waiting()[0].code)
        assert "Model: scripted/other" in await answer(h, "/model scripted/other", "7")
        refused = await answer(h, "/config", "7", "-5", mentioned=True)
        assert "Only an owner" in refused
        assert "ownerAllowFrom '[\"test:7\"]'" in refused
        assert "named" in await answer(h, "/new", "7", "-5", mentioned=True)
        assert "named" in await answer(h, "/stop", "7", "-5", mentioned=True)
        assert "new conversation" in await answer(h, "/new", "1", "-5", mentioned=True)
        assert await answer(h, "/new", "7", "-5") == ""


async def test_a_named_person_need_not_call_the_bot_to_command_it(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        assert "Agent: main" in await answer(h, "/status", "1", "-5")
        assert await answer(h, "/status@other", "1", "-5") == ""


@pytest.mark.req("CH-24")
async def test_a_group_may_have_few_commands(tmp_path: Path) -> None:
    own = {"-5": {"commandLevel": "strict"}, "-6": {"commandLevel": "safety"}, "-7": {"commandLevel": "odd"}}
    async with house(tmp_path, echo, config(groups=own)) as h:
        assert "off in this group" in await answer(h, "/status", chat="-5")
        assert "running" in await answer(h, "/stop", chat="-5")
        assert "Agent: main" in await answer(h, "/status", chat="-6")
        assert "off in this group" in await answer(h, "/new", chat="-6")
        assert "off in this group" in await answer(h, "/status", chat="-7")
        assert "/new" not in await answer(h, "/help", chat="-6")


async def test_an_owner_lets_somebody_in_and_changes_a_group(tmp_path: Path) -> None:
    settings = config({"commands": {"ownerAllowFrom": ["test:1", "2"]}}, dmPolicy="pairing", allowFrom=["1", "2"])
    async with house(tmp_path, echo, settings) as h:
        assert "Nobody" in await answer(h, "/pair")
        await h.channel.say("hello", "8")
        await h.idle()
        assert "8 Stranger" in await answer(h, "/pair list")
        assert "no request" in await answer(h, "/pair AAAAAAAA")
        assert "8 may write" in await answer(h, f"/pair approve {h.pairing.waiting()[0].code}")
        assert await answer(h, "hello", "8") == "re: hello"
        assert "Only an owner" in await answer(h, "/pair", "2")
        assert "groups" in await answer(h, "/activation always")
        assert "everything" in await answer(h, "/activation always", chat="-5")
        assert await answer(h, "no mention", "2", "-5") == "re: Bob (2): no mention"
        assert "named" in await answer(h, "/activation mention", chat="-5")
        assert await answer(h, "no mention", "2", "-5") == ""
        assert "takes" in await answer(h, "/activation", chat="-5")


async def test_in_a_shared_conversation_a_guest_commands_nothing(tmp_path: Path) -> None:
    settings = config({"session": {"dmScope": "main"}}, dmPolicy="open", allowFrom=["*"])
    async with house(tmp_path, echo, settings) as h:
        assert "named" in await answer(h, "/new", "9")
        assert "Agent: main" in await answer(h, "/status", "9")


@pytest.mark.req("CH-10")
def test_how_messages_wait_is_said_by_the_closest() -> None:
    plain = config({"messages": {}})
    set_for_all = config({"messages": {"queue": {"mode": "collect", "cap": 5, "drop": "old", "debounceMs": 9}}})
    by_channel = config(
        {
            "messages": {
                "queue": {"mode": "collect", "byChannel": {"test": "followup"}, "debounceMsByChannel": {"test": 7}}
            }
        }
    )

    def at(found: Any, **extra: Any) -> Settings:
        session = Session("k", "s", "main", 0, 0, 0, extra=extra) if extra else None  # type: ignore[arg-type]
        return queueing.settings(found, "test", session)

    assert at(plain) == Settings("steer", 500, 20, "summarize")
    assert at(set_for_all) == Settings("collect", 9, 5, "old")
    assert (at(by_channel).mode, at(by_channel).debounce_ms) == ("followup", 7)
    assert queueing.settings(by_channel, "other", None).mode == "collect"
    own = at(by_channel, queueMode="interrupt", queueDebounceMs=1, queueCap=2, queueDrop="new")
    assert own == Settings("interrupt", 1, 2, "new")
    assert at(plain, queueMode="queue").mode == "followup"
    assert at(plain, queueMode="odd", queueCap="x", queueDrop="y") == Settings("steer", 500, 20, "summarize")


@pytest.mark.req("CH-10")
async def test_queue_is_set_and_cleared_for_a_session(tmp_path: Path) -> None:
    async with house(tmp_path, echo) as h:
        told = await answer(h, "/queue collect debounce:0.5s cap:25 drop:old")
        assert told.startswith("Queue: collect")
        assert "debounce 500 ms, cap 25, drop old" in told
        await answer(h, "hi")
        assert h.turns[-1].lane == Settings("collect", 500, 25, "old")
        assert "does not know" in await answer(h, "/queue sideways")
        assert (await answer(h, "/queue default")).startswith("Queue: steer")
        assert (await answer(h, "/queue")).startswith("Queue: steer")


@pytest.mark.parametrize("words", ["cap:0", "cap:x", "debounce:1y", "drop:all", "debounce", "steer now"])
def test_an_option_of_the_queue_that_is_none(words: str) -> None:
    with pytest.raises(UserError, match="does not know"):
        queueing.options(words.split())


def test_how_long_a_burst_is_waited_for() -> None:
    plain = config({"messages": {}})
    assert queueing.quiet_s(plain, "test", 5) == 0.3
    assert queueing.quiet_s(plain, "test", 4_000) == 1.5
    own = config({"messages": {"inbound": {"debounceMs": 0, "byChannel": {"other": 2000}}}})
    assert queueing.quiet_s(own, "test", 5) == 0
    assert queueing.quiet_s(own, "test", 4_000) == 1.5
    assert queueing.quiet_s(own, "other", 4_000) == 2.0
