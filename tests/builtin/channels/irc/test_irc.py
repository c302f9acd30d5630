"""The IRC channel over the fake server: what the suite for every channel does not ask."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from garra.builtin.channels.irc.channel import Irc
from garra.builtin.channels.irc.session import TOGETHER, WAITING
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.tasks import Tasks
from garra.sdk.channel import (
    Account,
    Address,
    Button,
    File,
    Ignored,
    Inbound,
    LinkLost,
    LinkRefused,
    Ports,
    Receive,
    SendFailed,
)  # fmt: skip
from garra.sdk.ports import Clock
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.clock import ManualClock
from garra.testing.irc import IrcServer

ROOM = Address("irc", "default", "#room", "group")
ANN = Address("irc", "default", "ann", "direct")
OLD = ("multi-prefix",)


@asynccontextmanager
async def linked(
    server: IrcServer,
    heard: Heard | None = None,
    cursor: MemoryCursor | None = None,
    clock: Clock | None = None,
    receive: Receive | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Irc, Heard, asyncio.Task[None]]]:
    """A channel on the server; its link runs until the block ends."""
    heard = heard or Heard()
    http, tasks = GuardedHttp(), Tasks()
    own = {"host": "127.0.0.1", "port": server.port, "tls": False, "nick": "bot", **settings}
    ports = Ports(http, clock or SystemClock(), tasks, cursor or MemoryCursor(), dial=http)
    channel = Irc(Account("default", own), ports)
    task = asyncio.ensure_future(channel.run(receive or heard.receive, heard))
    try:
        yield channel, heard, task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost, LinkRefused):
            await task
        await tasks.close()
        await http.close()


@pytest.fixture
async def server() -> AsyncIterator[IrcServer]:
    async with IrcServer() as server:
        yield server


async def up(heard: Heard) -> None:
    await heard.until(lambda h: h.me is not None)


async def test_an_old_server_is_asked_who_somebody_is(server: IrcServer) -> None:
    server.abilities = OLD
    server.accounts = {"eve": "", "ann": "Ann-Account"}
    async with linked(server) as (_, heard, _task):
        await server.say("ann", "hello")
        await server.say("eve", "let me in")
        await heard.until(lambda h: len(h.events) == 2)
    known, unknown = heard.events
    assert isinstance(known, Inbound)
    assert isinstance(unknown, Inbound)
    assert (known.sender.id, unknown.sender.id) == ("ann-account", "")
    assert any("eve is logged in to no account" in note for note in heard.notes)


async def test_a_nick_that_changed_hands_has_no_account_of_before(server: IrcServer) -> None:
    server.abilities = OLD
    async with linked(server) as (_, heard, _task):
        await server.say("ann", "one", "#room")
        await server.say("ann", "two", "#room")
        await heard.until(lambda h: len(h.events) == 2)
        asked = sum(line == "WHOIS :ann" for line in server.lines)
        server.accounts["ann"] = ""
        server.tell(":ann!u@ann.example QUIT :gone")
        await server.say("ann", "three", "#room")
        await server.say("ann", "and directly")
        await heard.until(lambda h: len(h.events) == 4)
    ids = [event.sender.id for event in heard.events if isinstance(event, Inbound)]
    assert asked == 1
    assert ids == ["ann", "ann", "", ""]


async def test_an_answer_goes_to_the_person_and_not_to_the_nick(server: IrcServer) -> None:
    clock = ManualClock()
    async with linked(server, clock=clock) as (channel, heard, _task):
        server.accounts["annie"] = "ann"
        await server.say("annie", "hello")
        await heard.until(lambda h: h.said == ["hello"])
        await channel.send(outbound(ANN, "to you"))
        assert server.shown("annie") == ["to you"]
        await channel.send(outbound(ANN, "and more", "out:1b"))
        assert sum(line == "WHOIS :annie" for line in server.lines) == 1
        server.accounts = {"annie": "mallory", "ann": ""}
        await clock.advance(10)
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(ANN, "a secret", "out:2"))
        assert failed.value.fault == "gone"
        assert not any("a secret" in line for line in server.lines)


async def test_names_are_trusted_only_where_the_owner_says_so(server: IrcServer) -> None:
    server.accounts["ann"] = ""
    async with linked(server, dangerouslyAllowNameMatching=True) as (channel, heard, _task):
        await server.say("ann", "hello")
        await heard.until(lambda h: h.said == ["hello"])
        event = heard.events[0]
        assert isinstance(event, Inbound)
        assert event.sender.id == "ann!u@ann.example"
        await channel.send(outbound(event.address, "hi"))
        assert server.shown("ann") == ["hi"]


async def test_rooms_are_joined_and_those_that_are_shut_are_told(server: IrcServer) -> None:
    server.shut = {"#full": "471"}
    async with linked(server, channels=["#room key", "#full", "#a b"]) as (channel, heard, _task):
        await up(heard)
        told = channel.inspect()
        assert (told["rooms"], told["nick"], told["history"]) == (["#a", "#room"], "bot", True)
        assert "JOIN #room :key" in server.lines
        assert "MODE bot :+B" in server.lines
        assert heard.notes == ["#full cannot be joined: Cannot join channel"]
        server.tell(":op!o@h KICK #room bot :out with you")
        await heard.until(lambda h: len(h.notes) == 2)
        assert channel.inspect()["rooms"] == ["#a"]


async def test_a_nick_in_use_is_taken_back(server: IrcServer) -> None:
    server.taken = {"bot"}
    async with linked(server) as (channel, heard, _task):
        await up(heard)
        assert heard.me is not None
        assert heard.me.name == "bot_"
        server.taken.clear()
        server.tell(":bot!x@y QUIT :gone")
        await server.say("ann", "hello bot")
        await heard.until(lambda h: bool(h.events))
        await channel.send(outbound(ROOM, "a round trip"))
        assert server.bot is not None
        assert server.bot.nick == "bot"


async def test_a_server_that_talks_nonsense_of_nicks_is_not_flooded(server: IrcServer) -> None:
    clock = ManualClock()
    async with linked(server, clock=clock) as (_, heard, _task):
        await up(heard)
        hello = server.lines.count("NICK :bot")
        for line in (":bot!u@h NICK", ":bot!u@h NICK :other", *[":bot!x@y NICK :bot", ":bot!x@y QUIT :x"] * 200):
            server.tell(line)
        await server.say("ann", "are you well?")
        await heard.until(lambda h: bool(h.events))
        assert server.lines.count("NICK :bot") - hello <= 1


async def test_every_nick_in_use_is_a_passing_fault(server: IrcServer) -> None:
    server.taken = {"bot", "bot_", *(f"bot_{number}" for number in range(1, 5))}
    async with linked(server) as (_, _heard, task):
        with pytest.raises(LinkLost, match="in use"):
            await asyncio.wait_for(task, 10)


async def test_sasl(server: IrcServer) -> None:
    server.sasl = base64.b64encode(b"\0acc\0p\xc3\xa4ss").decode()
    nickserv = {"account": "acc", "password": Secret("päss")}
    async with linked(server, nickserv=nickserv) as (_, heard, _task):
        await up(heard)
        assert not any("IDENTIFY" in line for line in server.lines)
    async with linked(server, nickserv={"password": Secret("wrong-word")}) as (_, _heard, task):
        with pytest.raises(LinkRefused, match="904") as refused:
            await asyncio.wait_for(task, 10)
        assert "wrong-word" not in str(refused.value)


async def test_without_sasl_the_services_are_told_the_password(server: IrcServer) -> None:
    server.abilities, server.taken = OLD, {"bot"}
    server.nickserv = "Invalid password for hunter22."
    async with linked(server, nickserv={"password": Secret("hunter22")}) as (_, heard, _task):
        await up(heard)
        await server.say("ann", "")
        await heard.until(lambda h: bool(h.events))
    assert "PRIVMSG NickServ :IDENTIFY hunter22" in server.lines
    assert "PRIVMSG NickServ :GHOST bot hunter22" in server.lines
    assert heard.notes == ["NickServ: Invalid password for ***."]
    assert heard.said == []


async def test_long_words_are_lines_that_fit_and_begin_no_other_command(server: IrcServer) -> None:
    async with linked(server, textChunkLimit=450, channels=["#room"]) as (channel, heard, _task):
        await up(heard)
        await channel.send(outbound(ROOM, "ä" * 300 + "\r\nQUIT :bye\nJOIN #x\x01"))
    assert server.shown("#room") == ["ä" * 225, "ä" * 75, "QUIT :bye", "JOIN #x"]
    assert not any(line.startswith(("QUIT", "JOIN #x")) for line in server.lines)


@pytest.mark.parametrize("chat", ["#a,#b", "#a b", "", "x\r\nQUIT", ":x"])
async def test_no_other_place_is_reached_by_a_name(server: IrcServer, chat: str) -> None:
    async with linked(server) as (channel, heard, _task):
        await up(heard)
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(Address("irc", "default", chat, "group"), "hi"))
    assert failed.value.fault == "refused"


async def test_an_old_server_confirms_by_the_answer_to_a_ping(server: IrcServer) -> None:
    server.abilities = OLD
    async with linked(server) as (channel, heard, _task):
        await up(heard)
        first = await channel.send(outbound(ROOM, "one\ntwo"))
        second = await channel.send(outbound(ROOM, "three", "out:2"))
        assert first != second
        server.fail = "439"
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(ROOM, "four\nfive", "out:3"))
        assert failed.value.fault == "unsure"
    assert server.shown("#room")[:3] == ["one", "two", "three"]


async def test_what_irc_cannot_carry_is_said(server: IrcServer) -> None:
    async with linked(server) as (channel, heard, _task):
        await up(heard)
        file = File("image", "x/cat.png", "cat.png", "image/png", 3)
        buttons = ((Button("Yes", "y"), Button("No", "n")),)
        await channel.send(outbound(ROOM, "look", buttons=buttons, files=(file,), reply_to="m7"))
        with pytest.raises(SendFailed, match="nothing to send"):
            await channel.send(outbound(ROOM, " \x02\x02 "))
    assert server.shown("#room") == ["look", "[cat.png: IRC carries no files]", "[Yes] [No]"]
    assert sum(line.startswith("@+draft/reply=m7 PRIVMSG") for line in server.lines) == 1


async def test_what_was_said_meanwhile_is_heard_where_the_server_keeps_it(server: IrcServer) -> None:
    cursor = MemoryCursor()
    async with linked(server, cursor=cursor) as (_, heard, _task):
        await server.say("ann", "before")
        await heard.until(lambda h: h.said == ["before"])
    again = Heard()
    for number in range(3):
        server.miss("ann", f"missed {number}")
    async with linked(server, again, cursor):
        await again.until(lambda h: len(h.events) == 3)
        await server.say("ann", "after")
        await again.until(lambda h: len(h.events) == 4)
    assert again.said == ["missed 0", "missed 1", "missed 2", "after"]
    assert all(isinstance(event, Inbound) and event.sender.id == "ann" for event in again.events)


async def test_a_server_that_fails_to_tell_the_past_stops_nothing(server: IrcServer) -> None:
    cursor = MemoryCursor("2026-01-01T00:00:00.000Z")
    async with linked(server, cursor=cursor) as (_, heard, _task):
        await up(heard)
        server.tell(":irc.example FAIL CHATHISTORY MESSAGE_ERROR TARGETS :no")
        await server.say("ann", "hello")
        await heard.until(lambda h: h.said == ["hello"])
    assert cursor.history


async def test_notices_are_noted_and_never_answered(server: IrcServer) -> None:
    async with linked(server) as (_, heard, _task):
        await server.say("ann", "automatic", command="NOTICE")
        server.tell(":irc.example NOTICE bot :from the server")
        await server.say("bot", "our own")
        await server.say("ann", "real")
        await heard.until(lambda h: h.said == ["real"])
    assert [event.reason for event in heard.events if isinstance(event, Ignored)] == ["notice"]


async def test_no_flood_costs_a_message_where_each_says_who_it_is_of(server: IrcServer) -> None:
    async with linked(server) as (_, heard, _task):
        await server.say("ann", "hello")
        for number in range(2 * WAITING):
            server.tell(f"@account=e{number} :e{number}!u@h PRIVMSG bot :let me in")
        await server.say("ann", "the owner")
        await heard.until(lambda h: bool(h.events) and len(h.events) > 2 * WAITING)
    assert (heard.said[-1], heard.notes) == ("the owner", [])


async def test_a_flood_is_cut_and_told(server: IrcServer) -> None:
    let, taken = asyncio.Event(), list[Any]()

    async def receive(event: Any) -> None:
        await let.wait()
        taken.append(event)
        heard.alive()

    heard, server.abilities = Heard(), OLD
    async with linked(server, heard, receive=receive):
        await server.say("ann", "the first", "#room")
        for number in range(WAITING + 2 * TOGETHER):
            server.tell(f":ann!u@ann.example PRIVMSG #room :{number}")
        await heard.until(lambda h: bool(h.notes))
        let.set()
        await heard.until(lambda _: len(taken) > WAITING)
    assert heard.notes == ["more messages come in than can be stored; some were dropped"]
    assert [event.text for event in taken[:3]] == ["the first", "0", "1"]


async def test_a_ban_is_no_passing_fault(server: IrcServer) -> None:
    server.banned = True
    async with linked(server) as (_, _heard, task):
        with pytest.raises(LinkRefused, match="banned"):
            await asyncio.wait_for(task, 10)


async def test_without_a_door_or_a_server_it_says_so() -> None:
    http = GuardedHttp()
    own = {"host": "127.0.0.1", "port": 1, "tls": False, "nick": "bot"}
    bare = Ports(http, SystemClock(), Tasks(), MemoryCursor())
    heard = Heard()
    with pytest.raises(LinkRefused):
        await Irc(Account("default", own), bare).run(heard.receive, heard)
    with_door = Ports(http, SystemClock(), Tasks(), MemoryCursor(), dial=http)
    channel = Irc(Account("default", own), with_door)
    with pytest.raises(LinkLost):
        await channel.run(heard.receive, heard)
    with pytest.raises(SendFailed) as failed:
        await channel.send(outbound(ROOM, "hi"))
    assert failed.value.fault == "passing"
    assert (await channel.open_direct(" Ann ")).chat == "ann"
    await http.close()
