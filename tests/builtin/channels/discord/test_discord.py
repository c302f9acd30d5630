"""The channel over a server that plays Discord: sessions, heartbeats, limits, files, buttons, faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from garra.builtin.channels.discord.channel import Discord
from garra.builtin.channels.discord.position import position
from garra.core.secret import Secret
from garra.io.clock import SystemClock
from garra.io.files.root import Root
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
    Media,
    Ports,
    SendFailed,
)
from garra.testing.channels import Heard, MemoryCursor, outbound
from garra.testing.discord import DiscordServer, Fault

ROOM, GUILD, ANN = "500", "77", "1001"
IN_ROOM = Address("discord", "default", ROOM, "channel", guild=GUILD)


@dataclass
class Place:
    """A server, and what a channel is granted."""

    server: DiscordServer
    http: GuardedHttp
    tasks: Tasks
    folder: Path

    def channel(self, cursor: MemoryCursor | None = None, **settings: Any) -> Discord:
        own = {"token": Secret(self.server.token), "apiRoot": self.server.url, **settings}
        ports = Ports(self.http, SystemClock(), self.tasks, cursor or MemoryCursor(), Root(self.folder), self.http)
        return Discord(Account("default", own), ports)

    @property
    def direct(self) -> Address:
        return Address("discord", "default", self.server.dm(ANN), "direct")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    http = GuardedHttp()
    async with DiscordServer() as server, Tasks() as tasks:
        yield Place(server, http, tasks, tmp_path)
    await http.close()


@asynccontextmanager
async def running(channel: Discord, heard: Heard) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(channel.run(heard.receive, heard))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, LinkLost, LinkRefused, OSError):
            await task


async def until(true: Any) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - what is waited for happens in the server
            await asyncio.sleep(0.01)


def said(heard: Heard) -> list[str]:
    return [event.text for event in heard.events if isinstance(event, Inbound)]


def named(heard: Heard) -> Heard:
    """From now on it hears nothing before it is told who we are: an event is kept under the name of who heard it."""
    heard.me = None

    def before(event: Inbound | Ignored) -> None:
        assert heard.me is not None

    heard.before = before
    return heard


# ---- sessions


async def test_a_heartbeat_confirms_what_is_stored_and_no_more(place: Place) -> None:
    place.server.every_ms = 30
    gate = asyncio.Event()

    class Slow(Heard):
        async def receive(self, event: Inbound | Ignored) -> None:
            if isinstance(event, Inbound) and event.text == "slow":
                await gate.wait()
            await super().receive(event)

    heard, cursor = Slow(), MemoryCursor()
    async with running(place.channel(cursor), heard):
        await place.server.entered()
        place.server.say(ANN, "first")
        await heard.until(lambda h: said(h) == ["first"])
        place.server.say(ANN, "slow")
        place.server.say(ANN, "behind")
        beats = len(place.server.beats)
        await until(lambda: len(place.server.beats) > beats + 3)
        assert place.server.beats[-1] == 2
        gate.set()
        await until(lambda: place.server.beats[-1] == 4)
    assert position(cursor.value).seq == 4


async def test_a_connection_that_no_heartbeat_passes_is_lost(place: Place) -> None:
    place.server.every_ms, place.server.deaf = 300, True
    async with running(place.channel(), Heard()) as task:
        with pytest.raises(LinkLost, match="heartbeat"):
            await asyncio.wait_for(task, 10)


async def test_discord_asks_for_a_new_connection(place: Place) -> None:
    heard = Heard()
    async with running(place.channel(), heard):
        await heard.until(lambda h: h.me is not None)
        place.server.say(ANN, "one")
        await place.server.tell(7)
        await until(lambda: place.server.begun == ["identify", "resume"])
        place.server.say(ANN, "two")
        await heard.until(lambda h: len(said(h)) == 2)
    assert said(heard) == ["one", "two"]


async def test_a_session_that_is_refused_begins_anew_and_misses_nothing(place: Place) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: h.me is not None)
        place.server.say(ANN, "one")
        await heard.until(lambda h: said(h) == ["one"])
    place.server.forget()
    for number in range(130):
        place.server.say(ANN, f"missed {number}")
    named(heard)
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: len(said(h)) == 131)
        place.server.say(ANN, "now")
        await heard.until(lambda h: said(h)[-1] == "now")
    assert said(heard) == ["one", *(f"missed {number}" for number in range(130)), "now"]
    assert place.server.begun == ["identify", "refused", "identify"]


async def test_whose_roles_are_asked_for_when_a_room_is_made_up_for(place: Place) -> None:
    place.server.members[GUILD, ANN] = {"roles": ["70"], "nick": "Ann"}
    heard, cursor = Heard(), MemoryCursor()
    place.server.channels[ROOM] = {"id": ROOM, "type": 11, "parent_id": "400", "guild_id": GUILD}
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: h.me is not None)
        place.server.say(ANN, "one", ROOM, guild_id=GUILD, member={"roles": ["71"]})
        await heard.until(lambda h: said(h) == ["one"])
    place.server.forget()
    place.server.say(ANN, "two", ROOM, guild_id=GUILD)
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: said(h) == ["one", "two"])
    addresses = [event.address for event in heard.events if event.address is not None]
    assert addresses[0] == replace(IN_ROOM, roles=("71",), parent="400")
    assert addresses[1] == replace(IN_ROOM, roles=("70",), parent="400")


async def test_a_chat_that_cannot_be_placed_is_not_judged(place: Place) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(place.channel(cursor), heard) as task:
        await heard.until(lambda h: h.me is not None)
        place.server.fail(f"/channels/{ROOM}", Fault(500, "oops"))
        place.server.say(ANN, "where?", ROOM, guild_id=GUILD)
        with pytest.raises(LinkLost):
            await asyncio.wait_for(task, 10)
    async with running(place.channel(cursor), named(heard)):
        await heard.until(lambda h: said(h) == ["where?"])


async def test_other_intents_need_another_session(place: Place) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(place.channel(cursor), heard):
        await heard.until(lambda h: h.me is not None)
    async with running(place.channel(cursor, reactionNotifications="off"), Heard()):
        await until(lambda: len(place.server.begun) == 2)
    assert place.server.begun == ["identify", "identify"]


@pytest.mark.parametrize(
    ("code", "words"), [(4004, "token"), (4014, "Message Content"), (4013, "4013"), (4011, "4011")]
)
async def test_what_no_patience_mends_stops_the_account(place: Place, code: int, words: str) -> None:
    place.server.broken = code
    async with running(place.channel(), Heard()) as task:
        with pytest.raises(LinkRefused, match=words):
            await asyncio.wait_for(task, 10)


async def test_without_message_content_a_bot_may_do_without(place: Place) -> None:
    place.server.content = False
    async with running(place.channel(), Heard()) as task:
        with pytest.raises(LinkRefused, match=r"intents\.messageContent"):
            await asyncio.wait_for(task, 10)
    heard = Heard()
    async with running(place.channel(intents={"messageContent": False}), heard):
        await heard.until(lambda h: h.me is not None)


async def test_what_passes_is_lost_and_a_timed_out_session_is_given_up(place: Place) -> None:
    heard, cursor = Heard(), MemoryCursor()
    async with running(place.channel(cursor), heard) as task:
        await heard.until(lambda h: h.me is not None)
        await place.server.close(4009)
        with pytest.raises(LinkLost, match="4009"):
            await asyncio.wait_for(task, 10)
    assert position(cursor.value).session == ""
    place.server.left = 0
    async with running(place.channel(cursor), heard) as task:
        with pytest.raises(LinkLost) as lost:
            await asyncio.wait_for(task, 10)
    assert (lost.value.details or {})["retryAfterS"] == 14_400


async def test_the_token_goes_nowhere_unprotected(place: Place) -> None:
    with pytest.raises(LinkRefused, match="no bot token"):
        await place.channel(token=Secret("")).run(Heard().receive, Heard())
    ports = Ports(place.http, SystemClock(), place.tasks, MemoryCursor())
    own = {"token": Secret(place.server.token), "apiRoot": place.server.url}
    with pytest.raises(LinkRefused, match="HTTP"):
        await Discord(Account("default", own), ports).run(Heard().receive, Heard())


# ---- presses, reactions, own words


async def test_a_press_is_answered_once_it_is_stored(place: Place) -> None:
    user = {"id": ANN, "username": "ann"}
    body = {
        "id": "1390000000000000060",
        "type": 3,
        "token": "secret-of-the-press",
        "user": user,
        "channel_id": place.direct.chat,
        "message": {"id": "1390000000000000050", "content": "ok?"},
        "data": {"custom_id": "y:1", "component_type": 2},
    }

    def before(event: Inbound | Ignored) -> None:
        assert not place.server.asked("/callback")

    heard = Heard(before=before)
    async with running(place.channel(), heard):
        await place.server.entered()
        place.server.push("INTERACTION_CREATE", body)
        await until(lambda: place.server.asked("/callback"))
    (event,) = heard.events
    assert isinstance(event, Inbound)
    assert (event.event, event.data, event.sender.id) == ("button", "y:1", ANN)
    assert place.server.asked("/callback")[0].body == {"type": 6}
    assert "secret-of-the-press" not in repr(heard.events)


async def test_a_message_sent_twice_is_there_once(place: Place) -> None:
    first = place.channel()
    place.server.fail("/messages", Fault(kind="cut_after"))
    with pytest.raises(SendFailed) as failed:
        await first.send(outbound(place.direct, "once"))
    assert failed.value.fault == "unsure"
    assert first.limits.idempotent
    number = await place.channel().send(outbound(place.direct, "once"))
    assert place.server.shown(place.direct.chat) == ["once"]
    assert number == place.server.messages[place.direct.chat][0]["id"]


async def test_what_the_gateway_shows_as_sent_is_not_sent_again(place: Place) -> None:
    heard, channel = Heard(), place.channel()
    async with running(channel, heard):
        await place.server.entered()
        place.server.fail("/messages", Fault(kind="cut_after"))
        with pytest.raises(SendFailed):
            await channel.send(outbound(place.direct, "once"))
        await heard.until(lambda h: said(h) == ["once"])
        await channel.send(outbound(place.direct, "once"))
    assert len(place.server.asked("/messages")) == 1
    (event,) = heard.events
    assert isinstance(event, Inbound)
    assert event.own


async def test_edits_deletes_reactions_and_typing(place: Place) -> None:
    channel = place.channel()
    number = await channel.send(outbound(place.direct, "one"))
    await channel.edit(number, outbound(place.direct, "two"))
    assert place.server.shown(place.direct.chat) == ["two"]
    assert place.server.asked("/messages/", "PATCH")[0].body["allowed_mentions"]["parse"] == []
    for emoji in ("👍", "🎉", ""):
        await channel.react(place.direct, number, emoji)
    shown = [(call.method, call.path.split("/")[-2]) for call in place.server.asked("/reactions/")]
    up, party = "%F0%9F%91%8D", "%F0%9F%8E%89"
    assert shown == [("PUT", up), ("PUT", party), ("DELETE", up), ("DELETE", party)]
    await channel.type(place.direct)
    assert place.server.asked("/typing")
    await channel.delete(place.direct, number)
    await channel.delete(place.direct, number)
    with pytest.raises(SendFailed) as failed:
        await channel.edit(number, outbound(place.direct, "three"))
    assert failed.value.fault == "gone"


async def test_writing_to_a_person_first(place: Place) -> None:
    channel = place.channel()
    assert await channel.open_direct(ANN) == place.direct
    await channel.send(outbound(Address("discord", "default", f"user:{ANN}", "direct"), "hello"))
    await channel.send(outbound(Address("discord", "default", f"channel:{ROOM}", "channel"), "hello", "out:2"))
    assert place.server.shown(place.direct.chat) == place.server.shown(ROOM) == ["hello"]
    assert len(place.server.asked("/users/@me/channels")) == 1
    for wrong in ("@ann", "../1", ""):
        with pytest.raises(SendFailed):
            await channel.open_direct(wrong)
        with pytest.raises(SendFailed):
            await channel.send(outbound(Address("discord", "default", wrong, "direct"), "x"))


# ---- faults and limits


TOO_LONG = {"content": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer in length."}]}}
FAULTS = [
    (Fault(400, "Invalid Form Body", 50035, errors=TOO_LONG), "too_long"),
    (Fault(400, "Invalid Form Body", 50035), "refused"),
    (Fault(403, "Cannot send messages to this user", 50007), "gone"),
    (Fault(403, "Missing Access", 50001), "gone"),
    (Fault(403, "Missing Permissions", 50013), "refused"),
    (Fault(413, "Request entity too large", 40005), "too_large"),
    (Fault(429, "slow", 20016, retry_after=7.25), "passing"),
    (Fault(502, "Bad Gateway"), "unsure"),
    (Fault(kind="cut_before"), "unsure"),
]


@pytest.mark.parametrize(("fault", "meant"), FAULTS, ids=lambda value: getattr(value, "words", value))
async def test_what_a_refusal_means(place: Place, fault: Fault, meant: str) -> None:
    place.server.fail("/messages", fault)
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(place.direct, "x"))
    assert failed.value.fault == meant
    assert failed.value.retry_after_s == fault.retry_after


async def test_no_connection_means_nothing_was_sent(place: Place) -> None:
    with pytest.raises(SendFailed) as failed:
        await place.channel(apiRoot="http://127.0.0.1:9/api/v10").send(outbound(place.direct, "x"))
    assert failed.value.fault == "passing"


async def test_an_answer_that_may_not_be_one_goes_alone(place: Place) -> None:
    place.server.fail("/messages", Fault(403, "Cannot reply without permission to read message history", 160002))
    await place.channel().send(outbound(place.direct, "x", reply_to="40"))
    first, second = (call.body for call in place.server.asked("/messages"))
    assert "message_reference" in first
    assert "message_reference" not in second
    assert first["nonce"] == second["nonce"]


async def test_a_used_up_bucket_is_waited_for_and_a_long_pause_is_told(place: Place) -> None:
    channel = place.channel()
    place.server.headers = {"x-ratelimit-bucket": "b1", "x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "0.3"}
    loop = asyncio.get_running_loop()
    await channel.send(outbound(place.direct, "one"))
    began = loop.time()
    await channel.send(outbound(place.direct, "two", "out:2"))
    assert loop.time() - began > 0.2
    await channel.send(outbound(IN_ROOM, "elsewhere", "out:3"))
    place.server.headers = {}
    place.server.fail("/messages", Fault(429, "global", retry_after=60.0, everywhere=True))
    for key in ("out:4", "out:5"):
        with pytest.raises(SendFailed) as failed:
            await channel.send(outbound(IN_ROOM, "four", key))
        assert failed.value.fault == "passing"
        assert (failed.value.retry_after_s or 0) > 59
    assert len(place.server.asked("/messages")) == 4


# ---- files


def file(place: Place, name: str, data: bytes = b"data") -> File:
    (place.folder / name).write_bytes(data)
    return File("file", name, name, "text/plain", len(data))


async def test_files_go_ten_at_a_time_and_no_file_twice(place: Place) -> None:
    files = tuple(file(place, f"f{number}.txt", b"\r\n--x--\r\n%d" % number) for number in range(12))
    channel, message = place.channel(), outbound(IN_ROOM, "see", files=files)
    place.server.headers = {"x-any": "1"}
    number = await channel.send(message)
    first, second = place.server.asked("/messages")
    assert [len(call.files) for call in (first, second)] == [10, 2]
    assert first.files[1] == ("f1.txt", b"\r\n--x--\r\n1")
    assert first.body["attachments"][1] == {"id": 1, "filename": "f1.txt"}
    assert "content" not in second.body
    assert number == place.server.messages[ROOM][0]["id"]
    assert await channel.send(message) == number
    assert len(place.server.asked("/messages")) == 2


async def test_files_that_do_not_leave(place: Place) -> None:
    for one, fault in (
        (File("file", "big", "big", "x/y", 11 << 20), "too_large"),
        (File("file", "../o", "x", "x/y", 1), "refused"),
    ):
        with pytest.raises(SendFailed) as failed:
            await place.channel().send(outbound(IN_ROOM, "", files=(one,)))
        assert failed.value.fault == fault
    with pytest.raises(SendFailed) as failed:
        await place.channel().send(outbound(IN_ROOM, " "))
    assert failed.value.fault == "refused"
    assert place.server.calls == []


async def fetched(channel: Discord, media: Media, limit: int = 1 << 20) -> bytes:
    return b"".join([chunk async for chunk in channel.fetch(media, limit)])


async def test_an_attachment_is_fetched_and_found_again_when_its_address_has_run_out(place: Place) -> None:
    root = place.server.url.removesuffix("/api/v10")
    place.server.files["new"] = b"bytes"
    message = place.server.message(ANN, "", ROOM, attachments=[{"id": "9", "url": f"{root}/files/new"}])
    place.server.messages[ROOM] = [message]
    channel, ref = place.channel(), f"{ROOM} {message['id']} 9"
    assert await fetched(channel, Media("file", f"{ref} {root}/files/new")) == b"bytes"
    assert await fetched(channel, Media("file", f"{ref} {root}/files/old")) == b"bytes"
    shot = {"message": {"attachments": [{"id": "10", "url": f"{root}/files/new"}]}}
    message["message_snapshots"] = [shot]
    assert await fetched(channel, Media("file", f"{ref[:-1]}10 {root}/files/old")) == b"bytes"
    cases = [
        (Media("file", f"{ROOM} {message['id']} 8 {root}/files/old"), 1 << 20, "gone"),
        (Media("file", f"{ROOM} 1 9 {root}/files/old"), 1 << 20, "gone"),
        (Media("file", f"{ref} {root}/files/new"), 2, "too_large"),
        (Media("file", f"{ref} {root}/files/new", size=99), 10, "too_large"),
        (Media("file", f"{ref} http://169.254.169.254/x"), 99, "refused"),
        (Media("file", "odd"), 99, "refused"),
    ]
    for media, limit, fault in cases:
        with pytest.raises(SendFailed) as failed:
            await fetched(channel, media, limit)
        assert failed.value.fault == fault


async def test_buttons_go_out(place: Place) -> None:
    await place.channel().send(outbound(IN_ROOM, "ok?", buttons=((Button("Yes", "y:1"), Button("No", "n:1")),)))
    (row,) = place.server.asked("/messages")[0].body["components"]
    assert [(one["label"], one["custom_id"]) for one in row["components"]] == [("Yes", "y:1"), ("No", "n:1")]
